/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/groups.h"
#include "topo/lint/lint_impl.h"
#include "topo/nic.h"
#include "topo/sources/host/mnnvl.h"

/* lint_hosts.c - kinds of hosts and the parts of each, and oddities among hosts. */

static void count_gpus(struct lint_view *v)
{
    const struct topo *t = v->t;

    for (int i = t->gpus - 1; i >= 0; i--) {
        v->host[t->gpu[i].host].gpu = i;
        v->host[t->gpu[i].host].gpus++;
    }
    for (int i = 0; i < t->endpoints; i++)
        v->host[t->endpoint[i].place.at[LEVEL_HOST]].named += t->endpoint[i].kind == ENDPOINT_GPU;
}

static void sort_nics(struct lint_view *v)
{
    const struct topo *t = v->t;

    for (int i = 0; i < t->nics; i++) {
        struct lint_host *h = &v->host[t->nic[i].host];
        h->nics++;
        h->hcas += t->nic[i].rdma;
        h->up += t->nic[i].rdma && t->nic[i].up;
    }
    for (int h = 0, at = 0; h < t->hosts; at += v->host[h++].nics)
        v->host[h].nic = at;
    int *next = mem_calloc((size_t)t->hosts + 1, sizeof(*next));
    for (int i = 0; i < t->nics; i++)
        v->nic[v->host[t->nic[i].host].nic + next[t->nic[i].host]++] = i;
    free(next);
}

/* Model of the first GPU of each host; NULL: no GPU. */
static const char **models(const struct topo *t)
{
    const char **model = mem_calloc((size_t)t->hosts + 1, sizeof(*model));

    for (int i = t->endpoints - 1; i >= 0; i--)
        if (t->endpoint[i].kind == ENDPOINT_GPU)
            model[t->endpoint[i].place.at[LEVEL_HOST]] = t->endpoint[i].model;
    for (int i = t->gpus - 1; i >= 0; i--)
        model[t->gpu[i].host] = t->gpu[i].model;
    return model;
}

/* Kind of each host: the model of its first GPU, else of most hosts with the same CPU, else the
 * CPU; for hosts known only from other sources, the name without numbers. */
static void find_kinds(struct lint_view *v)
{
    const struct topo *t = v->t;
    const char **model = models(t);
    struct names cpus = {0};
    struct by_cpu {
        int hosts, with; /* hosts with GPUs */
        const char *model;
    } *cpu = mem_calloc((size_t)t->hosts + 1, sizeof(*cpu));
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int h = 0; h < t->hosts; h++) {
        of[h] = t->host[h].cpu ? names_add(&cpus, t->host[h].cpu) : -1;
        if (of[h] < 0)
            continue;
        struct by_cpu *c = &cpu[of[h]];
        c->hosts++;
        c->with += model[h] != NULL;
        c->model = c->model ? c->model : model[h];
    }
    for (int h = 0; h < t->hosts; h++) {
        const struct by_cpu *c = of[h] < 0 ? NULL : &cpu[of[h]];
        bool most = c && 2 * c->with > c->hosts - 1; /* majority of the other hosts */
        const char *like = model[h] ? model[h] : most ? c->model : NULL;
        char *family = topo_host_family(t->host[h].name);
        v->host[h].kind = names_add(&v->kinds, like             ? like
                                               : t->host[h].cpu ? t->host[h].cpu
                                                                : family);
        free(family);
    }
    names_free(&cpus);
    free(of);
    free(cpu);
    free(model);
}

static void view_open(struct lint_view *v, const struct topo *t)
{
    memset(v, 0, sizeof(*v));
    v->t = t;
    v->host = mem_calloc((size_t)t->hosts + 1, sizeof(*v->host));
    v->nic = mem_calloc((size_t)t->nics + 1, sizeof(*v->nic));
    v->named = mem_calloc((size_t)t->gpus + 1, sizeof(*v->named));
    for (int h = 0; h < t->hosts; h++)
        v->host[h].gpu = -1;
    count_gpus(v);
    sort_nics(v);
    find_kinds(v);
}

static void view_close(struct lint_view *v)
{
    names_free(&v->kinds);
    names_free(&v->peers);
    free(v->host);
    free(v->nic);
    free(v->named);
}

/* --- leaves, from the switch that each NIC reports at its other end --- */

struct leaves {
    const struct topo *t;
    const struct names *switches;
    const char *const *of; /* leaf of each NIC; "": unknown */
};

/* Leaf of each NIC: reported by the switch at its other end, else the declared place of its
 * endpoint.  The caller frees. */
static const char **leaf_names(const struct topo *t)
{
    const char **of = mem_calloc((size_t)t->nics + 1, sizeof(*of));
    bool told = false;

    for (int i = 0; i < t->nics; i++) {
        of[i] = t->nic[i].leaf;
        told |= t->nic[i].leaf[0];
    }
    for (int i = 0; i < t->endpoints && !told; i++) {
        int leaf = topo_at(t, i, LEVEL_LEAF), nic = t->endpoint[i].nic;
        if (leaf >= 0 && nic >= 0)
            of[nic] = t->group[LEVEL_LEAF].name[leaf];
    }
    return of;
}

static void say_leaf(struct lint *l, const struct lint_port *s, int leaf, int times, int n,
                     const void *of)
{
    const struct leaves *x = of;
    const struct nic *c = &x->t->nic[s->id];
    char *what = mem_printf("%s %s", x->t->host[c->host].name, c->name);

    lint_add(l, "leaf", what, "%s: cabled to %s%s%s where %d of %d hosts have theirs on %s", what,
             x->of[s->id], *c->leaf_port ? " port " : "", c->leaf_port, times, n,
             x->switches->name[leaf]);
    free(what);
}

/* Report NICs on another leaf: without mistakes the hosts of a group have the same leaves. */
static void lint_leaves(struct lint *l, const struct lint_view *v)
{
    const struct topo *t = v->t;
    struct leaf_link *at = mem_calloc((size_t)t->nics + 1, sizeof(*at));
    struct lint_port *port = mem_calloc((size_t)t->nics + 1, sizeof(*port));
    struct leaf_groups g;
    struct names switches = {0};
    const char **of = leaf_names(t);
    int n = 0;

    for (int i = 0; i < t->nics; i++) {
        if (!of[i][0])
            continue;
        int leaf = names_add(&switches, of[i]);
        at[n] = (struct leaf_link){t->nic[i].host, leaf};
        port[n++] = (struct lint_port){.leaf = leaf, .device = t->nic[i].name, .id = i};
    }
    leaf_groups_make(&g, at, n);
    for (int i = 0; i < n; i++)
        port[i].group = g.of_host[at[i].host];
    lint_ports(l, port, n, say_leaf, &(struct leaves){t, &switches, of});
    leaf_groups_free(&g);
    names_free(&switches);
    free(of);
    free(port);
    free(at);
}

/* --- PCIe trees that a virtual machine shows flat --- */

/* True if the GPUs first..end-1 are attached to NVLink switches and all their paths are PHB. */
static bool flat(const struct topo *t, int first, int end)
{
    bool all = end - first > 2;

    for (int i = first; i < end; i++) {
        const struct gpu *g = &t->gpu[i];
        all = all && g->remotes > 0 && g->remote[0].kind == LINK_END_SWITCH;
        for (int k = 0; k < g->paths; k++)
            all = all && (g->path[k] == PATH_PHB || g->path[k] == PATH_SELF);
        all = all && g->paths >= end - first;
    }
    return all;
}

int lint_pcie(struct lint *l, const struct topo *t)
{
    int before = l->findings;

    for (int i = 0, end; i < t->gpus; i = end) {
        for (end = i; end < t->gpus && t->gpu[end].host == t->gpu[i].host; end++)
            ;
        if (flat(t, i, end))
            lint_add(l, "pcie-flat", t->host[t->gpu[i].host].name,
                     "%s: %d GPUs on NVLink switches hang on one host bridge, as only a virtual "
                     "machine shows it: NCCL cannot know which NIC is near a GPU; give it a "
                     "topology file with the real PCIe switches (NCCL_TOPO_FILE)",
                     t->host[t->gpu[i].host].name, end - i);
    }
    return l->findings - before;
}

/* --- libibverbs compared with other sources of the same port --- */

/* Append a difference in words; unchanged if one source is silent or both agree. */
static char *odd(char *text, const struct nic *n, const char *what, const char *verbs,
                 const char *other, bool same)
{
    return same || !*verbs || !*other
               ? text
               : mem_append(text, "%s%s %s where %s tells %s", text ? ", " : "", what, verbs,
                            source_name[nic_teller(n)], other);
}

/* All differences of a port; NULL: equal.  Rates may differ by 1 %, and are ignored while the port
 * is down, when there is no link. */
static char *verbs_odds(const struct nic *n)
{
    const struct nic_verbs *v = &n->verbs;
    const bool rates = v->up && n->up && v->rate_Bps > 0 && n->rate_Bps > 0;
    const bool layers = v->layer != LINK_UNKNOWN && n->layer != LINK_UNKNOWN;
    char *text = NULL, ours[UNITS_TEXT], theirs[UNITS_TEXT];

    text = odd(text, n, "the port", v->up ? "up" : "down", n->up ? "up" : "down", v->up == n->up);
    text = odd(text, n, "link layer", nic_layer_text[v->layer], nic_layer_text[n->layer],
               !layers || v->layer == n->layer);
    text = odd(text, n, "a rate of", units_rate_text(ours, v->rate_Bps),
               units_rate_text(theirs, n->rate_Bps),
               !rates || fabs(v->rate_Bps - n->rate_Bps) <= 0.01 * n->rate_Bps);
    text = odd(text, n, "firmware", v->firmware, n->firmware, !strcmp(v->firmware, n->firmware));
    return odd(text, n, "the address", v->gid, n->gid, !strcmp(v->gid, n->gid));
}

/* Report ports that two sources describe differently: a container or virtual machine that shows
 * the files of another device, a library that does not fit its driver, or a port that changed
 * between the two. */
static void lint_verbs(struct lint *l, const struct topo *t)
{
    for (int i = 0; i < t->nics; i++) {
        const struct nic *n = &t->nic[i];
        char *odds = n->verbs.told ? verbs_odds(n) : NULL;
        if (odds) {
            char *what = mem_printf("%s %s", t->host[n->host].name, n->name);
            lint_add(l, "verbs", what, "%s: libibverbs tells %s", what, odds);
            free(what);
        }
        free(odds);
    }
}

/* Report ports that could use larger packets: one finding, because often all ports are alike. */
static void lint_mtu(struct lint *l, const struct topo *t)
{
    int up = 0, small = 0, first = -1;

    for (int i = 0; i < t->nics; i++) {
        const struct nic_verbs *v = &t->nic[i].verbs;
        up += v->told && v->up && v->mtu > 0;
        if (v->told && v->up && v->mtu > 0 && v->mtu < v->mtu_max) {
            small++;
            first = first < 0 ? i : first;
        }
    }
    if (!small)
        return;
    const struct nic *n = &t->nic[first];
    char *what = mem_printf("%s %s", t->host[n->host].name, n->name);
    lint_note(l, "mtu", what,
              "%s: RDMA packets of %d bytes where the port can do %d%s; %d of %d %s", what,
              n->verbs.mtu, n->verbs.mtu_max,
              n->layer == LINK_ETHERNET ? " (the interface's MTU decides)" : "", small, up,
              up == 1 ? "port" : "ports are so");
    free(what);
}

/* --- all checks --- */

/* True if NVLinks of a GPU of this host were already reported as unlike their peers. */
static bool links_named(const struct lint_view *v, int host)
{
    const struct lint_host *h = &v->host[host];

    for (int i = h->gpu; h->gpus && i < v->t->gpus && v->t->gpu[i].host == host; i++)
        if (v->named[i])
            return true;
    return false;
}

/* Report bad NVLink verdicts, and listed oddities that no majority shows. */
static void lint_mnnvl(struct lint *l, const struct lint_view *v)
{
    const struct topo *t = v->t;
    struct mnnvl m;

    mnnvl_judge(&m, t, t->trial, t->trials);
    for (int h = 0; h < m.hosts; h++) {
        const char *why = links_named(v, h) ? m.host[h].beside : m.host[h].why;
        if (m.host[h].verdict == MNNVL_BAD && why)
            lint_add(l, "mnnvl", t->host[h].name, "%s: %s", t->host[h].name, why);
    }
    for (int i = 0; i < m.odds - m.compared; i++)
        lint_add(l, "gpu", "", "%s", m.odd[i]);
    mnnvl_free(&m);
}

int lint_hosts(struct lint *l, const struct topo *t)
{
    int before = l->findings;
    struct lint_view v;

    view_open(&v, t);
    lint_peers(l, &v);
    if (!t->net)
        lint_leaves(l, &v);
    lint_verbs(l, t);
    lint_mtu(l, t);
    lint_mnnvl(l, &v);
    view_close(&v);
    return l->findings - before;
}
