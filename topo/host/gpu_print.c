/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_print.c - GPUs, their NVLinks and who is in which domain and rack, in a few lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/host/gpu.h"
#include "topo/host/mnnvl.h"
#include "topo/host/mnnvl_facts.h"

enum { KINDS_SHOWN = 8, ODD_SHOWN = 20, LIST_WIDTH = 44 };

static char *host_names(char *const *names, int count)
{
    char *all = hostlist_fold(names, count);

    if (strlen(all) <= LIST_WIDTH)
        return all;
    free(all);
    return mem_printf("%s ... %s (%d)", names[0], names[count - 1], count);
}

static const char *ends_text(const struct gpu *g)
{
    static const char *const to[] = {"to other GPUs", "to the CPU", "to switches", ""};
    unsigned seen = 0;

    for (int i = 0; i < g->remotes; i++)
        seen |= 1u << g->remote[i].kind;
    for (int k = 0; k < 4; k++)
        if (seen == 1u << k)
            return to[k];
    return "";
}

/* Rows come from NVML, or from files that say of the endpoint that it is theirs. */
static int source_of(const struct topo *t, int row)
{
    for (int i = 0; i < t->endpoints; i++) {
        int source = t->endpoint[i].source[LEVEL_HOST];
        if (t->endpoint[i].gpu == row &&
            (source == SOURCE_SMI || source == SOURCE_NCCL || source == SOURCE_HWLOC))
            return source;
    }
    return SOURCE_NVML;
}

static void print_model(FILE *f, const struct facts *a, int row, bool first)
{
    const struct gpu *g = &a->t->gpu[row];
    char unit[UNITS_TEXT], links[GPU_LINKS_TEXT];

    fprintf(f, "%-10s %d x %s", first ? "GPUs" : "", a->model[a->gpu_model[row]].gpus,
            *g->model ? g->model : "of a model not told");
    if (g->links > 0 && gpu_links_up(g))
        fprintf(f, ", %s", gpu_links_text(g, links));
    else
        fputs(g->links < 0 ? ", NVLinks not told" : ", no NVLink", f);
    if (gpu_links_up(g) && g->link_Bps > 0)
        fprintf(f, " at %s", units_rate_text(unit, g->link_Bps));
    if (*ends_text(g))
        fprintf(f, " %s", ends_text(g));
    if (g->pcie_gen_max > 0 && g->pcie_width_max > 0)
        fprintf(f, ", PCIe %d x%d", g->pcie_gen_max, g->pcie_width_max);
    if (*g->driver)
        fprintf(f, ", driver %s", g->driver);
    fprintf(f, " (%s)\n", source_name[source_of(a->t, row)]);
}

/* The first GPU of each model that has as many links up as the best of them. */
static void print_models(FILE *f, const struct facts *a)
{
    int models = a->names.group[LEVEL_LEAF].count, shown = 0;

    for (int m = 0; m < models && shown < KINDS_SHOWN; m++)
        for (int i = 0; i < a->t->gpus; i++)
            if (a->gpu_model[i] == m && gpu_links_up(&a->t->gpu[i]) == a->model[m].up) {
                print_model(f, a, i, shown++ == 0);
                break;
            }
}

static void print_domains(FILE *f, const struct facts *a)
{
    char **names = mem_calloc((size_t)a->t->hosts + 1, sizeof(*names));

    for (int d = 0; d < a->domains && d < KINDS_SHOWN; d++) {
        int n = 0;
        for (int h = 0; h < a->t->hosts; h++)
            if (a->host[h].domain == d)
                names[n++] = a->t->host[h].name;
        char *list = n ? host_names(names, n) : mem_strdup("no host wholly");
        fprintf(f, "%-10s %s: %d GPU%s, %s\n", d ? "" : "domains",
                a->names.group[LEVEL_DOMAIN].name[d], a->domain[d].gpus,
                a->domain[d].gpus == 1 ? "" : "s", list);
        free(list);
    }
    if (a->domains > KINDS_SHOWN)
        fprintf(f, "%-10s and %d others\n", "", a->domains - KINDS_SHOWN);
    free(names);
}

static void print_racks(FILE *f, const struct facts *a)
{
    int racks = a->names.group[LEVEL_RACK].count;

    for (int r = 0; r < racks && r < KINDS_SHOWN; r++) {
        int hosts = 0, low = -1, high = -1;
        for (int h = 0; h < a->t->hosts; h++) {
            int tray = a->host[h].gpus ? a->t->gpu[a->host[h].first].tray : -1;
            if (a->host[h].chassis != r)
                continue;
            hosts++;
            if (tray < 0)
                continue;
            low = low < 0 || tray < low ? tray : low;
            high = tray > high ? tray : high;
        }
        fprintf(f, "%-10s chassis %s: %d host%s", r ? "" : "racks",
                a->names.group[LEVEL_RACK].name[r], hosts, hosts == 1 ? "" : "s");
        if (low >= 0 && low < high)
            fprintf(f, ", trays %d-%d", low, high);
        else if (low >= 0)
            fprintf(f, ", tray %d", low);
        fputc('\n', f);
    }
}

/* Hosts with the same verdict for the same reason share a line. */
static void print_verdicts(FILE *f, const struct topo *t, const struct mnnvl *m)
{
    bool *done = mem_calloc((size_t)t->hosts + 1, sizeof(*done));
    char **names = mem_calloc((size_t)t->hosts + 1, sizeof(*names));

    fprintf(f, "%-10s %s\n", "NVLink", m->summary);
    for (int i = 0; i < t->hosts; i++) {
        int n = 0;
        if (done[i])
            continue;
        for (int k = i; k < t->hosts; k++)
            if (!done[k] && m->host[i].verdict == m->host[k].verdict &&
                !strcmp(m->host[i].why, m->host[k].why)) {
                names[n++] = t->host[k].name;
                done[k] = true;
            }
        char *list = host_names(names, n);
        fprintf(f, "%-10s %s: %s: %s\n", "", list, mnnvl_word[m->host[i].verdict], m->host[i].why);
        free(list);
    }
    free(names);
    free(done);
}

static void print_odd(FILE *f, const struct mnnvl *m)
{
    for (int i = 0; i < m->odds && i < ODD_SHOWN; i++)
        fprintf(f, "%-10s %s\n", i ? "" : "odd", m->odd[i]);
    if (m->odds > ODD_SHOWN)
        fprintf(f, "%-10s and %d more\n", "", m->odds - ODD_SHOWN);
}

void topo_print_gpus(const struct topo *t, FILE *f)
{
    struct facts a;
    struct mnnvl m;

    if (!t->gpus)
        return;
    facts_open(&a, t);
    mnnvl_judge(&m, t, t->trial, t->trials);
    print_models(f, &a);
    print_domains(f, &a);
    print_racks(f, &a);
    print_verdicts(f, t, &m);
    print_odd(f, &m);
    mnnvl_free(&m);
    facts_close(&a);
}
