/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/topo.h"

void gpu_init(struct gpu *g)
{
    *g = (struct gpu){.links = -1,
                      .state = -1,
                      .status = -1,
                      .clique = -1,
                      .health = -1,
                      .summary = -1,
                      .slot = -1,
                      .tray = -1,
                      .node = -1,
                      .module = -1,
                      .pcie_gen = -1,
                      .pcie_gen_max = -1,
                      .pcie_width = -1,
                      .pcie_width_max = -1,
                      .sm_MHz = -1,
                      .sm_MHz_max = -1,
                      .throttle = -1,
                      .ecc_corrected = -1,
                      .ecc_uncorrected = -1,
                      .retired_pages = -1,
                      .remapped_rows = -1,
                      .pcie_replays = -1,
                      .link_errors = -1,
                      .remap = -1,
                      .recovery = -1,
                      .imex_channels = -1,
                      .imex_nodes = -1};
}

int gpu_links_up(const struct gpu *g)
{
    return g->links < 0 ? 0 : g->links - __builtin_popcountll(g->down);
}

char *gpu_links_text(const struct gpu *g, char buf[GPU_LINKS_TEXT])
{
    int up = gpu_links_up(g);

    if (g->counted)
        snprintf(buf, GPU_LINKS_TEXT, "%d NVLink%s", up, up == 1 ? "" : "s");
    else
        snprintf(buf, GPU_LINKS_TEXT, "%d of %d NVLinks", up, g->links);
    return buf;
}

void topo_link_gpus(struct topo *t)
{
    int *first = mem_calloc((size_t)t->hosts + 1, sizeof(*first)); /* row + 1 of each host */

    for (int i = t->gpus - 1; i >= 0; i--)
        first[t->gpu[i].host] = i + 1;
    for (int e = 0; e < t->endpoints; e++) {
        struct endpoint *p = &t->endpoint[e];
        int host = p->place.at[LEVEL_HOST];
        p->gpu = -1;
        if (p->kind != ENDPOINT_GPU || !first[host])
            continue;
        for (int i = first[host] - 1; i < t->gpus && t->gpu[i].host == host; i++)
            if (p->busid[0] ? !strcmp(t->gpu[i].busid, p->busid)
                            : !t->gpu[i].busid[0] && t->gpu[i].index == p->local)
                p->gpu = i;
    }
    free(first);
}
