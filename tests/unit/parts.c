/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/parts.c - exceptions of a matrix become parts with a kind, a name, a place and a next step. */
#include <stdlib.h>

#include "test.h"

#include "base/stats.h"
#include "report/text/report.h"
#include "small.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

/* 2 racks x 4 hosts x 2 GPUs, leaves and domains as racks are; tiers nvlink, rail, fabric. */
static void machine(struct matrix *m)
{
    char name[32];

    matrix_init(m);
    m->transport = mem_strdup("sim");
    small_topo(&m->topo, 2, 4, 2, true, ENDPOINT_GPU);
    for (int i = 0; i < m->topo.endpoints; i++) {
        struct place *p = &m->topo.endpoint[i].place;
        snprintf(name, sizeof(name), "leaf-%d", p->at[LEVEL_RACK]);
        p->at[LEVEL_LEAF] = topo_add_group(&m->topo, LEVEL_LEAF, name);
        snprintf(name, sizeof(name), "domain-%d", p->at[LEVEL_RACK]);
        p->at[LEVEL_DOMAIN] = topo_add_group(&m->topo, LEVEL_DOMAIN, name);
    }
    small_tier(m, "nvlink", 1u << LEVEL_DOMAIN, 1e-6, 700e9, false);
    small_tier(m, "rail", 1u << LEVEL_LEAF, 5e-6, 50e9, true);
    small_tier(m, "fabric", 0, 6e-6, 50e9, true);
    for (int i = 0; i < m->tiers; i++)
        m->tier[i].pairs = 10;
}

static void list(struct parts *p, const struct matrix *m, const struct matrix *reference)
{
    struct err err;
    const struct parts_input in = {
        .m = m, .reference = reference, .reference_name = "last month", .no_cost = true};

    assert_int_equal(parts_list(p, &in, &err), 0);
}

/* The kind of one exception by itself, and a piece of its name. */
static void is_a(enum part part, int a, int b, int tier, double factor, enum part_kind kind,
                 const char *name)
{
    struct matrix m;
    struct parts p;

    machine(&m);
    small_exception(&m, part, a, b, tier, factor);
    list(&p, &m, NULL);
    assert_int_equal(p.rows, 1);
    assert_int_equal(p.row[0].kind, kind);
    assert_string_equal(p.row[0].name, name);
    assert_true(*p.row[0].next && *p.row[0].source);
    assert_null(strchr(p.row[0].next, '{'));
    parts_free(&p);
    matrix_free(&m);
}

TEST(the_kind_follows_from_part_and_tier)
{
    is_a(PART_ENDPOINT, 5, -1, -1, 0.5, PART_KIND_NIC, "NIC of n02 (GPU 1)");
    is_a(PART_ENDPOINT, 5, -1, 1, 0.5, PART_KIND_NIC, "NIC of n02 (GPU 1)");
    is_a(PART_ENDPOINT, 5, -1, 0, 0.5, PART_KIND_GPU, "GPU 1 of n02");
    is_a(PART_ENDPOINT, 5, -1, -1, 0, PART_KIND_GPU, "GPU 1 of n02");
    is_a(PART_HOST, 3, -1, -1, 0.5, PART_KIND_HOST, "host n03");
    is_a(PART_PAIR, 1, 9, 2, 0.5, PART_KIND_CABLE, "path between n00:1 and n04:1");
    is_a(PART_PAIR, 1, 2, 0, 0.5, PART_KIND_LINK, "link between n00:1 and n01:0");
    is_a(PART_LEAF, 1, -1, -1, 0.5, PART_KIND_LEAF, "leaf-1");
    is_a(PART_LEAF, 1, -1, 2, 0.5, PART_KIND_UPLINKS, "uplinks of leaf-1");
    is_a(PART_RACK, 0, -1, -1, 0.5, PART_KIND_RACK, "rack-00");
    is_a(PART_RACK, 0, -1, 0, 0.5, PART_KIND_DOMAIN, "NVLink domain-0");
    is_a(PART_RACK_UPLINKS, 0, -1, 2, 0.5, PART_KIND_UPLINKS, "uplinks of rack-00");
    is_a(PART_RACK_PAIR, 0, 1, -1, 0.5, PART_KIND_RACK_PAIR, "racks rack-00 and rack-01");
}

static const struct {
    enum part part;
    int a, b;
} every_part[] = {{PART_ENDPOINT, 5, -1},    {PART_HOST, 3, -1}, {PART_RACK_PAIR, 0, 1},
                  {PART_PAIR, 1, 9},         {PART_LEAF, 1, -1}, {PART_RACK, 0, -1},
                  {PART_RACK_UPLINKS, 0, -1}};
enum { EVERY_PART = sizeof(every_part) / sizeof(*every_part) };

static const struct {
    double depth, share, bytes;
    const char *effect, *unknown; /* unknown: neither depth nor share nor size is known */
} every_state[STATE_COUNT] = {
    [STATE_SLOW] = {0.5, 0, 0, "0.50", NULL},
    [STATE_INTERMITTENT] = {0.5, 0.4, 0, "0.50 in 40 % of the time", "less at times"},
    [STATE_LOADED] = {0.45, 0, 0, "0.45 beside other traffic", "less beside other traffic"},
    [STATE_BOTH_WAYS] = {0.6, 0, 0, "0.60 both ways at once", "less both ways at once"},
    [STATE_SMALL] = {0.3, 0, 65536, "0.30 up to 64 KiB", "less at small sizes"},
    [STATE_LARGE] = {0.3, 0, 134217728, "0.30 from 128 MiB on", "less at large sizes"},
    [STATE_SAMPLES] = {0.5, 0.1, 0, "10 % of messages at 0.50", "some messages slow"},
    [STATE_LOST_UPLINKS] = {0.5, 0, 0, "0.50 of its uplinks", "less of its uplinks"},
    [STATE_LATE] = {0, 0, 0, "+3.00 us", NULL},
    [STATE_DEAD] = {0, 0, 0, "no answer", NULL},
    [STATE_WRONG] = {0, 0.075, 0, "wrong data in 3 of 40 checks", "wrong data"},
};

static void add_state(struct matrix *m, int part, enum part_state state, bool known)
{
    double depth = known ? every_state[state].depth : 0,
           share = known ? every_state[state].share : 0;
    struct exception *e =
        small_exception(m, every_part[part].part, every_part[part].a, every_part[part].b, -1,
                        part_factor(state, every_state[state].depth, share));

    e->state = state;
    e->wrong = state == STATE_WRONG;
    e->depth = state == STATE_SLOW ? 0 : depth;
    e->share = share;
    e->bytes = known ? every_state[state].bytes : 0;
    e->alpha_add = state == STATE_LATE ? 3e-6 : 0;
    e->evidence = 3;
    e->partners = 3;
    if (!known && state == STATE_INTERMITTENT)
        e->factor = 1;
}

TEST(shares_are_printed_without_exponents)
{
    static const struct {
        double share;
        const char *text;
    } row[] = {{0.075, "7.5 % of messages at 0.50"},
               {0.994, "99 % of messages at 0.50"},
               {0.996, "99.6 % of messages at 0.50"},
               {1, "100 % of messages at 0.50"}};
    char buf[MATRIX_EFFECT];

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct exception e = {
            .state = STATE_SAMPLES, .factor = 1, .depth = 0.5, .share = row[i].share};

        assert_string_equal(matrix_effect(&e, false, buf), row[i].text);
    }
}

static char *printed(const struct parts *p)
{
    static char
        *text; /* gcc 12 takes the address in the stream for one that outlives the function */
    static size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    parts_text(out, p, 0, false, "");
    fclose(out);
    return text;
}

/* The words of one cell, in text and JSON. */
static void cell_is_said(const struct matrix *m, enum part_state state, const char *effect)
{
    struct parts p;
    char speed[PART_SPEED];

    list(&p, m, NULL);
    assert_int_equal(p.rows, 1);
    const struct part_row *r = &p.row[0];
    assert_int_equal(r->state, state);
    assert_string_equal(part_speed(r, speed), effect);
    assert_true(*r->name && *r->next && *r->source);
    assert_null(strchr(r->next, '{'));
    assert_null(strchr(r->name, '?'));
    char *text = printed(&p),
         *cell = mem_printf("%s: %s, confidence ", r->name, part_words(r, speed));
    assert_non_null(strstr(text, cell));
    assert_null(strstr(text, "nan"));
    json_t *json = parts_json(&p), *row = json_array_get(json_object_get(json, "parts"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "effect")), effect);
    assert_string_equal(json_string_value(json_object_get(row, "state")), part_state_name[state]);
    json_decref(json);
    free(cell);
    free(text);
    parts_free(&p);
}

/* Limits judge each cell, and none is good: WARN or FAIL. */
static void cell_is_judged(const struct matrix *m, const struct limits *limits, bool known)
{
    struct parts p;
    struct accept a;

    list(&p, m, NULL);
    accept_judge(
        &a, &(struct accept_input){.measured = m, .parts = &p, .why = "test", .limits = limits});
    assert_int_not_equal(a.verdict, ACCEPT_PASS);
    if (known)
        assert_true(a.count[ACCEPT_WARN] + a.count[ACCEPT_FAIL] > 0);
    for (int i = 0; i < a.rows; i++) {
        char *text = accept_text(&a.row[i]);
        assert_null(strstr(text, "nan"));
        free(text);
    }
    accept_free(&a);
    parts_free(&p);
}

/* Limits of parts alone: what the small machine lacks is not asked for. */
static void part_limits(struct limits *l)
{
    struct err err;
    int kept = 0;

    assert_int_equal(limits_builtin(l, NULL, &err), 0);
    for (int i = 0; i < l->count; i++) {
        enum check c = l->limit[i].check;
        struct limit other = l->limit[kept];
        if (c > CHECK_PART_LATENCY || c == CHECK_FAILED_POINTS)
            continue;
        l->limit[kept++] = l->limit[i];
        l->limit[i] = other;
    }
    while (l->count > kept) {
        free(l->limit[--l->count].tier);
        free(l->limit[l->count].source);
    }
}

TEST(every_part_in_every_state_is_named_and_judged)
{
    struct limits limits = {0};
    struct matrix m;

    part_limits(&limits);
    for (int k = 0; k < EVERY_PART * STATE_COUNT * 2; k++) {
        enum part_state is = (enum part_state)(k / 2 % STATE_COUNT);
        bool known = k % 2 || !every_state[is].unknown;
        machine(&m);
        add_state(&m, k / 2 / STATE_COUNT, is, known);
        cell_is_said(&m, is, known ? every_state[is].effect : every_state[is].unknown);
        cell_is_judged(&m, &limits, known);
        matrix_free(&m);
    }
    limits_free(&limits);
}

/* Times add up: 0.5 in 40 % of the time takes 1.4 times as long; other conditions cost no transfer that is priced. */
TEST(prices_expect_what_a_state_costs_on_average)
{
    assert_float_equal(1 / part_factor(STATE_INTERMITTENT, 0.5, 0.4), 1.4, 1e-12);
    assert_float_equal(part_factor(STATE_INTERMITTENT, 0.5, 0), 1, 0);
    assert_float_equal(part_factor(STATE_INTERMITTENT, 0, 0.1), 0, 0);
    assert_float_equal(part_factor(STATE_SLOW, 0.5, 0), 0.5, 0);
    assert_float_equal(part_factor(STATE_DEAD, 0.5, 1), 0, 0);
    for (enum part_state s = STATE_LOADED; s <= STATE_LATE; s++)
        assert_float_equal(part_factor(s, 0.5, 0.4), 1, 0);
}

/* HGX: a domain per host.  A rack that is slow over NVLink is a rack, and its name has no question mark. */
TEST(a_rack_of_many_domains_is_no_domain)
{
    struct matrix m;
    struct parts p;

    machine(&m);
    for (int i = 0; i < m.topo.endpoints; i++) {
        char name[32];
        snprintf(name, sizeof(name), "domain-h%d", i / 2);
        m.topo.endpoint[i].place.at[LEVEL_DOMAIN] = topo_add_group(&m.topo, LEVEL_DOMAIN, name);
    }
    small_exception(&m, PART_RACK, 0, -1, 0, 0.5);
    list(&p, &m, NULL);
    assert_int_equal(p.row[0].kind, PART_KIND_RACK);
    assert_string_equal(p.row[0].name, "rack-00");
    assert_null(strstr(p.row[0].next, "NVLink switch trays"));
    parts_free(&p);
    matrix_free(&m);
}

/* Whatever tiers show it, a part is one line; another side or state is another. */
TEST(a_part_is_one_line)
{
    struct matrix m;
    struct parts p;

    machine(&m);
    small_exception(&m, PART_HOST, 3, -1, -1, 0.8);
    small_exception(&m, PART_HOST, 3, -1, 0, 0.7);
    small_exception(&m, PART_ENDPOINT, 1, -1, -1, 0.5)->side = SIDE_TX;
    small_exception(&m, PART_ENDPOINT, 1, -1, -1, 0.6)->side = SIDE_RX;
    small_exception(&m, PART_ENDPOINT, 9, -1, -1, 0)->wrong = true;
    list(&p, &m, NULL);
    assert_int_equal(p.rows, 4);
    assert_int_equal(p.row[0].state, STATE_WRONG);
    assert_string_equal(p.row[1].name, "NIC of n00 (GPU 1), sending");
    assert_string_equal(p.row[2].name, "NIC of n00 (GPU 1), receiving");
    assert_string_equal(p.row[3].over, "all NICs and nvlink");
    assert_int_equal(p.row[3].exceptions, 2);
    assert_true(p.row[3].factor == 0.7);
    parts_free(&p);
    matrix_free(&m);
}

static int severity(const struct part_row *r)
{
    return r->state == STATE_WRONG ? 2 : r->state == STATE_DEAD;
}

/* Random exceptions: what is wrong comes before what is dead, that before what is slow. */
TEST(the_worst_comes_first)
{
    struct rng rng;

    rng_seed(&rng, 5);
    for (int k = 0; k < 50; k++) {
        struct matrix m;
        struct parts p;
        machine(&m);
        for (int i = 0; i < 8; i++) {
            double u = rng_uniform(&rng);
            struct exception *e =
                small_exception(&m, PART_ENDPOINT, 2 * i, -1, -1, u < 0.4 ? 0 : u);
            e->wrong = u < 0.2;
        }
        list(&p, &m, NULL);
        assert_int_equal(p.rows, 8);
        for (int i = 1; i < p.rows; i++) {
            assert_true(severity(&p.row[i - 1]) >= severity(&p.row[i]));
            if (p.row[i].state == STATE_SLOW && p.row[i - 1].state == STATE_SLOW)
                assert_true(p.row[i - 1].factor <= p.row[i].factor);
        }
        parts_free(&p);
        matrix_free(&m);
    }
}

/* Names of devices where the topology has them, else what would tell. */
TEST(places_are_named_or_said_to_be_missing)
{
    struct matrix m;
    struct parts p;
    struct nic nic;
    struct gpu gpu;

    machine(&m);
    small_exception(&m, PART_ENDPOINT, 5, -1, -1, 0.5);
    list(&p, &m, NULL);
    assert_string_equal(p.row[0].where, "rack-00, leaf-0");
    assert_non_null(strstr(p.row[0].missing, "switch port (--ibnet or --lldp)"));
    assert_non_null(strstr(p.row[0].missing, "tray and slot"));
    parts_free(&p);

    nic_init(&nic, 2);
    gpu_init(&gpu);
    nic.layer = LINK_INFINIBAND;
    snprintf(nic.name, sizeof(nic.name), "mlx5_1");
    snprintf(nic.leaf, sizeof(nic.leaf), "sw-7");
    snprintf(nic.leaf_port, sizeof(nic.leaf_port), "1/17");
    snprintf(gpu.chassis, sizeof(gpu.chassis), "1821325191");
    gpu.host = 2;
    gpu.tray = 5;
    gpu.slot = 9;
    MEM_PUSH(m.topo.nic, m.topo.nics) = nic;
    MEM_PUSH(m.topo.gpu, m.topo.gpus) = gpu;
    m.topo.endpoint[5].nic = m.topo.endpoint[5].gpu = 0;
    list(&p, &m, NULL);
    assert_string_equal(p.row[0].name, "NIC mlx5_1 of n02 (GPU 1)");
    assert_string_equal(p.row[0].where,
                        "rack-00, tray 5, slot 9, chassis 1821325191, sw-7 port 1/17");
    assert_string_equal(p.row[0].missing, "");
    assert_non_null(strstr(p.row[0].next, "mlx5_1 of n02 to sw-7 port 1/17: rate and width"));
    parts_free(&p);
    matrix_free(&m);
}

static void halve(struct matrix *m, int tier)
{
    small_scale(&m->tier[tier].curve[DIR_UNI], 2);
}

/* Racks that only measuring found are the matrix's; the campaign's topology has the devices. */
TEST(what_was_measured_has_its_name)
{
    struct matrix m;
    struct topo blind;
    struct nic nic;
    struct parts p;
    struct err err;

    machine(&m);
    topo_init(&blind);
    small_topo(&blind, 2, 4, 2, false, ENDPOINT_GPU);
    nic_init(&nic, 2);
    snprintf(nic.name, sizeof(nic.name), "mlx5_1");
    MEM_PUSH(blind.nic, blind.nics) = nic;
    blind.endpoint[5].nic = 0;
    small_exception(&m, PART_RACK_PAIR, 0, 1, -1, 0.5);
    small_exception(&m, PART_ENDPOINT, 5, -1, -1, 0.6);
    const struct parts_input in = {.m = &m, .topo = &blind, .no_cost = true};
    assert_int_equal(parts_list(&p, &in, &err), 0);
    assert_int_equal(p.rows, 2);
    assert_string_equal(p.row[0].name, "racks rack-00 and rack-01");
    assert_string_equal(p.row[1].name, "NIC mlx5_1 of n02 (GPU 1)");
    parts_free(&p);
    topo_free(&blind);
    matrix_free(&m);
}

/* All pairs alike are no part until there is something to compare with. */
TEST(the_whole_fabric_is_seen_beside_a_reference)
{
    struct matrix m, half, rails;

    machine(&m);
    machine(&half);
    machine(&rails);
    halve(&half, 1);
    halve(&half, 2);
    halve(&rails, 2);
    struct parts p;
    list(&p, &half, NULL);
    assert_int_equal(p.rows, 0);
    parts_free(&p);
    list(&p, &half, &m);
    assert_int_equal(p.rows, 1);
    assert_int_equal(p.row[0].kind, PART_KIND_FABRIC);
    assert_string_equal(p.row[0].name, "the whole fabric, beside last month");
    assert_true(fabs(p.row[0].factor - 0.5) < 0.01);
    parts_free(&p);
    list(&p, &rails, &m);
    assert_string_equal(p.row[0].name, "all pairs of fabric, beside last month");
    parts_free(&p);
    list(&p, &m, &half); /* better than the reference */
    assert_int_equal(p.rows, 0);
    parts_free(&p);
    matrix_free(&m);
    matrix_free(&half);
    matrix_free(&rails);
}

/* A slow part makes a step longer, a slower one more so; without it the step is the healthy one. */
TEST(what_a_part_costs_is_the_step_with_it)
{
    double last = 0;

    for (double factor = 0.9; factor > 0.2; factor -= 0.2) {
        struct matrix m;
        struct parts p;
        struct err err;
        machine(&m);
        m.fabric = mem_strdup("gb200-nvl72");
        small_exception(&m, PART_ENDPOINT, 5, -1, -1, factor);
        assert_int_equal(parts_list(&p, &(struct parts_input){.m = &m}, &err), 0);
        assert_non_null(p.job);
        assert_true(p.row[0].cost >= last - 1e-9);
        last = p.row[0].cost;
        parts_free(&p);
        matrix_free(&m);
    }
    assert_true(last > 0.01 && last < 4);
}
