/* SPDX-License-Identifier: BSD-3-Clause */
/* What the verbs transport chooses from tables alone: ports, addresses, MTU, windows, pieces, and
 * the words of errors. */
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "test.h"

#include "transport/verbs/verbs_link_impl.h"

static const char *text_of(int rc, const struct err *err)
{
    return rc < 0 ? err->text : "";
}

/* --- addresses --- */

static struct verbs_gid_row row(const char *gid, int index, int type, int prefix)
{
    struct verbs_gid_row r = {.index = index, .type = type, .prefix = prefix};

    assert_int_equal(inet_pton(AF_INET6, gid, r.gid.raw), 1);
    return r;
}

static struct verbs_address roce(const char *host, int asked)
{
    struct verbs_address a = {.ethernet = true, .asked = asked};

    strcpy(a.who, "rxe0 port 1");
    strcpy(a.host, host);
    return a;
}

enum { V1 = VERBS_GID_ROCE_V1, V2 = VERBS_GID_ROCE_V2 };

/* The table that Linux makes of an interface with one address of each kind. */
static struct verbs_address usual(const char *host, const char *ipv4, int asked)
{
    struct verbs_address a = roce(host, asked);
    struct verbs_gid_row r[] = {row("fe80::1", 0, V1, 64), row("fe80::1", 1, V2, 64),
                                row(ipv4, 2, V1, 24), row(ipv4, 3, V2, 24),
                                row("fd00::7", 4, V2, 64)};

    for (size_t i = 0; i < sizeof(r) / sizeof(*r); i++)
        verbs_gid_add(&a, &r[i]);
    return a;
}

TEST(version_2_and_ipv4_come_first)
{
    struct verbs_address a = usual("n1", "::ffff:10.8.0.1", -1),
                         b = usual("n2", "::ffff:10.8.0.2", -1);
    struct verbs_path p, q;
    char text[VERBS_GID_TEXT];
    struct err err;

    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), 0);
    assert_int_equal(p.sgid_index, 3);
    assert_true(p.global && p.type == V2);
    assert_string_equal(verbs_gid_text(text, &p.dgid), "::ffff:10.8.0.2");
    assert_string_equal(p.why, "RoCE v2, IPv4, one subnet");
    assert_int_equal(verbs_gid_path(&q, &b, &a, &err), 0);
    assert_memory_equal(&q.sgid, &p.dgid, sizeof(p.dgid));
}

TEST(of_two_subnets_the_common_one_is_taken)
{
    struct verbs_address a = roce("n1", -1), b = roce("n2", -1);
    struct verbs_gid_row r[] = {row("::ffff:10.1.0.1", 2, V2, 24),
                                row("::ffff:10.2.0.1", 5, V2, 24)};
    struct verbs_gid_row s = row("::ffff:10.2.0.9", 3, V2, 24),
                         t = row("::ffff:10.9.0.9", 3, V2, 16);
    struct verbs_path p;
    struct err err;

    verbs_gid_add(&a, &r[0]);
    verbs_gid_add(&a, &r[1]);
    verbs_gid_add(&b, &s);
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), 0);
    assert_int_equal(p.sgid_index, 5);
    b.rows = 0;
    verbs_gid_add(&b, &t);
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), 0);
    assert_string_equal(p.why, "RoCE v2, IPv4, two subnets: routed");
    assert_int_equal(p.sgid_index, 2);
}

/* Tables with many equally good rows: both ends must speak of the same two. */
TEST(both_ends_find_the_same)
{
    unsigned seed = 11;

    for (int i = 0; i < 2000; i++) {
        struct verbs_address a = roce(i % 3 ? "n1" : "n2", -1), b = roce("n2", -1);
        struct verbs_path p, q;
        struct err err;
        for (int k = 0; k < 6; k++) {
            char text[40];
            seed = seed * 1103515245 + 12345;
            snprintf(text, sizeof(text), seed >> 16 & 1 ? "fd00::%d:%d" : "::ffff:10.%d.0.%d",
                     seed >> 17 & 1, 1 + (int)(seed >> 18 & 3));
            struct verbs_gid_row r = row(text, k, seed >> 20 & 1 ? V2 : V1, 0);
            verbs_gid_add(k % 2 ? &a : &b, &r);
        }
        if (verbs_gid_path(&p, &a, &b, &err) < 0) {
            assert_int_equal(verbs_gid_path(&q, &b, &a, &err), -1);
            continue;
        }
        assert_int_equal(verbs_gid_path(&q, &b, &a, &err), 0);
        assert_memory_equal(&p.sgid, &q.dgid, 16);
        assert_memory_equal(&p.dgid, &q.sgid, 16);
        assert_int_equal(p.type, q.type);
    }
}

TEST(an_index_that_cannot_meet_is_refused)
{
    struct verbs_address a = usual("n1", "::ffff:10.8.0.1", 0), b = roce("node07", 0);
    struct verbs_gid_row s = row("::ffff:10.8.0.2", 0, V2, 24);
    struct verbs_path p;
    struct err err;

    verbs_gid_add(&b, &s);
    assert_int_equal(a.row[0].index, 0); /* what was asked for comes first */
    assert_string_equal(text_of(verbs_gid_path(&p, &a, &b, &err), &err),
                        "GID 0 of rxe0 port 1 on n1 is RoCE v1 fe80::1; peer node07 uses RoCE v2 "
                        "::ffff:10.8.0.2: no packet would arrive");
    assert_int_equal(err.code, EXIT_CONFIG);
    a = usual("n1", "::ffff:10.8.0.1", 3);
    b = usual("n2", "::ffff:10.9.0.2", 3); /* routed: there is nothing better */
    a.rows = b.rows = 1;
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), 0);
    struct verbs_gid_row t = row("::ffff:10.9.0.1", 6, V2, 24);
    verbs_gid_add(&a, &t);
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), -1);
    assert_non_null(strstr(err.text, "in another subnet, where other entries are in one"));
}

TEST(tables_keep_the_best)
{
    struct verbs_address a = roce("n1", -1);

    for (int i = 0; i < 20; i++) {
        struct verbs_gid_row r = row(i == 17 ? "::ffff:10.0.0.1" : "fe80::1", i, V2, 0);
        verbs_gid_add(&a, &r);
    }
    assert_int_equal(a.rows, VERBS_GIDS);
    assert_int_equal(a.row[0].index, 17);
    assert_int_equal(a.row[1].index, 0);
}

TEST(infiniband_has_lids_and_a_header_between_subnets)
{
    struct verbs_address a = {.who = "mlx5_0 port 1", .host = "n1", .lid = 4, .asked = -1}, b = a;
    struct verbs_path p;
    struct err err;

    b.lid = 0;
    assert_int_equal(verbs_gid_path(&p, &b, &a, &err), 0);
    assert_false(p.global);
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), -1);
    assert_non_null(strstr(err.text, "no LID"));
    b.first.prefix = 9;
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), 0);
    assert_true(p.global);
    b.ethernet = true;
    assert_int_equal(verbs_gid_path(&p, &a, &b, &err), -1);
    assert_non_null(strstr(err.text, "is InfiniBand, mlx5_0 port 1 on n1 is Ethernet"));
}

/* --- ports --- */

static const struct verbs_candidate three[] = {{"mlx5_0", 1, VERBS_PORT_ACTIVE},
                                               {"mlx5_1", 1, VERBS_PORT_DOWN},
                                               {"mlx5_1", 2, VERBS_PORT_ACTIVE}};

static int choose(const char *list, const char *nearest, int local, struct err *err)
{
    const struct verbs_wish w = {.list = list, .nearest = nearest, .local = local};

    return verbs_port_choose(three, 3, &w, err);
}

TEST(a_port_is_the_users_the_nearest_or_the_next)
{
    struct err err;

    assert_int_equal(choose("mlx5_1,mlx5_0:1", "mlx5_0", 0, &err), 2); /* its active one */
    assert_int_equal(choose("mlx5_1,mlx5_0:1", "", 1, &err), 0);
    assert_int_equal(choose("mlx5_1,mlx5_0:1", "", 2, &err), 2);
    assert_int_equal(choose(NULL, "mlx5_1:2", 0, &err), 2);
    assert_int_equal(choose(NULL, "eth0", 1, &err), 2); /* not one of them */
    assert_int_equal(choose(NULL, "", 2, &err), 0);
}

/* As NCCL reads NCCL_IB_HCA; --hca takes precedence. */
TEST(a_port_is_one_that_nccl_would_use)
{
    static const struct {
        const char *filter, *list, *nearest;
        int local, at;
    } t[] = {
        {"mlx5", NULL, "", 1, 2},
        {"=mlx5", NULL, "", 0, -1},
        {"=mlx5_1", NULL, "mlx5_0", 0, 2}, /* the nearest is not among them */
        {"mlx5_0:1,mlx5_1:2", NULL, "", 1, 2},
        {"^mlx5_0", NULL, "", 0, 2},
        {"^=mlx5_1:2", NULL, "", 1, 0},
        {"mlx5_1:1", NULL, "", 0, -1}, /* down */
        {"=mlx5_1:2:0:1", NULL, "", 0, 2},
        {"rdma", "mlx5_0", "", 0, 0},
        {"^mlx5", NULL, "", 0, -1},
        {"", NULL, "mlx5_1:2", 0, 2},
    };

    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct err err = {0, ""};
        const struct verbs_wish w = {
            .filter = t[i].filter, .list = t[i].list, .nearest = t[i].nearest, .local = t[i].local};
        if (verbs_port_choose(three, 3, &w, &err) != t[i].at)
            fail_msg("%s: not port %d: %s", t[i].filter, t[i].at, err.text);
        if (i == 1)
            assert_string_equal(err.text,
                                "NCCL_IB_HCA==mlx5 allows no port here (--hca names others); there "
                                "are mlx5_0:1 (ACTIVE), mlx5_1:1 (DOWN), mlx5_1:2 (ACTIVE)");
    }
}

TEST(a_port_that_is_not_active_is_an_error)
{
    struct err err;

    assert_int_equal(choose("mlx5_1:1", "", 0, &err), -1);
    assert_string_equal(err.text, "mlx5_1:1 is DOWN, not ACTIVE (--hca)");
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_int_equal(choose("mlx5_7", "", 0, &err), -1);
    assert_string_equal(err.text, "no port mlx5_7 here (--hca); there are mlx5_0:1 (ACTIVE), "
                                  "mlx5_1:1 (DOWN), mlx5_1:2 (ACTIVE)");
    assert_int_equal(choose("mlx5_0:2", "", 0, &err), -1);
    assert_int_equal(choose("mlx5_0:x", "", 0, &err), -1); /* no number is not any port */
    assert_int_equal(choose("", "", 0, &err), -1);
    assert_int_equal(verbs_port_choose(three + 1, 1, &(struct verbs_wish){0}, &err), -1);
    assert_string_equal(err.text, "no port is ACTIVE; there are mlx5_1:1 (DOWN)");
}

TEST(the_mtu_is_that_of_both)
{
    struct verbs_told a = {.mtu = 5, .address = {.who = "a", .host = "n1"}},
                      b = {.mtu = 3, .address = {.who = "mlx5_0 port 1", .host = "n2"}};
    struct err err;

    assert_int_equal(verbs_port_mtu(&a, &b, 0, &err), 3);
    assert_int_equal(verbs_port_mtu(&b, &a, 2, &err), 2);
    assert_int_equal(verbs_port_mtu(&a, &b, 4, &err), -1);
    assert_string_equal(err.text, "--path-mtu 2048: mlx5_0 port 1 on n2 has 1024");
}

/* --- messages --- */

TEST(windows_hold_8_mib)
{
    struct verbs_opts o = {.qps = 1};

    assert_int_equal(verbs_opts_depth(&o, 8), 128);
    assert_int_equal(verbs_opts_depth(&o, 1 << 20), 8);
    assert_int_equal(verbs_opts_depth(&o, (size_t)1 << 30), 4);
    o.qps = 16;
    assert_int_equal(verbs_opts_depth(&o, (size_t)1 << 30), 16);
    o.depth = 2;
    assert_int_equal(verbs_opts_depth(&o, 8), 16);
}

TEST(long_messages_are_split)
{
    const struct verbs_link l = {.max_message = 8 << 20};

    assert_int_equal(verbs_link_pieces(&l, 0), 1);
    assert_int_equal(verbs_link_pieces(&l, 8 << 20), 1);
    assert_int_equal(verbs_link_pieces(&l, (8 << 20) + 1), 2);
    assert_int_equal(verbs_link_pieces(&l, (size_t)1 << 30), 128);
}

/* --- words --- */

TEST(errors_say_who_to_whom_and_what_it_means)
{
    const struct verbs_end a = {3, "node03", "mlx5_2:1"}, b = {7, "node07", "mlx5_2:1"};
    struct err err;
    char out[32];

    assert_int_equal(verbs_words_fail(VERBS_WC_RETRY_EXCEEDED, 0, &a, &b, &err), -1);
    assert_string_equal(err.text, "retry exceeded: rank 3 (node03 mlx5_2:1) to rank 7 (node07 "
                                  "mlx5_2:1): path down, or PFC deadlock");
    verbs_words_fail(42, 0x81, &a, &b, &err);
    assert_non_null(strstr(err.text, "status 42: rank 3"));
    assert_non_null(strstr(err.text, "(vendor's code 0x81)"));
    for (int s = 1; s < VERBS_WC_STATUSES; s++) /* what is flushed is never the cause */
        if (s != VERBS_WC_FLUSHED)
            assert_true(verbs_words_rank(s) < verbs_words_rank(VERBS_WC_FLUSHED));
    assert_string_equal(verbs_words(VERBS_WC_RNR_RETRY_EXCEEDED, out), "receiver not ready");
    assert_non_null(verbs_words_event(VERBS_EVENT_PORT_ERROR));
    assert_null(verbs_words_event(9)); /* a port came up */
}
