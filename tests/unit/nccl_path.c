/* SPDX-License-Identifier: BSD-3-Clause */
/* Each path of --path, used as asked and not: what is said, on which ranks, with which exit code.
 * docs/gpus.md has the table as the program prints it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "measure/transports/nccl_path.h"
#include "nccl_logs.h"
#include "topo/sources/nccl/nccl_log.h"

#define IB "[0]mlx5_0:1/IB"
#define ROCE "[0]mlx5_0:1/RoCE"

/* 8 ranks, 4 a host; `within` and `between` carry the ring, `odd` those of ranks 4 to 7. */
static const struct judged {
    const char *path, *nics, *within, *between, *odd, *said;
    int code, per_host;
} rows[] = {
    {"nvlink", IB, "P2P/CUMEM", "", NULL, NULL, 0, 8},
    {"nvlink", IB, "P2P/CUMEM", "NET/IB/0/GDRDMA", NULL, "asked nvlink, used NET/IB on ranks 3, 7",
     EXIT_CONFIG, 4},
    {"nvlink", IB, "SHM/direct/direct", "", NULL, "asked nvlink, used SHM on ranks 0-7",
     EXIT_CONFIG, 8},
    {"mnnvl", IB, "P2P/MNNVL", "P2P/MNNVL", NULL, NULL, 0, 4},
    {"mnnvl", IB, "P2P/MNNVL", "P2P/MNNVL", "NET/IB/0/GDRDMA",
     "asked mnnvl, used NET/IB on ranks 4-7", EXIT_CONFIG, 4},
    {"p2p", IB, "P2P/IPC", "", NULL, NULL, 0, 8},
    {"p2p", IB, "P2P/IPC", "", "SHM/direct", "asked p2p, used SHM on ranks 4-7", EXIT_CONFIG, 8},
    {"pcie", IB, "P2P/direct pointer", "", NULL, NULL, 0, 8},
    {"pcie", IB, "NET/Socket/0", "", NULL, "asked pcie, used NET/Socket on ranks 0-7", EXIT_CONFIG,
     8},
    {"shm", IB, "SHM/direct", "", NULL, NULL, 0, 8},
    {"shm", IB, "SHM/direct", "NET/IB/0", NULL, "asked shm, used NET/IB on ranks 3, 7", EXIT_CONFIG,
     4},
    {"ib", IB, "NET/IB/0/GDRDMA", "NET/IB/0/GDRDMA", NULL, NULL, 0, 4},
    {"ib", IB, "P2P/CUMEM", "NET/IB/0", NULL, "asked ib, used P2P on ranks 0-2, 4-6", EXIT_CONFIG,
     4},
    {"ib", ROCE, "NET/IB/0", "NET/IB/0", NULL,
     "asked ib, used NET/IB on Ethernet (RoCE) on ranks 0-7", EXIT_CONFIG, 4},
    {"roce", ROCE, "NET/IB/0", "NET/IB/0", NULL, NULL, 0, 4},
    {"roce", IB, "NET/IB/0", "NET/IB/0", NULL, "asked roce, used NET/IB on InfiniBand on ranks 0-7",
     EXIT_CONFIG, 4},
    /* NICs used as one have a number of their own, and the layer of their members */
    {"ib",
     "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]\nh:1:2 [0] NCCL INFO NET/IB : Made virtual device [2] "
     "name=mlx5_0+mlx5_1 speed=800000 ndevs=2 rail=-1 plane=16387\nh:1:2 [0] NCCL INFO",
     "NET/IB/2/GDRDMA", "NET/IB/2/GDRDMA", NULL, NULL, 0, 4},
    {"roce",
     "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]\nh:1:2 [0] NCCL INFO NET/IB : Made virtual device [2] "
     "name=mlx5_0+mlx5_1 speed=800000 ndevs=2 rail=-1 plane=16387\nh:1:2 [0] NCCL INFO",
     "NET/IB/2/GDRDMA", "NET/IB/2/GDRDMA", NULL,
     "asked roce, used NET/IB on InfiniBand on ranks 0-7", EXIT_CONFIG, 4},
    /* neither NCCL nor the topology names the layer */
    {"ib", "[0]rdma7:1", "NET/IB/0", "NET/IB/0", NULL,
     "asked ib, used NET/IB, but neither the log of NCCL nor the topology tells InfiniBand from "
     "Ethernet for the NICs of ranks 0-7: not proven",
     EXIT_UNJUDGED, 4},
    {"roce", "[0]rdma7:1", "NET/IB/0", "NET/IB/0", NULL,
     "asked roce, used NET/IB, but neither the log of NCCL nor the topology tells InfiniBand from "
     "Ethernet for the NICs of ranks 0-7: not proven",
     EXIT_UNJUDGED, 4},
    {"tcp", IB, "NET/Socket/0", "NET/Socket/0", NULL, NULL, 0, 4},
    {"tcp", IB, "P2P/CUMEM", "NET/IB/0", "NET/Socket/0",
     "asked tcp, used P2P on ranks 0-2 and NET/IB on rank 3", EXIT_CONFIG, 4},
    {"plugin", ROCE, "NET/gIB/0/GDRDMA", "NET/gIB/3/GDRDMA", NULL, NULL, 0, 4},
    {"plugin", IB, "NET/IBext_v8/0", "NET/IBext_v8/0", NULL, NULL, 0, 4}, /* of HPC-X */
    {"plugin", IB, "NET/IB/0", "NET/IB/0", NULL, "asked plugin, used NET/IB on ranks 0-7",
     EXIT_CONFIG, 4},
    {"plugin:Libfabric", "", "NET/Libfabric/0/GDRDMA", "NET/Libfabric/0/GDRDMA", NULL, NULL, 0, 4},
    {"plugin:libfabric", "", "NET/Libfabric/0", "NET/Libfabric/0", NULL, NULL, 0, 4},
    {"plugin:gIB", ROCE, "NET/gIB/0/GDRDMA", "NET/gIB/3/GDRDMA", "NET/AWS Libfabric/0",
     "asked plugin:gIB, used NET/AWS Libfabric on ranks 4-7", EXIT_CONFIG, 4},
    {"plugin:gIB", ROCE, "NET/gIB/0", "NET/gIBx/0", NULL,
     "asked plugin:gIB, used NET/gIBx on ranks 3, 7", EXIT_CONFIG, 4},
    {"plugin:gIB", ROCE, "P2P/CUMEM", "NET/gIB/0", NULL,
     "asked plugin:gIB, used P2P on ranks 0-2, 4-6", EXIT_CONFIG, 4},
    {"plugin:gIB", ROCE, "", "", NULL,
     "asked plugin:gIB, but the log of NCCL names no connection of ranks 0-7: not proven",
     EXIT_UNJUDGED, 4},
    {"ib", IB, "NET/gIB/0", "NET/gIB/0", NULL, "asked ib, used NET/gIB on ranks 0-7", EXIT_CONFIG,
     4},
    {"tcp", IB, "", "", NULL,
     "asked tcp, but the log of NCCL names no connection of ranks 0-7: not proven", EXIT_UNJUDGED,
     4},
};

static void run(const struct judged *c)
{
    struct job j;
    struct err err = {0};
    char links[64];

    job_open(&j, 8, c->per_host, true);
    for (int r = 0; r < 8; r++) {
        int to = (r + 1) % 8;
        const char *via = to / c->per_host == r / c->per_host ? c->within : c->between;
        if (c->odd && r >= 4)
            via = c->odd;
        *links = '\0';
        if (*via)
            snprintf(links, sizeof(links), "%d %s\n", to, via);
        job_rank(&j, r, 16, (r + 7) % 8, to, c->nics, links);
    }
    nccl_merge_end(&j.all);
    int rc = nccl_path_judge(&j.all, &j.topo, c->path, &err);
    if (c->said ? rc == 0 || strcmp(err.text, c->said) != 0 : rc != 0)
        fail_msg("%s: \"%s\" where \"%s\" is expected", c->path, rc ? err.text : "good",
                 c->said ? c->said : "good");
    if (c->said)
        assert_int_equal(err.code, c->code);
    job_close(&j);
}

static void every_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        run(&rows[i]);
    for (const struct nccl_path *p = nccl_paths_table; p->name; p++) {
        bool right = false, wrong = false;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
            right = right || (!strcmp(rows[i].path, p->name) && !rows[i].said);
            wrong = wrong || (!strcmp(rows[i].path, p->name) && rows[i].said);
        }
        if (!right || !wrong)
            fail_msg("path %s is not tested both ways", p->name);
    }
}

/* The log calls both "P2P": NCCL's topology dump tells NVLink from PCIe. */
static void what_p2p_is(void **state)
{
    static const struct {
        const char *path, *xml, *said;
    } cases[] = {
        {"pcie", "hgx-h200-8gpu-8cx7", "asked pcie, used P2P over NVLink on ranks 0-7"},
        {"nvlink", "hgx-h200-8gpu-8cx7", NULL},
        {"nvlink", "rtxpro6000-8gpu-2epyc-pcie", "asked nvlink, used P2P over PCIe on ranks 0-7"},
        {"pcie", "rtxpro6000-8gpu-2epyc-pcie", NULL},
        {"p2p", "rtxpro6000-8gpu-2epyc-pcie", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct job j;
        struct err err = {0};
        char links[64], xml[96];
        job_open(&j, 8, 8, false);
        for (int r = 0; r < 8; r++) {
            snprintf(links, sizeof(links), "%d P2P/CUMEM\n", (r + 1) % 8);
            job_rank(&j, r, 16, (r + 7) % 8, (r + 1) % 8, IB, links);
        }
        snprintf(xml, sizeof(xml), "tests/golden/nccl/%s.xml", cases[i].xml);
        j.all.paths = calloc(1, sizeof(*j.all.paths));
        j.all.paths_comm = calloc(1, sizeof(int));
        j.all.n_paths = 1;
        assert_int_equal(nccl_xml_load(j.all.paths, xml, &err), 0);
        nccl_merge_end(&j.all);
        int rc = nccl_path_judge(&j.all, &j.topo, cases[i].path, &err);
        assert_int_equal(rc, cases[i].said ? -1 : 0);
        if (cases[i].said)
            assert_string_equal(err.text, cases[i].said);
        job_close(&j);
    }
}

/* NVSwitches that reduce need no other connection. */
static void nvls_alone(void **state)
{
    struct job j;
    struct err err = {0};

    (void)state;
    job_open(&j, 8, 8, false);
    for (int r = 0; r < 8; r++) {
        job_rank(&j, r, 16, (r + 7) % 8, (r + 1) % 8, IB, "");
        int n = j.all.links;
        MEM_PUSH(j.all.link_comm, n) = 0;
        MEM_PUSH(j.all.link, j.all.links) = (struct nccl_link){
            .from = r, .to = r, .via = NCCL_VIA_NVLS, .net = -1, .through = -1, .channels = 1};
    }
    nccl_merge_end(&j.all);
    assert_int_equal(nccl_path_judge(&j.all, &j.topo, "nvlink", &err), 0);
    assert_int_equal(nccl_path_judge(&j.all, &j.topo, "shm", &err), -1);
    assert_string_equal(err.text, "asked shm, used NVLS on ranks 0-7");
    job_close(&j);
}

static void names(void **state)
{
    const struct nccl_path *tcp = nccl_path_find("tcp");
    struct err err = {0};

    (void)state;
    assert_string_equal(tcp->var[0].name, "NCCL_NET");
    assert_string_equal(tcp->var[0].value, "Socket");
    assert_string_equal(tcp->net_name, "Socket");
    assert_ptr_equal(nccl_path_find("plugin:gIB"), nccl_path_find("plugin"));
    assert_string_equal(nccl_path_plugin("plugin:AWS Libfabric"), "AWS Libfabric");
    assert_null(nccl_path_plugin("plugin"));
    assert_null(nccl_path_find("plugin:"));
    assert_null(nccl_path_find("plugins"));
    assert_null(nccl_path_find("carrier"));
    assert_int_equal(nccl_path_judge(NULL, NULL, "carrier", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
}

static void page_has_the_table(void **state)
{
    char *page, *table = NULL;
    size_t len, size;
    struct err err = {0};
    FILE *f = open_memstream(&table, &size);

    (void)state;
    nccl_path_print(f);
    fclose(f);
    assert_int_equal(file_read(&page, &len, "docs/gpus.md", 1 << 22, &err), 0);
    if (!strstr(page, table))
        fail_msg("docs/gpus.md has another table of paths: make tables");
    free(page);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path),         cmocka_unit_test(what_p2p_is),
        cmocka_unit_test(nvls_alone),         cmocka_unit_test(names),
        cmocka_unit_test(page_has_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
