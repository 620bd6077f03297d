/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles of jobs with one thing odd in each: the sentence that names it, and no other. */

#include "test.h"

#include "base/units.h"
#include "nccl_logs.h"
#include "topo/sources/nccl/nccl_log.h"

#define NICS "[0]mlx5_0:1/IB [1]mlx5_1:1/IB"

static void sound(struct job *j)
{
    job_judge(j);
    assert_true(job_found(j, "NVLS not used though available (communicator of 8 ranks)"));
}

/* 8 ranks on 4 hosts in 2 racks, a ring in rank order. */
static void good_ranks(struct job *j, int but)
{
    char links[64];

    for (int r = 0; r < j->ranks; r++) {
        bool leaves = r % 2 == 1;
        snprintf(links, sizeof(links), leaves ? "%d NET/IB/0/GDRDMA\n" : "%d P2P/CUMEM\n",
                 (r + 1) % j->ranks);
        if (r != but)
            job_rank(j, r, 16, (r + 7) % 8, (r + 1) % 8, NICS, links);
    }
}

TEST(nothing_odd)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, -1);
    sound(&j);
    assert_int_equal(j.all.findings, 1);
    assert_int_equal(j.all.comms, 1);
    assert_int_equal(j.all.comm[0].rings, 1);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(j.all.comm[0].ring[i], i);
        assert_int_equal(j.all.comm[0].endpoint[i], i);
    }
    assert_int_equal(j.all.comm[0].coll, 16);
    assert_true(nccl_assumed(&j.all.comm[0]) == 160e9);
    job_close(&j);
}

TEST(few_channels)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, 5);
    job_rank(&j, 5, 2, 4, 6, NICS, "6 NET/IB/0/GDRDMA\n");
    sound(&j);
    assert_true(job_found(&j, "rank 5: 2 ring channels where the others have 16"));
    assert_int_equal(j.all.findings, 2);
    assert_int_equal(j.all.comm[0].graph[NCCL_GRAPH_RING].channels, 2);
    job_close(&j);
}

TEST(crossing_ring)
{
    static const int order[] = {0, 1, 4, 5, 2, 3, 6, 7};
    struct job j;

    job_open(&j, 8, 2, false);
    for (int i = 0; i < 8; i++)
        job_rank(&j, order[i], 16, order[(i + 7) % 8], order[(i + 1) % 8], NICS,
                 "0 NET/IB/0/GDRDMA\n");
    sound(&j);
    assert_true(job_found(&j, "ring crosses racks 4 times, 2 suffice (1 of 1 rings of 8 ranks)"));
    assert_int_equal(j.all.findings, 2);
    job_close(&j);
}

TEST(no_gpu_direct)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, 7);
    job_rank(&j, 7, 16, 6, 0, NICS, "0 NET/IB/0\n");
    sound(&j);
    assert_true(job_found(&j, "no GPUDirect RDMA on host n3"));
    assert_false(job_found(&j, "nor anywhere else"));
    assert_int_equal(j.all.findings, 2);
    job_close(&j);
}

TEST(network_in_a_domain)
{
    struct job j;

    job_open(&j, 8, 2, true);
    good_ranks(&j, -1);
    sound(&j);
    assert_true(job_found(&j, "ranks 1, 3, 5, 7 use the network to other hosts of their NVLink "
                              "domain"));
    job_close(&j);
}

TEST(host_memory)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, 4);
    job_rank(&j, 4, 16, 3, 5, NICS, "5 SHM/direct/direct\n");
    sound(&j);
    assert_true(job_found(&j, "rank 4: host memory or network within the host, where other pairs "
                              "have P2P"));
    job_close(&j);
}

TEST(a_rank_is_silent)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, 6);
    job_judge(&j);
    assert_true(job_found(&j, "no log from rank 6"));
    assert_int_equal(j.all.comm[0].rings, 0); /* nobody knows what comes after 6 */
    job_close(&j);
}

/* The dump says where the NICs are: GPU 1 of the H200 host is near mlx5_1. */
TEST(far_nic)
{
    struct job j;
    struct err err = {0};
    struct nccl_paths dump;

    job_open(&j, 8, 8, false);
    for (int r = 0; r < 8; r++)
        job_rank(&j, r, 16, (r + 7) % 8, (r + 1) % 8, NICS,
                 r == 1 ? "2 NET/IB/4/GDRDMA\n" : "0 P2P/CUMEM\n");
    assert_int_equal(nccl_xml_load(&dump, "tests/golden/nccl/hgx-h200-8gpu-8cx7.xml", &err), 0);
    int n = j.all.n_paths;
    j.all.paths = realloc(j.all.paths, sizeof(dump));
    j.all.paths_comm = realloc(j.all.paths_comm, sizeof(int));
    j.all.paths[n] = dump;
    j.all.paths_comm[n] = 0;
    j.all.n_paths++;
    sound(&j);
    assert_true(job_found(&j, "rank 1 sends through mlx5_4 (PXN), its nearest NIC is mlx5_1 "
                              "(PIX)"));
    double Bps;
    assert_int_equal(nccl_pair_path(&j.all, 0, 7, &Bps), NCCL_PATH_NVL);
    assert_true(Bps > 370e9 && Bps < 371e9);
    assert_int_equal(nccl_pair_path(&j.all, 0, 8, &Bps), -1);
    job_close(&j);
}

TEST(measured_and_assumed)
{
    struct job j;

    job_open(&j, 8, 2, false);
    good_ranks(&j, -1);
    job_judge(&j);
    nccl_judge_measured(&j.all, 0, "all_reduce", 150e9);
    assert_int_equal(j.all.findings, 1);
    nccl_judge_measured(&j.all, 0, "all_reduce", 48e9);
    assert_true(job_found(&j,
                          "all_reduce of 8 ranks measures 48.0 GB/s where NCCL assumed 160 GB/s "
                          "(x 0.3)"));
    job_close(&j);
}

/* Merged, written, read: the same again. */
TEST(through_json)
{
    struct job j;
    struct nccl_profile again;
    struct err err = {0};

    job_open(&j, 8, 2, false);
    good_ranks(&j, -1);
    job_judge(&j);
    json_t *a = nccl_profile_json(&j.all);
    if (nccl_profile_read(&again, a, "t", &err) < 0)
        fail_msg("%s", err.text);
    json_t *b = nccl_profile_json(&again);
    assert_true(json_equal(a, b));
    json_object_set_new(json_array_get(json_object_get(json_object_get(a, "comms"), "rows"), 0),
                        "x", json_null());
    json_array_set_new(json_array_get(json_object_get(json_object_get(a, "links"), "rows"), 0), 1,
                       json_integer(99));
    nccl_profile_free(&again);
    assert_int_equal(nccl_profile_read(&again, a, "t", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, "t: links.rows[0]: from is 99, not a whole number of 0..7");
    json_decref(a);
    json_decref(b);
    job_close(&j);
}

TEST(ranks_in_words)
{
    bool set[100] = {0};
    char text[64];

    set[3] = true;
    assert_string_equal(units_ranks_text(text, sizeof(text), set, 100), "rank 3");
    set[4] = set[7] = set[8] = set[9] = true;
    assert_string_equal(units_ranks_text(text, sizeof(text), set, 100), "ranks 3, 4, 7-9");
    for (int i = 0; i < 100; i += 2)
        set[i] = true;
    units_ranks_text(text, sizeof(text), set, 100);
    assert_true(strlen(text) < sizeof(text) && strstr(text, "(53 in all)"));
}
