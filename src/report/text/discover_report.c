/* SPDX-License-Identifier: BSD-3-Clause */
/* What `railgauge discover` says: the topology as a short picture, and whether NVLink is good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "report/text/report.h"
#include "topo/gpu.h"
#include "topo/groups.h"
#include "topo/nccl_profile.h"
#include "topo/nic.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/sources/net/net_view.h"
#include "topo/sources/net/rails.h"
#include "topo/topo.h"

enum {
    KINDS_SHOWN = 4,
    MODELS_SHOWN = 8,
    ODD_SHOWN = 20,
    DEVICES_SHOWN = 8,
    LIST_WIDTH = 44,
    PAIRS_COUNTED = 4096
};

/* "n[00-17],m1", or "n1 ... n99 (99)" if that is too long; the caller frees. */
static char *short_list(char *const *names, int count)
{
    char *all = hostlist_fold(names, count);

    if (strlen(all) <= LIST_WIDTH)
        return all;
    free(all);
    return mem_printf("%s ... %s (%d)", names[0], names[count - 1], count);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool alike(const struct host *a, const struct host *b)
{
    return a->sockets == b->sockets && a->cores == b->cores && a->endpoints == b->endpoints &&
           a->memory_bytes == b->memory_bytes && same_text(a->cpu, b->cpu);
}

static void print_host(FILE *f, const struct host *h, char *const *names, int count, bool first)
{
    char *list = short_list(names, count), unit[UNITS_TEXT];

    fprintf(f, "%-10s %s: %d endpoint%s%s", first ? "hosts" : "", list, h->endpoints,
            units_s(h->endpoints), count > 1 ? " each" : "");
    if (h->cores)
        fprintf(f, ", %d core%s", h->cores, units_s(h->cores));
    if (h->sockets)
        fprintf(f, ", %d socket%s", h->sockets, units_s(h->sockets));
    if (h->memory_bytes > 0)
        fprintf(f, ", %s", units_bytes_text(unit, h->memory_bytes));
    if (h->cpu)
        fprintf(f, ", %s", h->cpu);
    fputc('\n', f);
    free(list);
}

/* Print equal hosts on one line. */
static void print_hosts(FILE *f, const struct topo *t)
{
    bool *done = mem_calloc((size_t)t->hosts + 1, sizeof(*done));
    char **names = mem_calloc((size_t)t->hosts + 1, sizeof(*names));
    int shown = 0, left = t->hosts;

    for (int i = 0; i < t->hosts && shown < KINDS_SHOWN; i++) {
        int n = 0;
        if (done[i])
            continue;
        for (int k = i; k < t->hosts; k++)
            if (alike(&t->host[i], &t->host[k])) {
                names[n++] = t->host[k].name;
                done[k] = true;
            }
        print_host(f, &t->host[i], names, n, shown++ == 0);
        left -= n;
    }
    if (left > 0)
        fprintf(f, "%-10s and %d other%s\n", "", left, units_s(left));
    free(names);
    free(done);
}

/* Print the devices of the first host. */
static void print_devices(FILE *f, const struct topo *t)
{
    int shown = 0;

    for (int i = 0; i < t->endpoints && shown <= DEVICES_SHOWN; i++) {
        const struct endpoint *e = &t->endpoint[i];
        if (e->place.at[LEVEL_HOST] != 0)
            continue;
        if (shown++ == DEVICES_SHOWN) {
            fprintf(f, "%-10s ...\n", "");
            break;
        }
        fprintf(f, "%-10s %d  %s %d", shown == 1 ? "endpoints" : "", i,
                e->kind == ENDPOINT_GPU ? "GPU" : "rank", e->local);
        if (e->busid[0])
            fprintf(f, "  %s", e->busid);
        if (e->model[0])
            fprintf(f, "  %s", e->model);
        if (e->numa >= 0)
            fprintf(f, "  NUMA %d", e->numa);
        if (e->nic >= 0)
            fprintf(f, "  near %s", t->nic[e->nic].name);
        fputc('\n', f);
    }
    if (t->hosts > 1 && t->endpoints)
        fprintf(f, "%-10s (those of %s; %d in all)\n", "", t->host[0].name, t->endpoints);
}

/* Print the groups of each source and level, in the order of the source. */
static void print_groups(FILE *f, const struct topo *t)
{
    int count;
    struct group_set *s = group_sets(t, &count);

    for (int i = 0; i < count; i++) {
        char **names = mem_calloc((size_t)s[i].groups, sizeof(*names));
        for (int k = 0; k < s[i].groups; k++)
            names[k] = s[i].group[k]->name;
        char *list = short_list(names, s[i].groups);
        char *height = s[i].above ? mem_printf(" %d above spines", s[i].above) : mem_strdup("");
        fprintf(f, "%-10s %d %s%s by %s %s: %s\n", i ? "" : "declared", s[i].groups,
                s[i].above         ? units_plural(s[i].groups, "group", "groups")
                : s[i].groups == 1 ? level_name[s[i].level]
                                   : level_many[s[i].level],
                height, source_name[s[i].source], s[i].origin, list);
        free(height);
        free(list);
        free(names);
    }
    group_sets_free(s, count);
}

static void print_levels(FILE *f, const struct topo *t)
{
    fprintf(f, "%-10s", "levels");
    for (int l = 0; l < LEVEL_COUNT; l++) {
        const char *source = "";
        for (int i = 0; i < t->endpoints && !*source; i++)
            if (t->endpoint[i].place.at[l] >= 0)
                source = source_name[t->endpoint[i].source[l]];
        if (!t->group[l].count)
            continue;
        fprintf(f, "%s %d %s", l ? "," : "", t->group[l].count,
                t->group[l].count == 1 ? level_name[l] : level_many[l]);
        if (*source)
            fprintf(f, " (%s)", source);
    }
    fputc('\n', f);
}

static void print_tiers(FILE *f, const struct topo *t)
{
    long long pairs[TIER_MAX] = {0};

    for (int a = 0; a < t->endpoints && t->endpoints <= PAIRS_COUNTED; a++)
        for (int b = a + 1; b < t->endpoints; b++)
            pairs[topo_tier(t, a, b)]++;
    for (int i = 0; i < t->tiers; i++) {
        fprintf(f, "%-10s %-8s", i ? "" : "tiers", t->tier[i].name);
        if (!t->tier[i].same)
            fputs(" the rest", f);
        for (int l = 0, n = 0; l < LEVEL_COUNT; l++)
            if (t->tier[i].same >> l & 1)
                fprintf(f, "%s %s", n++ ? " and" : " same", level_name[l]);
        if (t->endpoints <= PAIRS_COUNTED)
            fprintf(f, ", %lld pair%s", pairs[i], pairs[i] == 1 ? "" : "s");
        fputc('\n', f);
    }
}

static bool same_nic(const struct nic *a, const struct nic *b)
{
    return a->layer == b->layer && a->rdma == b->rdma && a->up == b->up &&
           a->rate_Bps == b->rate_Bps && a->source == b->source;
}

static void print_nic(FILE *f, const struct topo *t, int i, bool first)
{
    const struct nic *n = &t->nic[i];
    char **names = mem_calloc((size_t)t->nics, sizeof(*names)), unit[UNITS_TEXT];
    int count = 0, here = 0;

    for (int k = 0; k < t->nics; k++)
        if (same_nic(n, &t->nic[k])) {
            count++;
            if (t->nic[k].host == n->host)
                names[here++] = t->nic[k].name;
        }
    char *list = short_list(names, here);
    fprintf(f, "%-10s %s: %s%s, %s, %s", first ? "NICs" : "", list,
            n->layer == LINK_ETHERNET && n->rdma ? "RoCE on " : "", nic_layer_text[n->layer],
            n->rate_Bps > 0 ? units_rate_text(unit, n->rate_Bps) : "rate not visible",
            n->up ? "up" : "down");
    if (count > here)
        fprintf(f, "; %d in all", count);
    fprintf(f, " (%s)\n", source_name[n->source]);
    free(list);
    free(names);
}

static void print_nics(FILE *f, const struct topo *t)
{
    int shown[KINDS_SHOWN + 1], kinds = 0;

    for (int i = 0; i < t->nics; i++) {
        bool seen = false;
        for (int k = 0; k < kinds; k++)
            seen = seen || same_nic(&t->nic[i], &t->nic[shown[k]]);
        if (seen)
            continue;
        if (kinds == KINDS_SHOWN) {
            fprintf(f, "%-10s and other kinds\n", "");
            break;
        }
        shown[kinds++] = i;
        print_nic(f, t, i, kinds == 1);
    }
}

/* --- GPUs, their NVLinks, and the members of domains and racks --- */

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

/* Source of a GPU entry: NVML, unless its endpoint came from a file. */
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

static void print_model(FILE *f, const struct mnnvl_facts *a, int row, bool first)
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

/* Print the first GPU of each model that has the model's largest number of active links. */
static void print_models(FILE *f, const struct mnnvl_facts *a)
{
    int models = a->names.models.count, shown = 0;

    for (int m = 0; m < models && shown < MODELS_SHOWN; m++)
        for (int i = 0; i < a->t->gpus; i++)
            if (a->gpu_model[i] == m && gpu_links_up(&a->t->gpu[i]) == a->model[m].up) {
                print_model(f, a, i, shown++ == 0);
                break;
            }
}

static void print_domains(FILE *f, const struct mnnvl_facts *a)
{
    char **names = mem_calloc((size_t)a->t->hosts + 1, sizeof(*names));

    for (int d = 0; d < a->domains && d < MODELS_SHOWN; d++) {
        int n = 0;
        for (int h = 0; h < a->t->hosts; h++)
            if (a->host[h].domain == d)
                names[n++] = a->t->host[h].name;
        char *list = n ? short_list(names, n) : mem_strdup("no host wholly");
        fprintf(f, "%-10s %s: %d GPU%s, %s\n", d ? "" : "domains", a->names.domains.name[d],
                a->domain[d].gpus, a->domain[d].gpus == 1 ? "" : "s", list);
        free(list);
    }
    if (a->domains > MODELS_SHOWN)
        fprintf(f, "%-10s and %d others\n", "", a->domains - MODELS_SHOWN);
    free(names);
}

static void print_racks(FILE *f, const struct mnnvl_facts *a)
{
    int racks = a->names.chassis.count;

    for (int r = 0; r < racks && r < MODELS_SHOWN; r++) {
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
        fprintf(f, "%-10s chassis %s: %d host%s", r ? "" : "racks", a->names.chassis.name[r], hosts,
                hosts == 1 ? "" : "s");
        if (low >= 0 && low < high)
            fprintf(f, ", trays %d-%d", low, high);
        else if (low >= 0)
            fprintf(f, ", tray %d", low);
        fputc('\n', f);
    }
}

/* Print hosts with the same verdict and reason on one line. */
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
        char *list = short_list(names, n);
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

static void print_gpus(FILE *f, const struct topo *t)
{
    struct mnnvl_facts a;
    struct mnnvl m;

    if (!t->gpus)
        return;
    mnnvl_facts_open(&a, t);
    mnnvl_judge(&m, t, t->trial, t->trials);
    print_models(f, &a);
    print_domains(f, &a);
    print_racks(f, &a);
    print_verdicts(f, t, &m);
    print_odd(f, &m);
    mnnvl_free(&m);
    mnnvl_facts_close(&a);
}

/* --- all --- */

static void print_nccl(FILE *f, const struct topo *t)
{
    struct nccl_profile p;

    if (!t->nccl || nccl_profile_read(&p, t->nccl, "nccl", NULL) < 0)
        return;
    nccl_print(&p, t, f);
    nccl_profile_free(&p);
}

static void topo_print(const struct topo *t, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = mem_stream(&text, &size);

    fprintf(f, "%-10s %d host%s, %d endpoint%s", "topology", t->hosts, units_s(t->hosts),
            t->endpoints, units_s(t->endpoints));
    fprintf(f, t->fabric ? " (preset %s)\n" : "\n", t->fabric);
    if (t->hosts)
        print_hosts(f, t);
    print_devices(f, t);
    print_levels(f, t);
    print_groups(f, t);
    if (t->endpoints)
        print_tiers(f, t);
    print_nics(f, t);
    rails_print(t, f);
    net_print(f, t);
    print_gpus(f, t);
    if (t->unseens)
        fputs("not visible:\n", f);
    for (int i = 0; i < t->unseens; i++)
        fprintf(f, "  %-20s %s\n", t->unseen[i].what, t->unseen[i].why);
    print_nccl(f, t);
    if (t->mpi)
        fprintf(f, "%-10s %s\n", "MPI", json_string_value(json_object_get(t->mpi, "text")));
    mem_stream_end(f);
    table_wrap_lines(out, text);
    free(text);
}

/* --- the verdict on NVLink --- */

static int check_nvlink(const struct topo *t, const struct mnnvl *m, struct err *err)
{
    if (!t->gpus)
        return err_set(err, "no verdict on NVLink: NVML told of no GPU");
    if (!m->bad)
        return 0;
    char **names = mem_calloc((size_t)m->hosts, sizeof(*names));
    int n = 0;
    for (int i = 0; i < m->hosts; i++)
        if (m->host[i].verdict == MNNVL_BAD)
            names[n++] = t->host[i].name;
    char *list = hostlist_fold(names, n);
    err_code(err, EXIT_BELOW, "NVLink is bad on %d of %d host%s: %.300s", n, m->hosts,
             m->hosts == 1 ? "" : "s", list);
    free(list);
    free(names);
    return -1;
}

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err)
{
    struct mnnvl m;

    mnnvl_judge(&m, t, t->trial, t->trials);
    if (what->json)
        json_answer(json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "format", "railgauge-discover",
                              "version", 1, "hosts", t->hosts, "endpoints", t->endpoints, "gpus",
                              t->gpus, "nvlink", mnnvl_json(&m, t)),
                    NULL, true, err);
    else if (!what->quiet)
        topo_print(t, out);
    int rc = what->check ? check_nvlink(t, &m, err) : 0;
    mnnvl_free(&m);
    return rc;
}
