/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank's log of four NCCL versions, line by line; then what no version writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test.h"
#include "topo/sources/nccl/nccl_log.h"

static struct nccl_profile read_log(const char *path)
{
    struct nccl_profile p;
    struct err err = {0};

    if (nccl_log_read(&p, path, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static void check_link(const struct nccl_profile *p, int i, int comm, int from, int to,
                       enum nccl_via via, int net, int through, bool gdr, int channels)
{
    assert_true(i < p->links);
    const struct nccl_link *k = &p->link[i];
    assert_int_equal(p->link_comm[i], comm);
    assert_int_equal(k->from, from);
    assert_int_equal(k->to, to);
    assert_string_equal(nccl_via_name[k->via], nccl_via_name[via]);
    assert_int_equal(k->net, net);
    assert_int_equal(k->through, through);
    assert_int_equal(k->gdr, gdr);
    assert_int_equal(k->channels, channels);
}

static void check_graph(const struct nccl_graph *g, int channels, double intra, double inter,
                        const char *type_intra, const char *type_inter)
{
    assert_int_equal(g->channels, channels);
    assert_true(g->intra_Bps == intra * 1e9 && g->inter_Bps == inter * 1e9);
    assert_string_equal(g->type_intra, type_intra);
    assert_string_equal(g->type_inter, type_inter);
}

TEST(version_2_19)
{
    struct nccl_profile p = read_log("tests/golden/nccl/2.19.log");
    const struct nccl_comm_profile *c = &p.comm[0];
    const struct nccl_rank *s = &p.rank[0];

    assert_string_equal(p.version, "2.19.4+cuda12.2");
    assert_int_equal(p.lines, 34);
    assert_string_equal(s->net, "IB");
    assert_string_equal(s->busid, "0000:18:00.0");
    assert_int_equal(s->nics, 2);
    assert_string_equal(s->nic[0].name, "mlx5_0:1/RoCE");
    assert_string_equal(s->nic[1].name, "{[1] mlx5_1:1/RoCE, [2] mlx5_2:1/RoCE}");
    assert_int_equal(s->nic[0].gdr, 1);
    assert_int_equal(s->nic[1].gdr, 0);
    assert_int_equal(s->nvls, -1);
    assert_int_equal(p.envs, 2);
    assert_string_equal(p.env[0], "NCCL_IB_HCA set to mlx5");
    assert_int_equal(p.warns, 1);
    assert_true(strstr(p.warn[0], "socketStartConnect: Connect to 10.1.0.12") == p.warn[0]);
    assert_int_equal(p.comms, 1);
    assert_true(c->hash == 0x5ae77eb5ea4ec1ee);
    assert_int_equal(c->rank, 0);
    assert_int_equal(c->ranks, 4);
    assert_true(c->complete);
    assert_int_equal(c->coll, 2);
    assert_int_equal(c->nvls, 0);
    assert_int_equal(c->p2p, 2);
    assert_int_equal(c->p2p_peer, 1);
    check_graph(&c->graph[NCCL_GRAPH_RING], 2, 20, 12.5, "NVL", "PIX");
    check_graph(&c->graph[NCCL_GRAPH_TREE], 2, 24, 12.5, "NVL", "PXB");
    assert_int_equal(c->graph[NCCL_GRAPH_COLLNET_CHAIN].pattern, 3);
    assert_int_equal(c->graph[NCCL_GRAPH_COLLNET_CHAIN].channels, 0);
    assert_int_equal(c->rings, 2);
    assert_int_equal(c->ring[0], 3);
    assert_int_equal(c->ring[1], 1);
    assert_int_equal(p.links, 4);
    check_link(&p, 0, 0, 3, 0, NCCL_VIA_NET_IB, 0, -1, true, 2);
    assert_true(p.link[0].receives);
    check_link(&p, 1, 0, 0, 1, NCCL_VIA_P2P, -1, -1, false, 2);
    check_link(&p, 2, 0, 0, 1, NCCL_VIA_SHM, -1, -1, false, 1);
    check_link(&p, 3, 0, 0, 2, NCCL_VIA_NET_IB, 1, -1, false, 1);
    assert_true(nccl_assumed(c) == 25e9);
    nccl_profile_free(&p);
}

TEST(version_2_22)
{
    struct nccl_profile p = read_log("tests/golden/nccl/2.22.log");
    const struct nccl_comm_profile *c = &p.comm[0];

    assert_string_equal(p.version, "2.22.3+cuda12.6");
    assert_string_equal(p.rank[0].net, "AWS Libfabric");
    assert_string_equal(p.rank[0].busid, "0000:ca:00.0");
    assert_int_equal(p.rank[0].nvls, 1);
    assert_int_equal(c->nodes, 2);
    assert_int_equal(c->local, 8);
    assert_int_equal(c->mnnvl, 0);
    assert_int_equal(c->nvls, 0);
    assert_int_equal(c->p2p, 32);
    assert_int_equal(c->p2p_peer, 2);
    check_graph(&c->graph[NCCL_GRAPH_NVLS], 4, 90, 40, "NVL", "PIX");
    /* connected by another thread, after the communicator was complete */
    check_link(&p, 0, 0, 4, 3, NCCL_VIA_P2P, -1, -1, false, 1);
    check_link(&p, 1, 0, 4, 12, NCCL_VIA_NET_OTHER, 3, -1, true, 1);
    check_link(&p, 2, 0, 12, 4, NCCL_VIA_NET_OTHER, 3, -1, true, 1);
    assert_int_equal(p.choices, 2); /* the last word on a size counts */
    assert_string_equal(p.choice[0].op, "");
    assert_int_equal(p.choice[0].bytes, 8388608);
    assert_string_equal(p.choice[0].algo, "nvls");
    assert_string_equal(p.choice[0].proto, "simple");
    assert_string_equal(p.choice[1].algo, "tree");
    assert_string_equal(p.choice[1].proto, "ll");
    assert_int_equal(p.choice[1].channels, -1);
    nccl_profile_free(&p);
}

TEST(version_2_28)
{
    struct nccl_profile p = read_log("tests/golden/nccl/2.28.log");

    assert_string_equal(p.version, "2.28.9+cuda13.0");
    assert_int_equal(p.rank[0].nics, 4);
    assert_string_equal(p.rank[0].nic[2].name, "mlx5_3:1/IB");
    assert_string_equal(p.rank[0].busid, "0009:01:00.0");
    assert_int_equal(p.comms, 2);
    assert_int_equal(p.comm[0].mnnvl, 1);
    assert_int_equal(p.comm[0].nodes, 2);
    assert_int_equal(p.comm[0].nvls, 24);
    assert_int_equal(p.comm[0].p2p_peer, 32);
    check_graph(&p.comm[0].graph[NCCL_GRAPH_NVLS], 24, 30, 30, "NVL", "P2C");
    assert_int_equal(p.comm[1].rank, 1);
    assert_int_equal(p.links, 5);
    check_link(&p, 0, 1, 1, 0, NCCL_VIA_NET_IB, 2, 0, true, 1);
    assert_true(p.link[0].shared);
    /* 5 and 6 are no ranks of the newest communicator, but of the one before */
    check_link(&p, 1, 0, 5, 6, NCCL_VIA_MNNVL, -1, -1, false, 2);
    check_link(&p, 2, 0, 5, 2, NCCL_VIA_MNNVL, -1, -1, false, 1);
    assert_int_equal(p.link[3].via, NCCL_VIA_COLLNET);
    check_link(&p, 4, 0, 5, 5, NCCL_VIA_NVLS, -1, -1, false, 1);
    assert_int_equal(p.choices, 2);
    assert_string_equal(p.choice[0].op, "all_reduce");
    assert_int_equal(p.choice[0].channels, 16);
    assert_string_equal(p.choice[1].op, "all_to_all");
    assert_string_equal(p.choice[1].proto, "ll");
    nccl_profile_free(&p);
}

TEST(version_2_30)
{
    struct nccl_profile p = read_log("tests/golden/nccl/2.30.log");

    assert_string_equal(p.version, "2.30.7+cuda13.1");
    assert_string_equal(p.rank[0].net, "Socket");
    assert_string_equal(p.rank[0].nic[1].name, "eth1:fe80::1%eth1<0>");
    assert_int_equal(p.rank[0].nvls, 0);
    assert_int_equal(p.comm[0].mnnvl, 0);
    check_link(&p, 0, 0, 0, 1, NCCL_VIA_SHM, -1, -1, false, 1);
    check_link(&p, 1, 0, 0, 2, NCCL_VIA_NET_SOCKET, 1, -1, false, 1);
    check_link(&p, 2, 0, 0, 2, NCCL_VIA_P2P, -1, 1, false, 1);
    assert_string_equal(p.warn[0], "no route to 192.168.7.9");
    assert_string_equal(p.env[0], "Comm config maxCTAs set to 8");
    assert_string_equal(p.choice[0].op, "reduce_scatter");
    static const struct nccl_choice own[] = {
        {"all_reduce", 0, 65536, "symmetric", "AllReduce_RSxLDMC_AGxSTMC", 8},
        {"all_gather", 0, 8388608, "copy_engine", "-", -1},
        {"all_to_all", 0, 16777216, "rma", "-", -1}};
    assert_int_equal(p.choices, 4); /* neither a size that is no number nor an unknown way */
    for (int i = 0; i < 3; i++) {
        const struct nccl_choice *c = &p.choice[i + 1];
        assert_string_equal(c->op, own[i].op);
        assert_int_equal(c->bytes, own[i].bytes);
        assert_string_equal(c->algo, own[i].algo);
        assert_string_equal(c->proto, own[i].proto);
        assert_int_equal(c->channels, own[i].channels);
    }
    nccl_profile_free(&p);
}

/* Written to a file and read again, nothing is lost. */
TEST(through_json)
{
    static const char *const logs[] = {"2.19", "2.22", "2.28", "2.30"};
    char path[64];

    for (int i = 0; i < 4; i++) {
        struct nccl_profile again;
        struct err err = {0};
        snprintf(path, sizeof(path), "tests/golden/nccl/%s.log", logs[i]);
        struct nccl_profile p = read_log(path);
        assert_int_equal(nccl_xml_load(&(struct nccl_paths){0}, "absent", &err), -1);
        json_t *a = nccl_profile_json(&p);
        if (nccl_profile_read(&again, a, "t", &err) < 0)
            fail_msg("%s", err.text);
        json_t *b = nccl_profile_json(&again);
        assert_true(json_equal(a, b));
        json_decref(a);
        json_decref(b);
        nccl_profile_free(&p);
        nccl_profile_free(&again);
    }
}

TEST(strange_lines)
{
    static const char *const lines[] = {
        "",
        "\n\n",
        "NCCL INFO ",
        "NCCL WARN ",
        "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n", /* of no communicator */
        "h:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 2, bw 1/1, type NVL/PIX\n",
        "h:1:2 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1\n",
        "h:1:2 [0] NCCL INFO comm 0x1 rank 9 nranks 4 - Init START\n", /* no such rank */
        "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 99999999999 - Init START\n",
        "h:1:2 [0] NCCL INFO comm 0x1 rank -1 nranks 4 - Init START\n",
        "h:1:2 [0] NCCL INFO 99999999999999999999 Bytes -> Algo 1 proto 1 time 1\n",
        "h:1:2 [0] NCCL INFO NET/IB : Using [0 [] [x]y [999999999999]z\n",
    };
    struct nccl_profile p;

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        nccl_log_parse(&p, lines[i], strlen(lines[i]));
        assert_int_equal(p.comms, 0);
        assert_int_equal(p.links, 0);
        assert_int_equal(p.choices, 0);
        assert_int_equal(p.rank[0].nics, 0);
        nccl_profile_free(&p);
    }
    static const char begin[] = "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 - Init START\n";
    static const char *const bad[] = {
        "Channel 00/0 : 0[0] -> 1[1] via",
        "Channel 00/0 : -1[0] -> 1[1] via SHM",
        "Channel 00/0 : 0[0] -> 1[1] via NET/IB",
        "Channel 00/0 : 0[0] -> 1[1] via NET/IB/x",
        "Channel 00/0 : 0[0] 1[1] via SHM",
        "Channel 00/0 : 0[0] -> 1[1] via CARRIER PIGEON",
        "Channel 00/0 : 0[0] -> 2[1] via SHM/x\nh:9:9 [0] NCCL INFO Ring 01 : 1 -> 0 -> 1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%s - Init COMPLETE\nh:1:3 [0] NCCL INFO %s\n", begin,
                 "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2", bad[i]);
        nccl_log_parse(&p, text, strlen(text));
        assert_int_equal(p.comms, 1);
        assert_int_equal(p.links, 0);
        assert_int_equal(p.comm[0].rings, 0);
        nccl_profile_free(&p);
    }
}

TEST(no_file)
{
    struct nccl_profile p;
    struct err err = {0};

    assert_int_equal(nccl_log_read(&p, "tests/golden/nccl/absent.log", NULL, 0, &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_true(strstr(err.text, "absent.log") != NULL);
}

/* A log of many connections takes time in proportion: 4 times as long, far less than 16 times. */
static double seconds_for(int lines)
{
    char *text = malloc((size_t)lines * 96 + 128);
    size_t n = (size_t)sprintf(text, "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 1000000 commId "
                                     "0x7 - Init START\n");
    struct nccl_profile p;
    struct timespec a, b;

    for (int i = 0; i < lines; i++)
        n += (size_t)sprintf(text + n,
                             "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> %d[1] [send] via "
                             "NET/IB/%d/GDRDMA\n",
                             1 + i, i % 8);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    nccl_log_parse(&p, text, n);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    assert_int_equal(p.links, lines);
    nccl_profile_free(&p);
    free(text);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

TEST(linear)
{
    double one = seconds_for(20000), four = seconds_for(80000);

    print_message("%.1f ms and %.1f ms, %.2f us a line\n", one * 1e3, four * 1e3,
                  four / 80000 * 1e6);
    assert_true(four < 10 * one + 0.05);
}
