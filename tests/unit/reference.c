/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated campaigns on every preset: healthy ones reach what is expected, no fault raises it, and
 * where nothing honest can be expected nothing is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "campaign.h"
#include "matrix/reference.h"
#include "test.h"

#define OPS                                                                                        \
    (1u << OP_PAIR_BW | 1u << OP_ALL_GATHER | 1u << OP_ALL_REDUCE | 1u << OP_ALL_TO_ALL |          \
     1u << OP_SENDRECV)

/* Few sizes, of which the last lies beyond what was published. */
static void measure(struct matrix *m, const struct sim_opts *o)
{
    struct plan_opts p;

    plan_defaults(&p);
    p.ops = OPS;
    p.min_bytes = 256 << 10;
    p.max_bytes = (size_t)4 << 30;
    p.factor = 128;
    p.matchings = 1;
    p.epochs = 3;
    campaign(m, o, &p, campaign_points);
}

/* Every share that is shown; returns how many were. */
static int check_shares(const struct matrix *m, const struct sim_opts *o, double least)
{
    struct reference r;
    int shown = 0;

    reference_open(&r, m);
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        int *ids = shape_group(&m->topo, &c->shape);
        for (int k = 0; k < c->curve.points; k++) {
            struct cost want;
            char shape[48];
            reference_of_curve(&r, c, ids, &c->curve.point[k].bytes, 1, &want);
            double share = reference_curve_share(c, &want, c->curve.point[k].sec);
            shown += !isnan(share);
            if (share < least || share > 1.03)
                fail_msg("%s seed %llu %s: %s %s at %g bytes: %.1f %% of expected (%s)", o->fabric,
                         o->seed, o->faults ? o->fault[0] : "healthy", op_name(c->op),
                         shape_text(shape, &c->shape), c->curve.point[k].bytes, 100 * share,
                         want.source);
        }
        free(ids);
    }
    reference_free(&r);
    return shown;
}

static int points_of(const struct matrix *m)
{
    int n = 0;

    for (int i = 0; i < m->collectives; i++)
        n += m->collective[i].curve.points;
    return n;
}

TEST(a_healthy_campaign_reaches_what_is_expected_on_every_preset)
{
    char **name = NULL;
    int count = 0;
    struct err err = {0, ""};

    assert_int_equal(fabric_list(&name, &count, &err), 0);
    assert_true(count >= 10);
    for (int i = 0; i < count; i++)
        for (int seed = 1; seed <= 2; seed++) {
            struct sim_opts o = {.fabric = name[i],
                                 .racks = seed == 1 ? 2 : 1,
                                 .noise = 0.01 * seed,
                                 .seed = (unsigned)seed};
            struct matrix m;
            measure(&m, &o);
            assert_true(points_of(&m) >= 12);
            assert_int_equal(check_shares(&m, &o, 0.97), points_of(&m));
            matrix_free(&m);
        }
    hostlist_free(name, count);
}

TEST(no_fault_raises_a_share)
{
    static const char *const fault[] = {"slow-host=1:0.4", "dead-host=1", "slow-nic=1:0.5",
                                        "slow-gpu=1:0.5"};
    char **name = NULL;
    int count = 0;
    struct err err = {0, ""};

    assert_int_equal(fabric_list(&name, &count, &err), 0);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 4; k++) {
            struct sim_opts o = {.fabric = name[i],
                                 .racks = 1 + (i + k) % 2,
                                 .noise = 0.02,
                                 .seed = (unsigned)(4 * i + k),
                                 .fault = (const char **)&fault[k],
                                 .faults = 1,
                                 .blind = k == 3};
            struct matrix m;
            measure(&m, &o);
            check_shares(&m, &o, 0);
            matrix_free(&m);
        }
    hostlist_free(name, count);
}

/* Two hosts of two, pairs measured at 1 GB/s and 10 us over NICs, 10 GB/s and 1 us inside. */
static void small(struct matrix *m, enum endpoint_kind kind, const char *transport)
{
    static const double Bps[] = {10e9, 1e9}, alpha[] = {1e-6, 10e-6};

    matrix_init(m);
    for (int i = 0; i < 4; i++) {
        int host = i % 2 ? i / 2 : topo_add_host(&m->topo, i ? "b" : "a");
        topo_add_endpoint(&m->topo, host, kind);
    }
    m->transport = mem_strdup(transport);
    m->tiers = 2;
    for (int i = 0; i < 2; i++) {
        struct tier *t = &m->tier[i];
        snprintf(t->rule.name, sizeof(t->rule.name), i ? "net" : "host");
        t->rule.same = i ? 0 : 1u << LEVEL_HOST;
        t->nic = i;
        t->loaded = NAN;
        curve_line(&t->curve[DIR_ONEWAY], alpha[i], Bps[i]);
        curve_line(&t->curve[DIR_UNI], alpha[i] / OP_PAIR_WINDOW, Bps[i]);
        for (int d = 0; d < DIR_BI; d++)
            curve_summarise(&t->curve[d]);
        m->topo.tier[i] = t->rule;
    }
    m->topo.tiers = 2;
}

static double expected(const struct matrix *m, enum op op, const int *ids, int n, double bytes,
                       struct cost *want)
{
    struct reference r;
    char words[80];

    reference_open(&r, m);
    reference_collective(&r, op, ids, n, 1, bytes, want);
    assert_true((*reference_words(&r, want, words) != '\0') == !isnan(want->sec));
    reference_free(&r);
    return want->sec;
}

TEST(where_nothing_can_be_known_nothing_is_expected)
{
    static const int inside[] = {0, 1}, between[] = {0, 2}, all[] = {0, 1, 2, 3};
    struct matrix m;
    struct cost c;

    small(&m, ENDPOINT_CPU, "mpi");
    assert_true(isnan(expected(&m, OP_ALL_REDUCE, inside, 2, 1e9, &c))); /* memory they share */
    assert_true(isnan(expected(&m, OP_ALL_REDUCE, all, 4, 1e9, &c)));    /* and a NIC as well */
    assert_true(isnan(expected(&m, OP_ALL_REDUCE, between, 2, 8, &c)));  /* small: whose choice? */
    assert_true(fabs(expected(&m, OP_ALL_REDUCE, between, 2, 1e9, &c) - 1) < 0.01);
    assert_int_equal(c.basis, BASIS_MODELLED);
    assert_true(c.lo < 0.85 && c.hi > 1.2);
    assert_true(fabs(reference_share(&c, 1.25) - 0.8) < 0.01);
    assert_true(isnan(reference_share(&c, 0.5))); /* twice as fast: the model does not hold here */
    assert_true(isnan(reference_share(&c, NAN)));
    assert_true(isnan(reference_share(&c, INFINITY)));
    matrix_free(&m);
    small(&m, ENDPOINT_GPU, "nccl"); /* of no kind that anything is published of */
    assert_true(isnan(expected(&m, OP_ALL_REDUCE, inside, 2, 1e9, &c)));
    assert_false(isnan(expected(&m, OP_ALL_REDUCE, all, 4, 1e9, &c)));
    matrix_free(&m);
}

/* A machine that nobody declared, whose GPUs are known: inside a host the published curve counts,
 * between hosts only with the same NICs, and only for NCCL. */
TEST(gpus_bring_their_published_curves)
{
    static const int inside[] = {0, 1}, all[] = {0, 1, 2, 3};
    struct fabric f;
    struct matrix m;
    struct cost c;
    struct err err = {0, ""};

    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    for (int nccl = 0; nccl < 2; nccl++) {
        small(&m, ENDPOINT_GPU, nccl ? "nccl" : "mpi");
        for (int i = 0; i < 4; i++)
            snprintf(m.topo.endpoint[i].model, sizeof(m.topo.endpoint[i].model), "%s", f.gpu.name);
        double sec = expected(&m, OP_ALL_REDUCE, inside, 2, 512 << 20, &c);
        if (nccl) {
            assert_true(fabs((512 << 20) / sec / 318.3e9 - 1) < 0.02);
            assert_int_equal(c.basis, BASIS_PRESET);
            assert_true(c.lo >= c.sec); /* an exact figure: faster is faster */
            assert_true(reference_share(&c, 0.9 * c.sec) > 1.1);
        } else {
            assert_true(isnan(sec));
        }
        expected(&m, OP_ALL_REDUCE, all, 4, 512 << 20, &c);
        assert_int_equal(c.basis, BASIS_MODELLED);
        snprintf(m.topo.endpoint[3].model, sizeof(m.topo.endpoint[3].model), "another");
        assert_true(isnan(expected(&m, OP_ALL_REDUCE, inside, 2, 512 << 20, &c)));
        matrix_free(&m);
    }
    fabric_free(&f);
}

/* A preset is not compared with itself. */
TEST(a_preset_has_no_reference)
{
    struct fabric f;
    struct matrix m;
    struct cost c;
    struct err err = {0, ""};

    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    assert_int_equal(matrix_from_fabric(&m, &f, 1, &err), 0);
    assert_true(isnan(expected(&m, OP_ALL_REDUCE, (int[]){0, 1}, 2, 1 << 20, &c)));
    matrix_free(&m);
    fabric_free(&f);
}

TEST_GROUP(campaign_setup, campaign_teardown)
