/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define VIA(x) (1u << NCCL_VIA_##x)
/* In a communicator on MNNVL every P2P connection is called so, also within a host. */
#define ON_NVLINK (VIA(P2P) | VIA(MNNVL) | VIA(NVLS))
#define ONLY_NET                                                                                   \
    {"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}, {"NCCL_NVLS_ENABLE", "0"},               \
    {                                                                                              \
        "NCCL_MNNVL_ENABLE", "0"                                                                   \
    }

const struct nccl_path nccl_paths_table[] = {
    {.name = "nvlink",
     .var = {{"NCCL_P2P_LEVEL", "NVL"}, {"NCCL_SHM_DISABLE", "1"}, {"NCCL_MNNVL_ENABLE", "0"}},
     .within = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_NVL,
     .help = "NVLink of one host"},
    {.name = "mnnvl",
     .var = {{"NCCL_MNNVL_ENABLE", "1"},
             {"NCCL_CUMEM_ENABLE", "1"},
             {"NCCL_P2P_LEVEL", "NVL"},
             {"NCCL_SHM_DISABLE", "1"}},
     .within = ON_NVLINK,
     .between = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_NVL,
     .help = "NVLink within and between hosts of one domain; a broken IMEX is an error"},
    {.name = "p2p",
     .var = {{"NCCL_P2P_LEVEL", "SYS"},
             {"NCCL_SHM_DISABLE", "1"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_DIS,
     .help = "GPU to GPU within a host, NVLink or PCIe"},
    {.name = "pcie",
     .var = {{"NCCL_P2P_LEVEL", "SYS"},
             {"NCCL_SHM_DISABLE", "1"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_NVLS_ENABLE", "0"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = VIA(P2P),
     .nearest = NCCL_PATH_C2C,
     .farthest = NCCL_PATH_DIS,
     .help = "GPU to GPU over PCIe; GPUs with NVLink use that and fail the proof"},
    {.name = "shm",
     .var = {{"NCCL_P2P_DISABLE", "1"},
             {"NCCL_SHM_DISABLE", "0"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_NVLS_ENABLE", "0"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = VIA(SHM),
     .farthest = NCCL_PATH_DIS,
     .help = "host memory of one host"},
    {.name = "ib",
     .var = {{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}, ONLY_NET},
     .net_name = "IB",
     .within = VIA(NET_IB) | VIA(COLLNET),
     .between = VIA(NET_IB) | VIA(COLLNET),
     .layer = LINK_INFINIBAND,
     .farthest = NCCL_PATH_DIS,
     .help = "InfiniBand NICs for all pairs, also within a host"},
    {.name = "roce",
     .var = {{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}, ONLY_NET},
     .net_name = "IB",
     .within = VIA(NET_IB),
     .between = VIA(NET_IB),
     .layer = LINK_ETHERNET,
     .farthest = NCCL_PATH_DIS,
     .help = "RDMA over Ethernet for all pairs, also within a host"},
    {.name = "tcp",
     .var = {{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}, ONLY_NET},
     .net_name = "Socket",
     .within = VIA(NET_SOCKET),
     .between = VIA(NET_SOCKET),
     .farthest = NCCL_PATH_DIS,
     .help = "TCP sockets for all pairs, also within a host"},
    {.name = NULL},
};

const struct nccl_path *nccl_path_find(const char *name)
{
    for (const struct nccl_path *p = nccl_paths_table; name && p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

int nccl_path_env(const char *name, const struct nccl_path_var **var, const char **net_name,
                  struct err *err)
{
    const struct nccl_path *p = nccl_path_find(name);

    if (!p)
        return err_usage(
            err, "no path \"%s\": choose nvlink, mnnvl, p2p, pcie, shm, ib, roce or tcp", name);
    *var = p->var;
    if (net_name)
        *net_name = p->net_name;
    return 0;
}

void nccl_path_print(void *stream)
{
    static const char *const spoken[NCCL_VIA_COUNT] = {
        "P2P", "P2P/MNNVL", "SHM", "NET/IB", "NET/Socket", "NET/...", "COLLNET", "NVLS"};
    FILE *f = stream;

    fputs("| `--path` | variables | allowed within a host | between hosts | what it is |\n"
          "|---|---|---|---|---|\n",
          f);
    for (const struct nccl_path *p = nccl_paths_table; p->name; p++) {
        fprintf(f, "| `%s` |", p->name);
        for (const struct nccl_path_var *v = p->var; v->name; v++)
            fprintf(f, " `%s=%s`", v->name, v->value);
        for (int where = 0; where < 2; where++) {
            unsigned mask = where ? p->between : p->within;
            const char *comma = "";
            fputs(" | ", f);
            for (int i = 0; i < NCCL_VIA_COUNT; i++)
                if (mask >> i & 1) {
                    fprintf(f, "%s%s", comma, spoken[i]);
                    comma = ", ";
                }
            if (!mask)
                fputs("-", f);
            if (mask && p->layer)
                fprintf(f, " on %s", p->layer == LINK_INFINIBAND ? "InfiniBand" : "Ethernet");
        }
        fprintf(f, " | %s |\n", p->help);
    }
}
