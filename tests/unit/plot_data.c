/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/tsv.h"
#include "report/plot/pair_map.h"
#include "report/plot/plot_data.h"
#include "test.h"

enum { MIB = 1 << 20 };

/* A campaign of hosts with `per` CPUs each, in racks of two hosts; 8 GB/s on a host, 1 GB/s in a
 * rack, 0.25 GB/s between racks. */
struct scene {
    struct matrix m;
    struct points p;
    char dir[64];
};

static void curve_of(struct curve *c, double rate)
{
    curve_line(c, 0, rate);
    curve_summarise(c);
}

static void scene_open(struct scene *s, int hosts, int per, const char *name)
{
    static const double rates[] = {8e9, 1e9, 0.25e9};

    memset(s, 0, sizeof(*s));
    matrix_init(&s->m);
    struct topo *t = &s->m.topo;
    for (int h = 0; h < hosts; h++) {
        char host[128], rack[32];
        snprintf(host, sizeof(host), name, h);
        snprintf(rack, sizeof(rack), "rack-%02d", h / 2);
        int index = topo_add_host(t, host);
        for (int k = 0; k < per; k++) {
            int id = topo_add_endpoint(t, index, ENDPOINT_CPU);
            t->endpoint[id].place.at[LEVEL_RACK] = topo_add_group(t, LEVEL_RACK, rack);
        }
    }
    topo_default_tiers(t);
    s->m.tiers = t->tiers;
    for (int i = 0; i < t->tiers; i++) {
        struct tier *tier = &s->m.tier[i];
        tier->rule = t->tier[i];
        tier->nic = strcmp(tier->rule.name, "shm") != 0;
        int speed = !tier->nic ? 0 : tier->rule.same ? 1 : 2;
        for (int d = 0; d < DIR_COUNT; d++)
            curve_of(&tier->curve[d], rates[speed]);
    }
    snprintf(s->dir, sizeof(s->dir), "/tmp/rg-plot-data-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
}

static void scene_close(struct scene *s)
{
    static const char *const names[] = {"busbw.tsv",
                                        "busbw_panel.tsv",
                                        "busbw_label.tsv",
                                        "busbw_peak.tsv",
                                        "heat_GBps.bin",
                                        "heat_share.bin",
                                        "heat_rgb.bin",
                                        "heat_meta.tsv",
                                        "heat_GBps_palette.tsv",
                                        "heat_share_palette.tsv",
                                        "heat_tick.tsv",
                                        "heat_line.tsv",
                                        "heat_cell.tsv",
                                        "heat_call.tsv",
                                        "dist.tsv",
                                        "dist_tier.tsv",
                                        "dist_meta.tsv",
                                        "dist_density.tsv"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *path = file_join(s->dir, names[i]);
        unlink(path);
        free(path);
    }
    assert_int_equal(rmdir(s->dir), 0); /* nothing but the documented tables */
    for (int i = 0; i < s->m.exceptions; i++)
        s->m.exception[i].why = NULL;
    matrix_free(&s->m);
    free(s->p.point);
}

static struct point *measure(struct scene *s, int src, int dst, double GBps)
{
    struct point q = {.op = OP_PAIR_BW,
                      .stage = STAGE_CLASS,
                      .src = src,
                      .dst = dst,
                      .ranks = 2,
                      .flows = 4,
                      .bytes = MIB,
                      .stop = STOP_CI,
                      .checked = true};

    q.sec.median = MIB / (GBps * 1e9);
    MEM_PUSH(s->p.point, s->p.count) = q;
    return &s->p.point[s->p.count - 1];
}

static void except(struct scene *s, enum part part, int a, int b, double factor)
{
    struct exception e = {.part = part, .a = a, .b = b, .tier = -1, .factor = factor};

    MEM_PUSH(s->m.exception, s->m.exceptions) = e;
}

static struct collective *collect(struct scene *s, enum op op, int n, double busbw)
{
    struct collective c = {.op = op, .basis = BASIS_MEASURED};
    int *ids = mem_calloc((size_t)n, sizeof(*ids));

    for (int i = 0; i < n; i++)
        ids[i] = i;
    shape_of(&c.shape, &s->m.topo, ids, n);
    for (double b = 1024; b <= MIB; b *= 4) {
        double sec = b * op_bus_factor(op, n) / busbw;
        curve_add(&c.curve, (struct curve_point){b, sec, sec * 0.9, sec * 1.1, 50});
    }
    free(ids);
    MEM_PUSH(s->m.collective, s->m.collectives) = c;
    return &s->m.collective[s->m.collectives - 1];
}

static void table(struct tsv *t, const struct scene *s, const char *name)
{
    struct err err = {0};
    char *path = file_join(s->dir, name);

    if (tsv_load(t, path, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
}

static const char *cell(const struct tsv *t, int row, const char *column)
{
    int c = tsv_find(t, column);

    assert_true(c >= 0 && row < t->rows);
    return t->row[row].cell[c];
}

static double number(const struct tsv *t, int row, const char *column)
{
    return strtod(cell(t, row, column), NULL);
}

static const char *meta(const struct tsv *t, const char *key)
{
    for (int i = 0; i < t->rows; i++)
        if (!strcmp(t->row[i].cell[0], key))
            return t->row[i].cell[1];
    fail_msg("no key %s", key);
    return NULL;
}

/* Cell (row, col) of one of the two binary matrices. */
static float bin(const struct scene *s, const char *name, int row, int col)
{
    char *path = file_join(s->dir, name);
    FILE *f = fopen(path, "rb");
    float n, v;

    assert_non_null(f);
    assert_int_equal(fread(&n, sizeof(n), 1, f), 1);
    long at = (1 + (long)n + row * ((long)n + 1) + 1 + col) * (long)sizeof(float);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fread(&v, sizeof(v), 1, f), 1);
    fclose(f);
    free(path);
    return v;
}

/* 0xRRGGBB of a cell of n x n in the map of bandwidth, or that of shares. */
static unsigned colour(const struct scene *s, int n, bool share, int row, int col)
{
    unsigned char cell[3] = {0};
    char *path = file_join(s->dir, "heat_rgb.bin");
    FILE *f = fopen(path, "rb");

    free(path);
    assert_non_null(f);
    assert_int_equal(fseek(f, 3L * (share * n * n + row * n + col), SEEK_SET), 0);
    assert_int_equal(fread(cell, sizeof(cell), 1, f), 1);
    fclose(f);
    return (unsigned)cell[0] << 16 | (unsigned)cell[1] << 8 | cell[2];
}

static void draw_pairs(struct scene *s, const struct points *p)
{
    struct pair_map pairs = {.n = 0};
    const struct plot_source source = {.matrix = &s->m, .points = p, .pairs = &pairs};
    struct err err = {0};

    if (plot_data_heat(&source, s->dir, &err) < 0 || plot_data_dist(&source, s->dir, &err) < 0)
        fail_msg("%s", err.text);
    pair_map_free(&pairs);
}

/* --- pairs --- */

TEST(a_pair_that_ran_alone_hides_what_it_did_in_company)
{
    struct scene s;
    struct pair_map ps;

    scene_open(&s, 4, 1, "node-%d");
    measure(&s, 0, 1, 0.4);
    measure(&s, 0, 1, 0.9)->stage = STAGE_RETEST;
    measure(&s, 0, 2, 0.1);
    measure(&s, 0, 2, 0.2)->epoch = 1;
    measure(&s, 0, 2, 0.24)->epoch = 2;
    measure(&s, 1, 0, 0.9)->wrong = true;
    assert_int_equal(pair_map_init(&ps, &s.m, &s.p, NULL, NULL), 0);
    assert_int_equal(ps.samples, 3);
    assert_float_equal(pair_map_rate(&ps, 0, 1) / 1e9, 0.9, 1e-9);
    assert_float_equal(pair_map_rate(&ps, 0, 2) / 1e9, 0.2, 1e-9); /* median of the epochs */
    assert_true(isnan(pair_map_rate(&ps, 1, 0)));                  /* wrong data is no bandwidth */
    assert_float_equal(pair_map_rate(&ps, 2, 3) / 1e9, 1, 0.01);   /* not measured: its tier */
    assert_float_equal(pair_map_share(&ps, 0, 1, pair_map_rate(&ps, 0, 1)), 0.9, 0.01);
    assert_true(isnan(pair_map_rate(&ps, 2, 2)));
    pair_map_free(&ps);
    scene_close(&s);
}

TEST(one_endpoint_has_no_pairs_to_plot)
{
    struct scene s;
    struct pair_map ps;
    struct err err = {0};

    scene_open(&s, 1, 1, "node-%d");
    assert_int_equal(pair_map_init(&ps, &s.m, NULL, NULL, &err), -1);
    assert_string_equal(err.text, "no pairs to plot: 1 endpoint");
    assert_int_equal(err.code, EXIT_DATA);
    scene_close(&s);
}

/* Rules of several levels, some of which are not known of some, exceptions of each kind, and samples. */
static void random_scene(struct scene *s, struct rng *r)
{
    static const double factor[] = {0, 0.3, 0.7, 1};
    struct topo *t = &s->m.topo;

    scene_open(s, 12, 3, "node-%d");
    for (int i = 0; i < t->endpoints; i++)
        for (int l = LEVEL_DOMAIN; l <= LEVEL_RAIL; l++) {
            char name[32];
            snprintf(name, sizeof(name), "x-%u", rng_below(r, 3));
            t->endpoint[i].place.at[l] = rng_below(r, 5) ? topo_add_group(t, l, name) : -1;
        }
    for (int i = 0; i + 1 < t->tiers; i++)
        s->m.tier[i].rule.same = t->tier[i].same = rng_below(r, 1u << (LEVEL_RAIL + 1));
    for (int i = 0; i < 12; i++) {
        int part = (int)rng_below(r, PART_RACK_UPLINKS + 1);
        unsigned n = (unsigned)part_count(&s->m, (enum part)part);
        int a = (int)rng_below(r, n),
            b = part == PART_PAIR || part == PART_RACK_PAIR ? (int)rng_below(r, n) : -1;
        except(s, (enum part)part, a, b, factor[rng_below(r, 4)]);
        s->m.exception[s->m.exceptions - 1].side = (enum side)rng_below(r, SIDE_COUNT);
        s->m.exception[s->m.exceptions - 1].tier = (int)rng_below(r, (unsigned)t->tiers + 1) - 1;
    }
    for (int i = 0; i < 200; i++) {
        struct point *p = measure(s, (int)rng_below(r, 36), (int)rng_below(r, 36), rng_uniform(r));
        p->stage = rng_below(r, 4) ? STAGE_CLASS : STAGE_RETEST;
        p->wrong = rng_below(r, 9) == 0;
    }
}

static void judge_row(const struct scene *s, const struct pair_map *ps, int row)
{
    const struct heat h = pair_map_heat(ps, HEAT_AMOUNT);
    double GBps[36], share[36];
    int all[36];

    for (int k = 0; k < ps->n; k++)
        all[k] = k;
    h.values(h.arg, row, all, ps->n, GBps, share);
    for (int k = 0; k < ps->n; k++) {
        int src = ps->order[row], dst = ps->order[k], tier = topo_tier(&s->m.topo, src, dst);
        const struct pair_sample *q = pair_map_sample(ps, src, dst);
        double factor = matrix_factor(&s->m, src, dst, NULL, NULL);
        double Bps = q ? q->Bps : factor > 0 ? factor * ps->expected[tier] : NAN;
        if (src == dst)
            continue;
        assert_int_equal(pair_map_tier(ps, src, dst), tier);
        assert_true(GBps[k] == Bps / 1e9 || (isnan(GBps[k]) && isnan(Bps)));
        assert_true(share[k] == 100 * (Bps / ps->expected[tier]) || isnan(Bps));
    }
}

TEST(a_row_of_the_map_is_what_each_of_its_pairs_is)
{
    unsigned long long seed = (unsigned long long)time(NULL);
    struct rng r;

    print_message("seed %llu\n", seed);
    rng_seed(&r, seed);
    for (int round = 0; round < 50; round++) {
        struct scene s;
        struct pair_map ps;
        random_scene(&s, &r);
        assert_int_equal(pair_map_init(&ps, &s.m, &s.p, NULL, NULL), 0);
        for (int i = 0; i < ps.n; i++)
            judge_row(&s, &ps, i);
        pair_map_free(&ps);
        scene_close(&s);
    }
}

/* --- heat --- */

TEST(heat_shows_the_slow_host_as_row_and_column)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 8, 1, "node-%d");
    except(&s, PART_HOST, 5, -1, 0.5);
    draw_pairs(&s, NULL);
    assert_float_equal(bin(&s, "heat_share.bin", 5, 0), 50, 0.1);
    assert_float_equal(bin(&s, "heat_share.bin", 2, 5), 50, 0.1);
    assert_float_equal(bin(&s, "heat_share.bin", 2, 3), 100, 0.1);
    assert_float_equal(bin(&s, "heat_GBps.bin", 2, 3), 1, 0.01);
    assert_float_equal(bin(&s, "heat_GBps.bin", 2, 5), 0.125, 0.01);
    assert_true(isnan(bin(&s, "heat_share.bin", 4, 4)));
    table(&t, &s, "heat_call.tsv");
    assert_int_equal(t.rows, 1);
    assert_string_equal(cell(&t, 0, "name"), "node-5");
    assert_string_equal(cell(&t, 0, "what"), "50% of expected");
    assert_string_equal(cell(&t, 0, "place"), "5");
    tsv_free(&t);
    table(&t, &s, "heat_meta.tsv");
    assert_string_equal(meta(&t, "title"),
                        "Pair bandwidth, 8 ranks on 8 hosts in 4 racks: node-5 at 50% of expected");
    assert_non_null(
        strstr(meta(&t, "subtitle"), "from the tiers and exceptions of the cost matrix"));
    assert_string_equal(meta(&t, "axis"), "host node-…");
    tsv_free(&t);
    table(&t, &s, "heat_line.tsv"); /* between the racks */
    assert_int_equal(t.rows, 3);
    assert_string_equal(cell(&t, 0, "place"), "1.5");
    tsv_free(&t);
    scene_close(&s);
}

TEST(a_host_without_data_is_missing_and_named)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 4, 2, "node-%d");
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            if (i != k) {
                bool dead = i / 2 == 3 || k / 2 == 3;
                measure(&s, i, k, 1)->stop = dead ? STOP_FAILED : STOP_CI;
            }
    draw_pairs(&s, &s.p);
    assert_true(isnan(bin(&s, "heat_share.bin", 7, 0)));
    assert_int_equal(colour(&s, 8, false, 7, 0), HEAT_MISSING);
    assert_false(isnan(bin(&s, "heat_share.bin", 5, 0)));
    table(&t, &s, "heat_call.tsv");
    assert_int_equal(t.rows, 1);
    assert_string_equal(cell(&t, 0, "name"), "node-3");
    assert_string_equal(cell(&t, 0, "what"), "no data");
    tsv_free(&t);
    scene_close(&s);
}

TEST(five_thousand_endpoints_are_blocks_that_keep_one_bad_pair)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 2500, 2, "node-%d");
    measure(&s, 4321, 1234, 0.05); /* a fifth of what goes between racks */
    measure(&s, 0, 1, 8);
    draw_pairs(&s, &s.p);
    table(&t, &s, "heat_meta.tsv");
    assert_string_equal(meta(&t, "span"), "8"); /* two racks: five would cut every other one */
    assert_string_equal(meta(&t, "blocks"), "625");
    assert_non_null(strstr(meta(&t, "subtitle"), "a cell is the worst of 8 x 8"));
    tsv_free(&t);
    assert_float_equal(bin(&s, "heat_share.bin", 4321 / 8, 1234 / 8), 20, 0.1);
    assert_float_equal(bin(&s, "heat_share.bin", 4321 / 8, 1234 / 8 + 1), 100, 0.1);
    scene_close(&s);
}

TEST(cells_divide_racks)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 60, 36, "node-%d"); /* 30 racks of 72: cells of 3 x 3 */
    draw_pairs(&s, NULL);
    table(&t, &s, "heat_meta.tsv");
    assert_string_equal(meta(&t, "span"), "3");
    tsv_free(&t);
    scene_close(&s);
    scene_open(&s, 30, 140, "node-%d"); /* 15 racks of 280: 5 divides them */
    draw_pairs(&s, NULL);
    table(&t, &s, "heat_meta.tsv");
    assert_string_equal(meta(&t, "span"), "5");
    tsv_free(&t);
    scene_close(&s);
    scene_open(&s, 32, 129, "node-%d"); /* 16 racks of 258: 5 does not, 6 does */
    draw_pairs(&s, NULL);
    table(&t, &s, "heat_meta.tsv");
    assert_string_equal(meta(&t, "span"), "6");
    tsv_free(&t);
    scene_close(&s);
}

TEST(cells_that_nobody_measured_are_told_from_measured_ones)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 4, 1, "node-%d");
    measure(&s, 0, 1, 1);
    measure(&s, 2, 0, 0.25);
    draw_pairs(&s, &s.p);
    assert_int_equal(colour(&s, 4, true, 0, 1), 0xf7f7f5); /* as expected */
    assert_int_equal(colour(&s, 4, true, 2, 0), 0xf7f7f5);
    assert_int_equal(colour(&s, 4, true, 0, 2), 0xfafaf9); /* the same under white */
    assert_int_equal(colour(&s, 4, true, 1, 1), 0xf1f2f4);
    assert_int_equal(colour(&s, 4, false, 2, 0), heat_rgb(HEAT_AMOUNT, log(0.25 / 0.2) / log(5)));
    table(&t, &s, "heat_meta.tsv");
    assert_non_null(strstr(meta(&t, "subtitle"), "the others (pale) from the cost matrix"));
    tsv_free(&t);
    scene_close(&s);
    scene_open(&s, 4, 1, "node-%d"); /* nothing measured: nothing to tell apart */
    draw_pairs(&s, NULL);
    assert_int_equal(colour(&s, 4, true, 0, 2), 0xf7f7f5);
    scene_close(&s);
}

TEST(names_of_hosts_cannot_leave_their_cell)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 4, 1, "%d\t\"x\"\n\033`id`$(id)_^{}");
    except(&s, PART_HOST, 1, -1, 0.5);
    draw_pairs(&s, NULL);
    table(&t, &s, "heat_call.tsv");
    assert_int_equal(t.rows, 1);
    assert_string_equal(cell(&t, 0, "name"), "1 'x'??`id`$(id)_^{}");
    tsv_free(&t);
    table(&t, &s, "heat_tick.tsv");
    assert_int_equal(t.rows, 4);
    tsv_free(&t);
    scene_close(&s);
}

/* --- distribution --- */

TEST(the_slow_tail_is_counted_tier_by_tier)
{
    struct scene s;
    struct tsv t;

    scene_open(&s, 4, 1, "node-%d");
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            if (i != k) {
                double rate = i / 2 == k / 2 ? 1 : 0.25;
                measure(&s, i, k, i == 3 && k == 0 ? rate * 0.7 : rate);
            }
    draw_pairs(&s, &s.p);
    table(&t, &s, "dist_tier.tsv");
    assert_int_equal(t.rows, 2);
    assert_string_equal(cell(&t, 0, "where"), "inside a rack");
    assert_string_equal(cell(&t, 0, "count"), "2 pairs");
    assert_string_equal(cell(&t, 0, "below"), "0");
    assert_string_equal(cell(&t, 1, "where"), "between racks");
    assert_string_equal(cell(&t, 1, "below"), "1"); /* one of eight */
    assert_float_equal(number(&t, 1, "min"), 70, 0.1);
    assert_string_equal(cell(&t, 1, "median_GBps"), "0.250");
    assert_string_equal(cell(&t, 1, "worst_GBps"), "0.175");
    tsv_free(&t);
    table(&t, &s, "dist_meta.tsv");
    assert_string_equal(meta(&t, "title"), "Inside a rack and between racks");
    assert_true(strtod(meta(&t, "lo"), NULL) < 70);
    tsv_free(&t);
    table(&t, &s, "dist_density.tsv"); /* so few are dots */
    assert_int_equal(t.rows, 0);
    tsv_free(&t);
    table(&t, &s, "dist.tsv");
    for (int i = 0; i < t.rows; i++)
        assert_true(fabs(number(&t, i, "aside")) < 1);
    tsv_free(&t);
    scene_close(&s);
}

TEST(an_outline_ends_where_the_samples_do)
{
    struct scene s;
    struct tsv t;
    double most = 0, lo = INFINITY, hi = 0;

    scene_open(&s, 20, 1, "node-%d");
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 20; k++)
            if (i / 2 != k / 2)
                measure(&s, i, k, 0.25 * (0.95 + 0.001 * ((i * 20 + k) % 100)));
    draw_pairs(&s, &s.p);
    table(&t, &s, "dist_density.tsv");
    assert_true(t.rows > 100);
    for (int i = 0; i < t.rows; i++) {
        most = fmax(most, number(&t, i, "density"));
        lo = fmin(lo, number(&t, i, "share_percent"));
        hi = fmax(hi, number(&t, i, "share_percent"));
    }
    tsv_free(&t);
    assert_float_equal(most, 1, 1e-9);
    table(&t, &s, "dist_tier.tsv");
    assert_float_equal(lo, number(&t, 0, "min"), 1e-3);
    assert_float_equal(hi, number(&t, 0, "max"), 1e-3);
    tsv_free(&t);
    table(&t, &s, "dist.tsv");
    assert_true(isnan(number(&t, 0, "aside")));
    tsv_free(&t);
    scene_close(&s);
}

TEST(rows_of_a_large_distribution_stand_for_all_its_pairs)
{
    struct scene s;
    struct tsv t;
    double pairs = 0;

    scene_open(&s, 100, 2, "node-%d");
    for (int i = 0; i < 200; i++)
        for (int k = 0; k < 200; k++)
            if (i / 4 != k / 4)
                measure(&s, i, k, 0.25 * (1 + 0.0001 * ((i * 200 + k) % 100)));
    draw_pairs(&s, &s.p);
    table(&t, &s, "dist.tsv");
    assert_true(t.rows <= 4001);
    for (int i = 0; i < t.rows; i++)
        pairs += number(&t, i, "pairs");
    assert_float_equal(pairs, 200 * 196, 0);
    tsv_free(&t);
    scene_close(&s);
}

TEST(equal_pairs_are_one_row_and_a_kind_knows_its_rows)
{
    struct scene s;
    struct tsv t, tier;

    scene_open(&s, 20, 1, "node-%d");
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 20; k++)
            if (i != k)
                measure(&s, i, k, i / 2 == k / 2 ? 1 : k % 5 ? 0.25 : 0.2);
    draw_pairs(&s, &s.p);
    table(&t, &s, "dist.tsv");
    table(&tier, &s, "dist_tier.tsv");
    assert_int_equal(tier.rows, 2);
    assert_string_equal(cell(&tier, 0, "last"), "19"); /* 20 pairs within racks: a dot each */
    assert_string_equal(cell(&tier, 1, "first"), "20");
    assert_string_equal(cell(&tier, 1, "last"), "21");
    assert_int_equal(t.rows, 22);
    assert_string_equal(cell(&t, 20, "series"), "2");
    assert_string_equal(cell(&t, 20, "pairs"), "72"); /* those to every fifth */
    assert_float_equal(number(&t, 20, "share_percent"), 80, 0.1);
    assert_string_equal(cell(&t, 21, "pairs"), "288");
    tsv_free(&tier);
    tsv_free(&t);
    scene_close(&s);
}

/* --- bus bandwidth --- */

TEST(busbw_has_measured_expected_and_peak)
{
    struct scene s;
    struct tsv t;
    struct err err = {0};

    scene_open(&s, 2, 1, "node-%d");
    for (int i = 0; i < s.m.tiers; i++)
        s.m.tier[i].peak_Bps = 1.25e9;
    collect(&s, OP_ALL_REDUCE, 2, 0.9e9);
    if (plot_data_busbw(&(struct plot_source){.matrix = &s.m}, s.dir, &err) < 0)
        fail_msg("%s", err.text);
    table(&t, &s, "busbw.tsv");
    assert_int_equal(t.rows, 6);
    int last = t.rows - 1;
    assert_string_equal(cell(&t, last, "op"), "all_reduce");
    assert_string_equal(cell(&t, last, "bytes"), "1048576");
    assert_float_equal(number(&t, last, "busbw_GBps"), 0.9, 1e-3);
    assert_float_equal(number(&t, last, "lo_GBps"), 0.9 / 1.1, 1e-3);
    assert_float_equal(number(&t, last, "hi_GBps"), 0.9 / 0.9, 1e-3);
    assert_float_equal(number(&t, last, "expected_GBps"), 1, 0.01);
    assert_string_equal(cell(&t, last, "expected_from"), "pairs, modelled within 25 %");
    assert_float_equal(number(&t, last, "peak_GBps"), 1.25, 0.01);
    tsv_free(&t);
    table(&t, &s, "busbw_label.tsv");
    assert_string_equal(cell(&t, 0, "label"), "2 ranks, 2 hosts");
    assert_string_equal(cell(&t, 0, "value"), "0.900 GB/s, 90% of expected");
    tsv_free(&t);
    table(&t, &s, "busbw_peak.tsv");
    assert_string_equal(cell(&t, 0, "text"), "peak: 1.25 GB/s");
    tsv_free(&t);
    scene_close(&s);
}

TEST(labels_at_the_ends_of_lines_never_cover_each_other)
{
    struct scene s;
    struct tsv t;
    struct err err = {0};
    double hi, lo;

    scene_open(&s, 16, 1, "node-%d");
    for (int n = 2; n <= 16; n *= 2) /* four lines that end at one place */
        collect(&s, OP_BROADCAST, n, 0.2e9);
    if (plot_data_busbw(&(struct plot_source){.matrix = &s.m}, s.dir, &err) < 0)
        fail_msg("%s", err.text);
    table(&t, &s, "busbw_panel.tsv");
    lo = number(&t, 0, "lo_GBps"), hi = number(&t, 0, "hi_GBps");
    tsv_free(&t);
    table(&t, &s, "busbw_label.tsv");
    assert_int_equal(t.rows, 4);
    for (int i = 1; i < t.rows; i++) {
        double gap = log(number(&t, i, "at_GBps") / number(&t, i - 1, "at_GBps")) / log(hi / lo);
        assert_true(gap > 0.12);
    }
    tsv_free(&t);
    scene_close(&s);
}

TEST(a_matrix_without_collectives_is_refused_with_a_reason)
{
    struct scene s;
    struct err err = {0};

    scene_open(&s, 2, 1, "node-%d");
    assert_int_equal(plot_data_busbw(&(struct plot_source){.matrix = &s.m}, s.dir, &err), -1);
    assert_string_equal(err.text, "no bus bandwidth to plot: the matrix has no collective");
    assert_int_equal(err.code, EXIT_DATA);
    scene_close(&s);
}

/* --- small parts --- */

TEST(a_group_is_found_for_every_regular_shape)
{
    struct scene s;
    struct shape want, got;

    scene_open(&s, 16, 4, "node-%d");
    static const int pick[][2] = {
        {1, 4}, {2, 1}, {4, 2}, {16, 4}, {8, 1}}; /* hosts, members each */
    for (size_t k = 0; k < sizeof(pick) / sizeof(*pick); k++)
        for (int stride = 1; stride * pick[k][0] <= 16; stride *= 2) {
            int ids[64], n = 0;
            for (int h = 0; h < pick[k][0]; h++)
                for (int m = 0; m < pick[k][1]; m++)
                    ids[n++] = 4 * h * stride + m;
            shape_of(&want, &s.m.topo, ids, n);
            int *found = shape_group(&s.m.topo, &want);
            assert_non_null(found);
            shape_of(&got, &s.m.topo, found, n);
            assert_true(shape_equal(&got, &want));
            free(found);
        }
    want = (struct shape){.ranks = 65, .domains = 65, .per_domain = 1};
    assert_null(shape_group(&s.m.topo, &want));
    scene_close(&s);
}

TEST(text_is_cut_at_characters_and_made_safe)
{
    char buf[PLOT_TEXT];

    assert_string_equal(plot_text(buf, "node-17", 7), "node-17");
    assert_string_equal(plot_text(buf, "node-1712", 7), "node-1…");
    assert_string_equal(plot_text(buf, "äöüß", 3), "äö…");
    assert_string_equal(plot_text(buf, "a\tb\"c\001d\\U", 20), "a b'c?d/U");
    char *lengthy = mem_calloc(1, 1000);
    memset(lengthy, 'x', 999);
    assert_true(strlen(plot_text(buf, lengthy, 900)) < PLOT_TEXT);
    free(lengthy);
}

TEST(nice_numbers_and_counts)
{
    char buf[PLOT_TEXT];

    assert_float_equal(plot_nice(46.9, true), 50, 1e-9);
    assert_float_equal(plot_nice(0.5, true), 0.5, 1e-9);
    assert_float_equal(plot_nice(51, true), 100, 1e-9);
    assert_float_equal(plot_nice(46.9, false), 20, 1e-9);
    assert_string_equal(plot_count(buf, 1, "host"), "1 host");
    assert_string_equal(plot_count(buf, 100000, "rank"), "100,000 ranks");
    assert_string_equal(plot_count(buf, 999, ""), "999");
}

TEST(crowded_places_are_moved_apart_and_stay_inside)
{
    double a[] = {0.5, 0.5, 0.51}, b[] = {0, 0, 0, 0, 0}, c[] = {0.1, 0.9};

    plot_spread(a, 3, 0.1, 0, 1);
    assert_true(a[1] - a[0] > 0.0999 && a[2] - a[1] > 0.0999);
    assert_float_equal((a[0] + a[2]) / 2, 0.503, 0.02); /* around where they were */
    plot_spread(b, 5, 0.5, 0, 1);
    assert_true(b[0] >= -1e-9 && b[4] <= 1 + 1e-9 && b[1] - b[0] > 0.24);
    plot_spread(c, 2, 0.1, 0, 1);
    assert_float_equal(c[0], 0.1, 1e-9);
    assert_float_equal(c[1], 0.9, 1e-9);
}
