/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_table.c - what hosts, GPUs, NICs and endpoints have that can be compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/lint/lint_parts.h"

/* --- what there is to compare; false: not visible --- */

static bool put(char text[LINT_TEXT], bool told, const char *value)
{
    if (told)
        snprintf(text, LINT_TEXT, "%s", value);
    return told;
}

static bool number(char text[LINT_TEXT], bool told, double value)
{
    if (told)
        snprintf(text, LINT_TEXT, "%.10g", value);
    return told;
}

static bool host_gpus(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, true, v->t->gpus ? v->host[h].gpus : v->host[h].named);
}

static bool host_driver(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    const struct gpu *g = v->host[h].gpus ? &v->t->gpu[v->host[h].gpu] : NULL;

    return put(text, g && *g->driver, g ? g->driver : "");
}

static bool host_cpu(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return put(text, v->t->host[h].cpu, v->t->host[h].cpu);
}

static bool host_cores(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, v->t->host[h].cores > 0, v->t->host[h].cores);
}

static bool host_sockets(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, v->t->host[h].sockets > 0, v->t->host[h].sockets);
}

static bool host_memory(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, v->t->host[h].memory_bytes > 0,
                  round(v->t->host[h].memory_bytes / (1 << 30)));
}

/* The module's version is of no interest here, nor is it when nothing is told. */
static bool host_gdr(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    bool told = put(text, v->t->host[h].gdr[0], v->t->host[h].gdr);

    if (told)
        text[strcspn(text, " ")] = '\0';
    return told;
}

static bool host_hcas(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, v->t->nics > 0, v->host[h].hcas);
}

static bool host_up(const struct lint_view *v, int h, char text[LINT_TEXT])
{
    return number(text, v->t->nics > 0, v->host[h].up);
}

static bool gpu_model(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return put(text, *v->t->gpu[i].model, v->t->gpu[i].model);
}

static bool gpu_links_seen(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->gpu[i].links >= 0, v->t->gpu[i].links);
}

static bool gpu_links_active(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->gpu[i].links > 0, gpu_links_up(&v->t->gpu[i]));
}

static bool gpu_link_rate(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->gpu[i].link_Bps > 0, v->t->gpu[i].link_Bps / 1e9);
}

static bool gpu_gen(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->gpu[i].pcie_gen_max > 0, v->t->gpu[i].pcie_gen_max);
}

static bool gpu_width(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->gpu[i].pcie_width > 0, v->t->gpu[i].pcie_width);
}

static bool nic_rate(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->nic[i].up && v->t->nic[i].rate_Bps > 0,
                  8 * v->t->nic[i].rate_Bps / 1e9);
}

static bool nic_layer(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    static const char *const name[] = {"", "Ethernet", "InfiniBand"};

    return put(text, v->t->nic[i].layer != LINK_UNKNOWN, name[v->t->nic[i].layer]);
}

static bool nic_board(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return put(text, v->t->nic[i].board[0], v->t->nic[i].board);
}

static bool nic_gid(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return put(text, v->t->nic[i].gid_type[0], v->t->nic[i].gid_type);
}

static bool nic_numa(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->nic[i].numa >= 0, v->t->nic[i].numa);
}

static bool nic_rail(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->nic[i].rail >= 0, v->t->nic[i].rail);
}

static bool end_nic(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    int nic = v->t->endpoint[i].nic;

    return put(text, nic >= 0, nic >= 0 ? v->t->nic[nic].name : "");
}

static bool end_numa(const struct lint_view *v, int i, char text[LINT_TEXT])
{
    return number(text, v->t->endpoint[i].numa >= 0, v->t->endpoint[i].numa);
}

/* --- details --- */

static char *listed(char *text, const char *name, const char *state)
{
    char *longer = mem_printf("%s%s%s is %s", text ? text : "", text ? ", " : "", name, state);

    free(text);
    return longer;
}

static const struct nic *nic_called(const struct lint_view *v, int host, const char *name)
{
    for (int i = 0; i < v->host[host].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[host].nic + i]];
        if (!strcmp(n->name, name))
            return n;
    }
    return NULL;
}

/* Which RDMA NICs are down or missing, from the names that a host of the majority has. */
static char *missing_nics(const struct lint_view *v, int host, int peer)
{
    char *text = NULL;

    for (int i = 0; i < v->host[host].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[host].nic + i]];
        if (n->rdma && !n->up)
            text = listed(text, n->name, "down");
    }
    for (int i = 0; i < v->host[peer].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[peer].nic + i]];
        if (n->rdma && n->up && !nic_called(v, host, n->name))
            text = listed(text, n->name, "missing");
    }
    return text;
}

static char *links_down(const struct lint_view *v, int gpu, int peer)
{
    char *text = NULL, name[24];

    (void)peer;
    for (int i = 0; i < GPU_LINKS; i++)
        if (v->t->gpu[gpu].down >> i & 1) {
            snprintf(name, sizeof(name), "link %d", i);
            text = listed(text, name, "down");
        }
    return text;
}

/* --- the table --- */

const struct lint_check lint_check[] = {
    {"gpus", "GPUs", LINT_HOSTS, host_gpus, .words = false},
    {"driver", "driver", LINT_HOSTS, host_driver, .words = true},
    {"cpu", "CPU", LINT_HOSTS, host_cpu, .words = true},
    {"cores", "cores", LINT_HOSTS, host_cores, .words = false},
    {"sockets", "sockets", LINT_HOSTS, host_sockets, .words = false},
    {"memory", "GiB of memory", LINT_HOSTS, host_memory, .tolerance = 0.03},
    {"gdr", "GPUDirect RDMA by", LINT_HOSTS, host_gdr, .words = true},
    {"hcas", "HCAs", LINT_HOSTS, host_hcas, .detail = missing_nics},
    {"hcas", "HCAs up", LINT_HOSTS, host_up, .again = true, .detail = missing_nics},
    {"gpu", "model", LINT_GPUS, gpu_model, .words = true},
    {"nvlink", "NVLinks", LINT_GPUS, gpu_links_seen, .words = false},
    {"nvlink", "NVLinks up", LINT_GPUS, gpu_links_active, .again = true, .detail = links_down},
    {"nvlink", "GB/s a link", LINT_GPUS, gpu_link_rate, .tolerance = 0.01},
    {"pcie", "PCIe at most of generation", LINT_GPUS, gpu_gen, .words = true},
    {"pcie", "PCIe lanes", LINT_GPUS, gpu_width, .words = false},
    {"nic", "Gb/s", LINT_NICS, nic_rate, .tolerance = 0.01},
    {"nic", "link layer", LINT_NICS, nic_layer, .words = true},
    {"nic", "board", LINT_NICS, nic_board, .words = true, .note = true},
    {"nic", "addresses of type", LINT_NICS, nic_gid, .words = true},
    {"nic", "NUMA node", LINT_NICS, nic_numa, .words = true},
    {"rails", "rail", LINT_NICS, nic_rail, .words = true},
    {"affinity", "nearest NIC", LINT_ENDPOINTS, end_nic, .words = true},
    {"numa", "NUMA node", LINT_ENDPOINTS, end_numa, .words = true},
};
const int lint_checks = sizeof(lint_check) / sizeof(*lint_check);
