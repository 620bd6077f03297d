/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/transport.h"

#include <stdio.h>
#include <string.h>

#include "measure/transports/gpu_opts.h"
#include "measure/transports/mpi_opts.h"
#include "measure/transports/nccl_opts.h"
#include "measure/transports/verbs_opts.h"

/* Only calls that were linked in are present: without MPI there is only the simulated transport. */
#define LINKED __attribute__((weak, visibility("hidden")))
extern const struct transport_calls transport_mpi LINKED, transport_nccl LINKED,
    transport_copy LINKED, transport_verbs LINKED, transport_sim LINKED;

enum { ALL = (1 << OP_COUNT) - 1 };

const struct transport transports[] = {
    {.name = "mpi",
     .help = "host memory through MPI (shared memory, TCP, InfiniBand: as MPI chooses)",
     .words = "MPI",
     .depth = 1,
     .ops = ALL,
     .memory = TRANSPORT_HOST,
     .ranks = true,
     .automatic = true,
     .windows = true,
     .patience = 30, /* hosts may be oversubscribed */
     .options = {&mpi_options},
     .calls = &transport_mpi},
    {.name = "nccl",
     .help = "GPU memory through NCCL (NVLink, PCIe, InfiniBand, sockets: as NCCL or --path says)",
     .words = "NCCL",
     .depth = 2,
     .ops = ALL,
     .memory = TRANSPORT_GPU,
     .ranks = true,
     .automatic = true,
     .stream = true,
     .threads = true,
     .typed = true,
     .nics = true,
     .published = true,
     .patience = 8,
     .options = {&nccl_options},
     .calls = &transport_nccl},
    {.name = "copy",
     .help = "copies between the memories of GPUs (NVLink, PCIe), without NCCL",
     .ops = 1 << OP_PAIR_LATENCY | 1 << OP_PAIR_BW | 1 << OP_PAIR_BIBW | 1 << OP_SENDRECV,
     .only = "it copies between two GPUs (pair_latency, pair_bw, pair_bibw, sendrecv)",
     .memory = TRANSPORT_GPU,
     .ranks = true,
     .threads = true,
     .patience = 30,
     .options = {&nccl_options, &copy_options}, /* for --share-gpu */
     .calls = &transport_copy},
    {.name = "verbs",
     .help = "RDMA verbs between NICs (InfiniBand, RoCE), the layer below NCCL",
     .ops = 1 << OP_PAIR_LATENCY | 1 << OP_PAIR_BW | 1 << OP_PAIR_BIBW | 1 << OP_SENDRECV |
            1 << OP_ALL_TO_ALL | 1 << OP_ALL_GATHER,
     .only = "a NIC adds nothing up and forwards nothing: it writes, reads or sends from one "
             "memory to another (pair_latency, pair_bw, pair_bibw, sendrecv, all_to_all, "
             "all_gather)",
     .memory = TRANSPORT_HOST,
     .words = "RDMA",
     .wire = true,
     .ranks = true,
     .patience = 8,
     .options = {&verbs_options},
     .calls = &transport_verbs},
    {.name = "sim",
     .help = "a preset's fabric as a formula, with noise and faults of your choice",
     .ops = ALL,
     .nics = true,
     .published = true,
     .patience = 30,
     .calls = &transport_sim},
    {.name = NULL},
};

const struct transport *transport_find(const char *name)
{
    for (const struct transport *t = transports; name && t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

const struct transport *transport_solo(void)
{
    const struct transport *t = transports;

    while (t->ranks)
        t++;
    return t;
}

const struct transport *transport_of_gpus(void)
{
    const struct transport *t = transports;

    while (!t->automatic || t->memory != TRANSPORT_GPU)
        t++;
    return t;
}

void transport_each(name_taker *take, void *to)
{
    for (const struct transport *t = transports; t->name; t++)
        take(to, t->name);
}

const struct opt_set *const *transport_options(void)
{
    static const struct opt_set *all[OPT_SETS + 1];
    int n = 0;

    for (const struct transport *t = transports; t->name; t++)
        for (int i = 0, k; t->options[i]; i++) {
            for (k = 0; k < n && all[k] != t->options[i]; k++)
                ;
            all[k] = t->options[i];
            n += k == n;
        }
    return all;
}

const char *transport_names(char out[TRANSPORT_NAMES], bool all)
{
    size_t used = 0;

    for (const struct transport *t = transports, *next; t->name; t = next) {
        next = t + 1;
        while (next->name && !all && !next->ranks)
            next++;
        used += (size_t)snprintf(out + used, TRANSPORT_NAMES - used, "%s%s",
                                 !used        ? ""
                                 : next->name ? ", "
                                              : " and ",
                                 t->name);
    }
    return out;
}

int transport_limit(unsigned *ops, const struct transport *t, struct err *err)
{
    *ops &= t ? t->ops : ALL;
    return *ops ? 0
                : err_usage(err, "transport %s has none of these operations: %s", t->name, t->only);
}
