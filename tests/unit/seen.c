/* seen.c - what a matrix says was looked at is what the plan's pairs come to, counted anew. */
#include "campaign.h"
#include "test.h"

#include <string.h>

#include "base/mem.h"
#include "measure/plan.h"

/* Others that each endpoint meets at full bandwidth, over NICs or not. */
struct recount {
    int gpus, nics; /* that met three, or all they could */
    double cables;
};

static struct recount recount(const struct sim_opts *o, const struct plan_opts *p)
{
    struct recount r = {0};
    struct sim_bed bed;
    struct plan plan;
    struct err err = {0, ""};
    double all;

    assert_int_equal(sim_bed_open(&bed, o, &err), 0);
    const struct topo *t = &bed.seen;
    const int n = t->endpoints;
    assert_int_equal(plan_make(&plan, t, p, &err), 0);
    plan_cables_seen(&plan, t, &r.cables, &all);
    char *met = mem_calloc((size_t)n * (size_t)n, 1);
    for (int i = 0; i < plan.rounds; i++)
        for (int g = 0; g < plan.round[i].groups && plan.round[i].op == OP_PAIR_BW; g++) {
            const int *id = plan.round[i].group[g].members;
            met[id[0] * n + id[1]] = met[id[1] * n + id[0]] = 1;
        }
    char *good = mem_calloc((size_t)t->nics + 1, 1);
    for (int a = 0; a < n; a++) {
        int had[2] = {0, 0}, could[2] = {0, 0};
        for (int b = 0; b < n; b++) {
            if (a == b)
                continue;
            bool nic = bed.fabric.tier[topo_tier(t, a, b)].nic;
            could[nic]++;
            had[nic] += met[a * n + b];
        }
        r.gpus += had[!could[0]] >= (could[!could[0]] < 3 ? could[!could[0]] : 3);
        good[t->endpoint[a].nic] |= had[1] && had[1] >= (could[1] < 3 ? could[1] : 3);
    }
    for (int i = 0; i < t->nics; i++)
        r.nics += good[i];
    free(met);
    free(good);
    plan_free(&plan);
    sim_bed_free(&bed);
    return r;
}

/* Pairs of each tier, one by one. */
static void recount_possible(const struct matrix *m)
{
    const struct topo *t = &m->topo;
    double pairs[TIER_MAX] = {0};

    for (int a = 0; a < t->endpoints; a++)
        for (int b = a + 1; b < t->endpoints; b++)
            pairs[topo_tier(t, a, b)]++;
    for (int i = 0; i < m->tiers; i++)
        assert_true(m->tier[i].possible == pairs[i]);
}

static double judged(const struct matrix *m, enum seen kind)
{
    const struct seen_parts *s = matrix_seen(m, kind);

    return s ? s->judged : -1;
}

TEST(what_was_seen_is_what_was_planned)
{
    static const struct {
        const char *fabric;
        int racks, matchings, nics;
        double cables;
    } of[] = {{"gb200-nvl72", 2, 1, 144, 0}, {"gb200-nvl72", 2, 8, 144, 4},
              {"gb200-nvl72", 5, 2, 360, 1}, {"hgx-h100", 3, 1, 96, 0},
              {"hgx-h100", 9, 8, 288, 0},    {"h200-nvl", 4, 2, 32, 1},
              {"h200-nvl", 8, 8, 64, 0},     {"rtxpro6000-100gbe", 1, 8, 2, 0}};

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct sim_opts o = {.fabric = of[i].fabric, .racks = of[i].racks, .noise = 0.01};
        struct plan_opts p;
        struct matrix m;
        plan_defaults(&p);
        p.ops = 1u << OP_PAIR_BW;
        p.min_bytes = p.max_bytes = p.pair_bytes = 64 << 20;
        p.matchings = of[i].matchings;
        p.cables = of[i].cables;
        struct recount want = recount(&o, &p);
        campaign(&m, &o, &p, campaign_points);
        recount_possible(&m);
        if ((int)judged(&m, SEEN_ENDPOINT) != want.gpus || (int)judged(&m, SEEN_NIC) != want.nics ||
            judged(&m, SEEN_CABLE) != want.cables || matrix_seen(&m, SEEN_NIC)->parts != of[i].nics)
            fail_msg("%s, %d racks: %g GPUs (%d), %g of %g NICs (%d of %d), %g cables (%g)",
                     of[i].fabric, of[i].racks, judged(&m, SEEN_ENDPOINT), want.gpus,
                     judged(&m, SEEN_NIC), matrix_seen(&m, SEEN_NIC)->parts, want.nics, of[i].nics,
                     judged(&m, SEEN_CABLE), want.cables);
        /* a default plan leaves no device, NIC, host or leaf out */
        for (enum seen k = SEEN_ENDPOINT; k <= SEEN_UPLINKS && p.matchings == 8; k++)
            if (matrix_seen(&m, k))
                assert_true(judged(&m, k) == matrix_seen(&m, k)->parts);
        matrix_free(&m);
    }
}

TEST(the_words_say_it)
{
    struct seen_parts seen[] = {{SEEN_ENDPOINT, 8, 7}, {SEEN_UPLINKS, 2, 1}, {SEEN_CABLE, 200, 5}};
    struct matrix m;

    matrix_init(&m);
    assert_null(matrix_seen_text(&m));
    m.seen = seen;
    m.seens = 3;
    char *text = matrix_seen_text(&m);
    assert_string_equal(
        text, "7 of 8 devices, 1 of 2 racks' uplinks, cables: 2.5 % of 200 pairs of NICs");
    free(text);
}

TEST_GROUP(campaign_setup, campaign_teardown)
