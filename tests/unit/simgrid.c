/* SPDX-License-Identifier: BSD-3-Clause */
/* simgrid.c - the platform that is written from a matrix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/mem.h"
#include "export/export_impl.h"
#include "small.h"

static void make(struct matrix *m, const char *name, int racks)
{
    struct fabric f;
    struct err err;

    if (fabric_load(&f, name, &err) < 0 || matrix_from_fabric(m, &f, racks, &err) < 0)
        fail_msg("%s", err.text);
    fabric_free(&f);
}

/* Platform and host file as text; NULL when refused. */
static char *platform_of(const struct matrix *m, struct export_ask o, char **hosts, struct err *err)
{
    char *text = NULL;
    size_t len, hosts_len;
    FILE *f = open_memstream(&text, &len), *h = hosts ? open_memstream(hosts, &hosts_len) : NULL;
    int rc = simgrid_write(&(struct export_run){.out = f, .second = h, .m = m, .ask = &o}, err);

    fclose(f);
    if (h)
        fclose(h);
    if (rc < 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static int count(const char *text, const char *word)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
        n++;
    return n;
}

TEST(every_pair_of_hosts_has_a_route_with_its_tiers_numbers)
{
    struct matrix m;
    struct err err;
    char *hosts;

    make(&m, "gb200-nvl72", 4);
    char *xml = platform_of(&m, (struct export_ask){0}, &hosts, &err);
    assert_non_null(xml);
    assert_int_equal(count(xml, "<host "), 72);
    assert_int_equal(count(xml, "<route "), 72 * 71 / 2);
    assert_int_equal(count(xml, "symmetrical=\"YES\""), 72 * 71 / 2);
    assert_non_null(
        strstr(xml, "<link id=\"r03n17:local\" bandwidth=\"7.7e+11Bps\" latency=\"0s\""));
    assert_non_null(
        strstr(xml, "<link id=\"r03n17:nic\" bandwidth=\"4.92e+10Bps\" latency=\"0s\""));
    assert_non_null(strstr(xml, "<link id=\"latency:0\" bandwidth=\"1e18Bps\" latency=\"9.9"));
    assert_int_equal(count(xml, "<link id=\"latency:"), 2);
    assert_int_equal(count(xml, "<link id=\"pair:"), 0);
    assert_non_null(strstr(xml,
                           "<route src=\"r00n00\" dst=\"r01n00\" symmetrical=\"YES\"><link_ctn "
                           "id=\"r00n00:nic\" direction=\"UP\"/><link_ctn id=\"latency:1\"/>"
                           "<link_ctn id=\"r01n00:nic\" direction=\"DOWN\"/></route>"));
    assert_int_equal(strncmp(hosts, "r00n00\nr00n01\n", 14), 0);
    free(xml);
    free(hosts);
    matrix_free(&m);
}

TEST(endpoints_can_be_the_nodes_and_racks_can_be_cut)
{
    struct matrix m;
    struct err err;
    char *hosts;

    make(&m, "gb200-nvl72", 2);
    char *xml =
        platform_of(&m, (struct export_ask){.endpoints = true, .hosts_per_rack = 2}, &hosts, &err);
    assert_non_null(xml);
    assert_string_equal(hosts, "r00n00-0\nr00n00-1\nr00n00-2\nr00n00-3\n"
                               "r00n01-0\nr00n01-1\nr00n01-2\nr00n01-3\n"
                               "r01n00-0\nr01n00-1\nr01n00-2\nr01n00-3\n"
                               "r01n01-0\nr01n01-1\nr01n01-2\nr01n01-3\n");
    assert_int_equal(count(xml, "<link id=\"latency:"), 3); /* mnnvl, rail, fabric */
    free(xml);
    free(hosts);
    matrix_free(&m);
}

TEST(a_slow_pair_has_a_link_of_its_own_in_its_direction)
{
    struct exception slow = {.part = PART_ENDPOINT,
                             .side = SIDE_TX,
                             .a = 0,
                             .b = -1,
                             .tier = -1,
                             .factor = 0.5,
                             .evidence = 9};
    struct matrix m;
    struct err err;

    make(&m, "gb200-nvl72", 2);
    MEM_PUSH(m.exception, m.exceptions) = slow;
    char *xml = platform_of(&m, (struct export_ask){.hosts_per_rack = 2}, NULL, &err);
    assert_non_null(xml);
    assert_int_equal(count(xml, "<link id=\"pair:0:2\" bandwidth=\"2.46e+10Bps\" latency=\"0s\" "
                                "sharing_policy=\"SHARED\"/>"),
                     1);
    assert_int_equal(count(xml, "<link id=\"pair:"),
                     2); /* to two hosts of the other rack, one way */
    assert_int_equal(count(xml, "<route src=\"r01n00\" dst=\"r00n00\" symmetrical=\"NO\">"), 1);
    assert_int_equal(count(xml, "<link_ctn id=\"pair:0:2\"/>"), 1);
    assert_true(strstr(xml, "<link id=\"pair:0:3\"") < strstr(xml, "<route "));
    free(xml);
    matrix_free(&m);
}

TEST(names_are_escaped)
{
    struct matrix m;
    struct err err;

    make(&m, "rtxpro6000-100gbe", 1);
    small_rename(&m.topo, 1, "a\"<&b");
    char *xml = platform_of(&m, (struct export_ask){0}, NULL, &err);
    assert_non_null(xml);
    assert_non_null(strstr(xml, "<host id=\"a&quot;&lt;&amp;b\" speed"));
    free(xml);
    matrix_free(&m);
}

TEST(what_cannot_be_a_platform_is_refused_with_the_reason)
{
    struct matrix m;
    struct err err;

    make(&m, "gb200-nvl72", 120);
    assert_null(platform_of(&m, (struct export_ask){0}, NULL, &err));
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text,
                        "2160 nodes have 4663440 pairs, as a SimGrid platform 445 MiB: more than "
                        "2048 nodes are not written; choose --per host, fewer --racks or "
                        "--hosts-per-rack");
    matrix_free(&m);

    make(&m, "gb200-nvl72", 1);
    assert_null(platform_of(&m, (struct export_ask){.hosts_per_rack = 1}, NULL, &err));
    assert_string_equal(err.text, "1 node: a SimGrid platform needs 2");
    m.topo.endpoint[4].place.at[LEVEL_RACK] = -1;
    assert_null(platform_of(&m, (struct export_ask){.hosts_per_rack = 3}, NULL, &err));
    assert_string_equal(err.text, "--hosts-per-rack: the rack of endpoint 4 is not known");
    curve_free(&m.tier[0].curve[DIR_UNI]);
    curve_free(&m.tier[0].curve[DIR_ONEWAY]);
    assert_null(platform_of(&m, (struct export_ask){0}, NULL, &err));
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text,
                        "the matrix has no latency or bandwidth for endpoints 0 and 4 (tier "
                        "mnnvl)");
    matrix_free(&m);
}
