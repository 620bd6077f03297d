/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/below.c - which endpoints are the same, and what two figures mean. */
#include <stdlib.h>

#include "test.h"

#include "small.h"
#include "topo/nic.h"
#include "verdict/below.h"

static struct below_figure at(double share, double half, double Bps)
{
    return (struct below_figure){share * Bps,
                                 (share - half) * Bps,
                                 (share + half) * Bps,
                                 share,
                                 share - half,
                                 share + half,
                                 9};
}

/* A row a case: shares and half widths above and below, and what their like give. */
TEST(the_verdicts)
{
    static const struct {
        double above, half_above, like_above, below, half_below, like_below;
        enum below_is is;
    } row[] = {
        {0.6, 0.01, 48, 1.0, 0.01, 49, BELOW_GOOD},
        {0.6, 0.01, 48, 0.6, 0.01, 49, BELOW_SLOW},
        {0.4, 0.01, 48, 0.7, 0.01, 49, BELOW_BOTH},
        {0.6, 0.01, 48, NAN, NAN, 49, BELOW_UNKNOWN},
        {0.6, 0.01, 48, 0.9, 0.05, 49, BELOW_UNSURE}, /* the interval below reaches over 0.9 */
        {0.9, 0.05, 48, 1.0, 0.01, 49, BELOW_UNSURE},
        {0.0, 0.0, 48, 1.0, 0.01, 49, BELOW_GOOD}, /* dead above */
        {0.0, 0.0, 48, 0.0, 0.0, 49, BELOW_SLOW},  /* and below */
        {1.0, 0.01, 48, 1.0, 0.01, 49, BELOW_FINE},
        {1.0, 0.01, 48, 0.5, 0.01, 49, BELOW_OTHER}, /* more than lies below can carry */
        {1.0, 0.01, 700, 1.0, 0.01, 49, BELOW_OTHER},
        {1.0, 0.01, 20, 0.5, 0.01, 49, BELOW_ONLY},
        {1.0, 0.01, 29, 1.0, 0.01, 49, BELOW_GOOD}, /* all of the tier are slow above */
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct below_figure a = at(row[i].above, row[i].half_above, row[i].like_above * 1e9),
                            b = at(row[i].below, row[i].half_below, row[i].like_below * 1e9);
        if (below_judge(&a, &b, BELOW_ENOUGH) != row[i].is)
            fail_msg("row %zu: %s, not %s", i, below_name[below_judge(&a, &b, BELOW_ENOUGH)],
                     below_name[row[i].is]);
    }
}

/* --- endpoints --- */

/* Hosts of two GPUs with a NIC each, or one for both. */
static void machine(struct matrix *m, const char *transport, int hosts, bool shared)
{
    matrix_init(m);
    m->transport = mem_strdup(transport);
    small_topo(&m->topo, 1, hosts, 2, false, ENDPOINT_GPU);
    small_tier(m, "nvlink", 1u << LEVEL_HOST, 1e-6, 700e9, false);
    small_tier(m, "fabric", 0, 6e-6, 50e9, true);
    for (int i = 0; i < m->topo.endpoints; i++) {
        struct nic n;
        if (shared && i % 2) {
            m->topo.endpoint[i].nic = m->topo.endpoint[i - 1].nic;
            continue;
        }
        nic_init(&n, i / 2);
        snprintf(n.name, sizeof(n.name), "mlx5_%d", i % 2);
        m->topo.endpoint[i].nic = m->topo.nics;
        MEM_PUSH(m->topo.nic, m->topo.nics) = n;
    }
}

static int matched(struct below *b, const struct matrix *above, const struct matrix *below,
                   struct err *err)
{
    const struct below_layer x = {.m = above}, y = {.m = below};

    return below_match(b, &x, &y, "low", err);
}

/* Ids of the two have nothing to do with each other. */
TEST(by_host_and_nic)
{
    struct matrix up, low;
    struct below b;
    struct err err;

    machine(&up, "nccl", 4, false);
    machine(&low, "verbs", 3, false);
    /* endpoints of the lower: its NICs the other way round */
    for (int i = 0; i < low.topo.endpoints; i++)
        snprintf(low.topo.nic[i].name, sizeof(low.topo.nic[i].name), "mlx5_%d", 1 - i % 2);
    assert_int_equal(matched(&b, &up, &low, &err), 0);
    assert_int_equal(b.matched, 6);
    for (int i = 0; i < 8; i++)
        assert_int_equal(b.to[i], i < 6 ? i ^ 1 : -1);
    below_free(&b);
    /* other names of the devices, but the ports are the same */
    for (int i = 0; i < low.topo.endpoints; i++) {
        snprintf(low.topo.nic[i].name, sizeof(low.topo.nic[i].name), "rocep%d", i);
        snprintf(low.topo.nic[i].guid, sizeof(low.topo.nic[i].guid), "0x%d", i);
        snprintf(up.topo.nic[i].guid, sizeof(up.topo.nic[i].guid), "0x%d", i);
    }
    assert_int_equal(matched(&b, &up, &low, &err), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(b.to[i], i);
    below_free(&b);
    matrix_free(&up);
    matrix_free(&low);
}

/* Two GPUs of one NIC have one endpoint below, and it has both of them. */
TEST(one_nic_of_two_gpus)
{
    struct matrix up, low;
    struct below b;
    struct err err;

    machine(&up, "nccl", 2, true);
    machine(&low, "verbs", 2, false);
    assert_int_equal(matched(&b, &up, &low, &err), 0);
    assert_int_equal(b.to[0], 0);
    assert_int_equal(b.to[1], 0);
    assert_int_equal(b.first[0], 0);
    assert_int_equal(b.next[0], 1);
    assert_int_equal(b.next[1], -1);
    assert_int_equal(b.first[1], -1);
    below_free(&b);
    matrix_free(&up);
    matrix_free(&low);
}

TEST(what_does_not_lie_below)
{
    static const struct {
        const char *above, *below;
        bool can;
    } row[] = {{"nccl", "verbs", true},
               {"mpi", "verbs", true},
               {"nccl", "mpi", true},
               {"mpi", "nccl", false},
               {"nccl", "nccl", false}};

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct matrix up, low;
        struct below b;
        struct err err = {0, ""};
        machine(&up, row[i].above, 2, false);
        machine(&low, row[i].below, 2, false);
        assert_int_equal(matched(&b, &up, &low, &err), row[i].can ? 0 : -1);
        assert_int_equal(err.code, row[i].can ? 0 : EXIT_DATA);
        below_free(&b);
        matrix_free(&up);
        matrix_free(&low);
    }
}
