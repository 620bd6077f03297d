/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.c - the topology in memory: names, endpoints, tiers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "topo/nic.h"
#include "topo/topo.h"

static void the_same_host_name_gives_the_same_index(void **state)
{
    struct topo t;

    (void)state;
    topo_init(&t);
    assert_int_equal(topo_add_host(&t, "a"), 0);
    assert_int_equal(topo_add_host(&t, "b"), 1);
    assert_int_equal(topo_add_host(&t, "a"), 0);
    assert_int_equal(t.hosts, 2);
    assert_int_equal(t.group[LEVEL_HOST].count, 2);
    assert_string_equal(t.group[LEVEL_HOST].name[1], "b");
    assert_int_equal(topo_add_group(&t, LEVEL_RACK, "a"), 0);
    assert_int_equal(t.hosts, 2);
    topo_free(&t);
    assert_int_equal(t.hosts, 0);
    topo_free(NULL);
}

static void endpoints_are_counted_per_host_in_any_order(void **state)
{
    struct topo t;

    (void)state;
    topo_init(&t);
    int a = topo_add_host(&t, "a"), b = topo_add_host(&t, "b");
    topo_add_endpoint(&t, a, ENDPOINT_GPU);
    topo_add_endpoint(&t, b, ENDPOINT_CPU);
    int id = topo_add_endpoint(&t, a, ENDPOINT_GPU);
    assert_int_equal(id, 2);
    assert_int_equal(t.endpoint[2].local, 1);
    assert_int_equal(t.endpoint[1].local, 0);
    assert_int_equal(t.endpoint[2].place.at[LEVEL_HOST], a);
    assert_int_equal(t.endpoint[2].place.at[LEVEL_RACK], -1);
    assert_int_equal(t.endpoint[2].numa, -1);
    assert_int_equal(t.endpoint[2].nic, -1);
    topo_free(&t);
}

static void a_hundred_thousand_hosts_are_added_in_seconds(void **state)
{
    clock_t start = clock(); /* of this process: others may have the core meanwhile */
    char name[32];
    struct topo t;

    (void)state;
    topo_init(&t);
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "node%06d", i);
        assert_int_equal(topo_add_host(&t, name), i);
    }
    for (int i = 0; i < 100000; i += 997) {
        snprintf(name, sizeof(name), "node%06d", i);
        assert_int_equal(topo_add_host(&t, name), i);
    }
    assert_int_equal(t.hosts, 100000);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
    topo_free(&t);
}

/* 2 racks of 2 hosts of 2 endpoints; the domain is the rack. */
static void make_small(struct topo *t, enum endpoint_kind kind)
{
    char name[32];

    topo_init(t);
    for (int h = 0; h < 4; h++) {
        snprintf(name, sizeof(name), "h%d", h);
        int host = topo_add_host(t, name);
        for (int k = 0; k < 2; k++) {
            int id = topo_add_endpoint(t, host, kind);
            snprintf(name, sizeof(name), "rack-%d", h / 2);
            t->endpoint[id].place.at[LEVEL_RACK] = topo_add_group(t, LEVEL_RACK, name);
            t->endpoint[id].source[LEVEL_RACK] = SOURCE_USER;
        }
    }
}

static int tier_of(const struct topo *t, int a, int b)
{
    return topo_tier(t, a, b);
}

static void default_tiers_follow_the_levels_that_are_visible(void **state)
{
    struct topo t;

    (void)state;
    make_small(&t, ENDPOINT_CPU);
    topo_default_tiers(&t);
    assert_int_equal(t.tiers, 3);
    assert_string_equal(t.tier[0].name, "shm");
    assert_string_equal(t.tier[1].name, "rack");
    assert_string_equal(t.tier[2].name, "fabric");
    assert_int_equal(tier_of(&t, 0, 1), 0);
    assert_int_equal(tier_of(&t, 0, 2), 1);
    assert_int_equal(tier_of(&t, 1, 7), 2);

    topo_clear_level(&t, LEVEL_RACK);
    topo_default_tiers(&t);
    assert_int_equal(t.tiers, 2);
    assert_int_equal(tier_of(&t, 0, 2), 1);
    assert_int_equal(t.group[LEVEL_RACK].count, 0);
    assert_int_equal(t.endpoint[3].source[LEVEL_RACK], SOURCE_NONE);
    topo_free(&t);
}

static void unknown_coordinates_never_count_as_equal(void **state)
{
    struct topo t;

    (void)state;
    make_small(&t, ENDPOINT_GPU);
    topo_default_tiers(&t);
    assert_string_equal(t.tier[0].name, "host");
    t.endpoint[0].place.at[LEVEL_RACK] = -1;
    t.endpoint[2].place.at[LEVEL_RACK] = -1;
    assert_string_equal(t.tier[tier_of(&t, 0, 2)].name, "fabric");
    topo_free(&t);
}

static void only_plain_ethernet_makes_the_last_tier_tcp(void **state)
{
    struct topo t;

    (void)state;
    make_small(&t, ENDPOINT_CPU);
    t.nic = calloc(8, sizeof(*t.nic));
    t.nics = 1;
    t.nic[0].layer = LINK_ETHERNET;
    topo_default_tiers(&t);
    assert_string_equal(t.tier[t.tiers - 1].name, "tcp");
    t.nic[0].rdma = true;
    topo_default_tiers(&t);
    assert_string_equal(t.tier[t.tiers - 1].name, "fabric");
    topo_free(&t);
}

static void what_is_unseen_is_said_once_with_its_latest_reason(void **state)
{
    struct topo t;

    (void)state;
    topo_init(&t);
    topo_unseen(&t, "rack", "no labels");
    topo_unseen(&t, "rack", "file %s is empty", "x");
    assert_int_equal(t.unseens, 1);
    assert_string_equal(t.unseen[0].why, "file x is empty");
    topo_free(&t);
}

static void a_copy_stands_on_its_own(void **state)
{
    struct topo a, b;

    (void)state;
    make_small(&a, ENDPOINT_GPU);
    topo_unseen(&a, "leaf", "no verbs");
    topo_default_tiers(&a);
    topo_copy(&b, &a);
    topo_free(&a);
    assert_int_equal(b.endpoints, 8);
    assert_int_equal(b.hosts, 4);
    assert_string_equal(b.host[3].name, "h3");
    assert_string_equal(b.group[LEVEL_RACK].name[1], "rack-1");
    assert_string_equal(b.unseen[0].why, "no verbs");
    assert_string_equal(b.tier[1].name, "rack");
    assert_int_equal(topo_add_host(&b, "h3"), 3);
    assert_int_equal(topo_add_host(&b, "h4"), 4);
    assert_int_equal(topo_add_endpoint(&b, 3, ENDPOINT_GPU), 8);
    assert_int_equal(b.endpoint[8].local, 2);
    topo_free(&b);
}

/* Random coordinates, some of them unknown, and random rules. */
static void tiers_side_by_side_are_those_of_the_endpoints(void **state)
{
    unsigned draw = 12345;
    int tiers[2] = {0, 0};

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct topo t;
        struct topo_tiers x;

        make_small(&t, ENDPOINT_GPU);
        for (int i = 0; i < t.endpoints; i++)
            for (int l = 0; l < LEVEL_COUNT; l++)
                t.endpoint[i].place.at[l] = (int)((draw = draw * 1103515245 + 12345) >> 16) % 4 - 1;
        t.tiers = round % 5;
        for (int i = 0; i < t.tiers; i++)
            t.tier[i].same = (draw = draw * 1103515245 + 12345) >> 16 & ((1u << LEVEL_COUNT) - 1);
        topo_tiers_make(&x, &t);
        for (int a = 0; a < t.endpoints; a++)
            for (int b = 0; b < t.endpoints; b++)
                for (int nic = 0; a != b && nic < 2; nic++) {
                    assert_int_equal(topo_tiers_of(&x, a, b, nic), topo_tier_by(&t, a, b, nic));
                    tiers[topo_tiers_of(&x, a, b, nic) < t.tiers - 1]++;
                }
        free(x.at);
        topo_free(&t);
    }
    assert_true(tiers[0] > 100 && tiers[1] > 100);
}

static void level_and_source_names_are_found(void **state)
{
    (void)state;
    assert_int_equal(level_find("domain"), LEVEL_DOMAIN);
    assert_int_equal(level_find("Domain"), -1);
    assert_int_equal(source_find("preset"), SOURCE_PRESET);
    assert_int_equal(source_find("rumour"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_host_name_gives_the_same_index),
        cmocka_unit_test(endpoints_are_counted_per_host_in_any_order),
        cmocka_unit_test(a_hundred_thousand_hosts_are_added_in_seconds),
        cmocka_unit_test(default_tiers_follow_the_levels_that_are_visible),
        cmocka_unit_test(unknown_coordinates_never_count_as_equal),
        cmocka_unit_test(only_plain_ethernet_makes_the_last_tier_tcp),
        cmocka_unit_test(what_is_unseen_is_said_once_with_its_latest_reason),
        cmocka_unit_test(a_copy_stands_on_its_own),
        cmocka_unit_test(tiers_side_by_side_are_those_of_the_endpoints),
        cmocka_unit_test(level_and_source_names_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
