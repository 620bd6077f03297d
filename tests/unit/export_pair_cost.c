/* SPDX-License-Identifier: BSD-3-Clause */
/* export_pair_cost.c - the numbers of exports are the matrix's, and every format copes with every name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"
#include "export/pair_cost.h"
#include "measure/point.h"
#include "small.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

/* One of each part, with sides, an added latency and a dead one. */
static void faults(struct matrix *m)
{
    small_matrix(m);
    small_exception(m, PART_ENDPOINT, 2, -1, -1, 0.5)->side = SIDE_TX;
    small_exception(m, PART_ENDPOINT, 9, -1, 1, 0.7)->side = SIDE_RX;
    small_exception(m, PART_HOST, 5, -1, -1, 0.3);
    small_exception(m, PART_RACK_PAIR, 0, 1, -1, 0.9)->side = SIDE_RX;
    small_exception(m, PART_PAIR, 0, 6, -1, 0)->side = SIDE_TX;
    small_exception(m, PART_PAIR, 12, 14, -1, 1)->alpha_add = 5e-6;
    small_exception(m, PART_RACK_UPLINKS, 1, -1, -1, 0.8);
    small_exception(m, PART_RACK, 0, -1, 1, 0.95)->side = SIDE_TX;
}

static void compare(const struct matrix *m, enum quantity quantity, double bytes)
{
    struct pair_cost q;
    struct cost c;

    pair_cost_init(&q, m, quantity, bytes);
    for (int a = 0; a < m->topo.endpoints; a++)
        for (int b = 0; b < m->topo.endpoints; b++) {
            if (a == b)
                continue;
            matrix_pair(m, a, b, quantity == QUANTITY_LATENCY ? 1 : bytes, &c);
            double want = quantity == QUANTITY_BANDWIDTH ? bytes / c.sec : c.sec;
            double got = pair_cost_of(&q, a, b);
            if (got != want)
                fail_msg("%s of %g bytes, %d -> %d: %g, not %g", quantity_name[quantity], bytes, a,
                         b, got, want);
        }
    pair_cost_free(&q);
}

static void every_pair_costs_what_the_matrix_says(void **state)
{
    struct matrix m;

    (void)state;
    faults(&m);
    for (int quantity = QUANTITY_BANDWIDTH; quantity < QUANTITY_COUNT; quantity++)
        for (double bytes = 8; bytes < 1e10; bytes *= 37)
            compare(&m, (enum quantity)quantity, bytes);
    matrix_free(&m);
}

static void dead_and_unknown_pairs_are_told_apart(void **state)
{
    struct matrix m;
    struct pair_cost q;
    struct err err;

    (void)state;
    faults(&m);
    pair_cost_init(&q, &m, QUANTITY_BANDWIDTH, 0);
    assert_true(q.bytes == PAIR_COST_BYTES);
    assert_true(pair_cost_of(&q, 0, 6) == 0);
    assert_true(pair_cost_of(&q, 6, 0) > 0);
    assert_true(isnan(pair_cost_of(&q, 3, 3)));
    pair_cost_free(&q);
    pair_cost_init(&q, &m, QUANTITY_TIME, 1e6);
    assert_true(isinf(pair_cost_of(&q, 0, 6)));
    assert_true(pair_cost_of(&q, 3, 3) == 0);
    assert_int_equal(pair_cost_known(&q, NAN, 1, 15, &err), -1);
    assert_string_equal(err.text,
                        "time from n00:1 to n07:1 is not known: tier fabric was not measured");
    pair_cost_free(&q);
    matrix_free(&m);
}

static void a_line_is_exact_at_its_size(void **state)
{
    struct matrix m;
    struct pair_line l;
    struct err err;

    (void)state;
    small_matrix(&m);
    for (int t = 0; t < m.tiers; t++) {
        assert_int_equal(pair_cost_line(&l, &m, t, 1 << 24, &err), 0);
        double want = matrix_tier_time(&m.tier[t], 1 << 24, 1);
        assert_true(fabs((l.alpha + (1 << 24) / l.Bps) / want - 1) < 1e-12);
        assert_true(fabs(l.alpha / m.tier[t].curve[DIR_ONEWAY].alpha - 1) < 0.01);
    }
    curve_free(&m.tier[1].curve[DIR_ONEWAY]);
    curve_free(&m.tier[1].curve[DIR_UNI]);
    assert_int_equal(pair_cost_line(&l, &m, 1, 1 << 24, &err), -1);
    assert_string_equal(err.text, "tier rack has no latency or no bandwidth: was it measured?");
    matrix_free(&m);
}

/* --- every format --- */

/* Written, or refused with a reason and a code; out and second are the caller's. */
static int run(const struct exporter *e, const struct matrix *m, char **out, char **second)
{
    struct export_ask ask = {.campaign = "nowhere"};
    size_t len, more;
    FILE *f = open_memstream(out, &len), *g = e->second ? open_memstream(second, &more) : NULL;
    struct err err = {0, ""};
    const struct points none = {0};
    struct limits limits = {0};
    struct accept accept;
    struct parts parts;

    assert_int_equal(limits_builtin(&limits, NULL, &err), 0);
    assert_int_equal(parts_list(&parts, &(struct parts_input){.m = m, .no_cost = true}, &err), 0);
    accept_judge(&accept, &(struct accept_input){
                              .measured = m, .parts = &parts, .why = "none", .limits = &limits});
    int rc = e->needs == EXPORT_CAMPAIGN ? 0
                                         : e->write(&(struct export_run){.out = f,
                                                                         .second = g,
                                                                         .m = m,
                                                                         .topo = &m->topo,
                                                                         .points = &none,
                                                                         .accept = &accept,
                                                                         .parts = &parts,
                                                                         .ask = &ask},
                                                    &err);
    parts_free(&parts);
    accept_free(&accept);
    limits_free(&limits);

    fclose(f);
    if (g)
        fclose(g);
    if (rc < 0) {
        assert_true(strlen(err.text) > 8);
        assert_true(err.code == EXIT_DATA || err.code == EXIT_USAGE || err.code == EXIT_UNJUDGED);
    }
    return rc;
}

static const char *const wild[] = {"a b",  "<&\">'", "x,y",    "k: v",   "- z",     "#c",
                                   "%d%s", "[1]",    "{a: b}", "\"q\"",  "it's",    "a\\b",
                                   "*",    "@at",    "$(id)",  "n=1;id", "\xc3\xa4"};

/* Marks that would end an attribute or an element, in a file that is XML. */
static void check_xml(const char *text)
{
    if (strncmp(text, "<?xml", 5) != 0)
        return;
    for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
        if (strpbrk(wild[i], "<&\"") && strstr(text, wild[i]))
            fail_msg("%s stands in XML as it is", wild[i]);
}

static void names_with_marks_are_escaped_or_refused(void **state)
{
    struct matrix m;

    (void)state;
    for (int e = 0; e < exporter_count; e++)
        for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
            char *out = NULL, *second = NULL;
            small_matrix(&m);
            small_rename(&m.topo, 1, wild[i]);
            if (run(&exporters[e], &m, &out, &second) == 0) {
                check_xml(out);
                if (!strcmp(exporters[e].name, "tsv"))
                    assert_null(strstr(out, "\n#"));
                if (!strcmp(exporters[e].name, "simgrid"))
                    assert_true(i == sizeof(wild)); /* a host file is words: all are refused */
            }
            free(out);
            free(second);
            matrix_free(&m);
        }
}

/* No format may loop or crash on machines at the edge. */
static void machines_at_the_edge_are_written_or_refused(void **state)
{
    struct matrix m;

    (void)state;
    for (int e = 0; e < exporter_count; e++)
        for (int kind = 0; kind < 4; kind++) {
            char *out = NULL, *second = NULL;
            matrix_init(&m);
            m.transport = mem_strdup("none");
            if (kind > 0)
                small_topo(&m.topo, 1, kind == 1 ? 1 : 3, 1, kind == 3, ENDPOINT_CPU);
            small_tier(&m, "tcp", 0, 60e-6, 0.4e9, true);
            if (kind == 2) {
                curve_free(&m.tier[0].curve[DIR_ONEWAY]);
                curve_free(&m.tier[0].curve[DIR_UNI]);
            }
            run(&exporters[e], &m, &out, &second);
            free(out);
            free(second);
            matrix_free(&m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_costs_what_the_matrix_says),
        cmocka_unit_test(dead_and_unknown_pairs_are_told_apart),
        cmocka_unit_test(a_line_is_exact_at_its_size),
        cmocka_unit_test(names_with_marks_are_escaped_or_refused),
        cmocka_unit_test(machines_at_the_edge_are_written_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
