/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/nccl_profile.h"
#include "topo/topo.h"

enum {
    COMMS_SHOWN = 4,
    RINGS_SHOWN = 4,
    RANKS_SHOWN = 16,
    KINDS_SHOWN = 4,
    TEXTS_SHOWN = 12,
    TABLE_SHOWN = 20
};

static void print_graph(FILE *f, const struct nccl_graph *g, int kind)
{
    char intra[UNITS_TEXT], inter[UNITS_TEXT];

    units_rate_text(intra, g->intra_Bps);
    units_rate_text(inter, g->inter_Bps);
    fprintf(f, "%-10s   %-14s %2d x %s", "", nccl_graph_name[kind], g->channels, intra);
    if (strcmp(intra, inter) != 0 && g->inter_Bps > 0)
        fprintf(f, ", %s to other hosts", inter);
    fprintf(f, ", %s%s%s\n", g->type_intra, g->type_inter[0] ? "/" : "", g->type_inter);
}

static bool same_ring(const struct nccl_comm_profile *c, int a, int b)
{
    size_t n = (size_t)c->ranks;

    return !memcmp(c->ring + (size_t)a * n, c->ring + (size_t)b * n, n * sizeof(int));
}

/* Print equal rings on one line. */
static void print_rings(FILE *f, const struct nccl_comm_profile *c)
{
    int shown = 0;

    for (int k = 0; k < c->rings; k++) {
        int alike = 0, first = 0;
        while (!same_ring(c, first, k))
            first++;
        if (first < k)
            continue;
        for (int o = k; o < c->rings; o++)
            alike += same_ring(c, o, k);
        if (shown++ == RINGS_SHOWN) {
            fprintf(f, "%-10s   and other rings\n", "");
            return;
        }
        fprintf(f, "%-10s   order", "");
        for (int i = 0; i < c->ranks && i < RANKS_SHOWN; i++)
            fprintf(f, " %d", c->ring[k * c->ranks + i]);
        fprintf(f, "%s (%d channel%s)\n", c->ranks > RANKS_SHOWN ? " ..." : "", alike,
                units_s(alike));
    }
}

/* True if two communicators differ only by their ids: a sweep creates many equal ones. */
static bool same_comm(const struct nccl_comm_profile *a, const struct nccl_comm_profile *b)
{
    size_t n = (size_t)a->ranks, rings = (size_t)a->rings; /* if 0, ring is NULL */

    return a->ranks == b->ranks && a->nodes == b->nodes && a->coll == b->coll && a->p2p == b->p2p &&
           a->nvls == b->nvls && a->mnnvl == b->mnnvl && a->rings == b->rings &&
           nccl_assumed(a) == nccl_assumed(b) && !a->endpoint == !b->endpoint &&
           (!a->endpoint || (!memcmp(a->endpoint, b->endpoint, n * sizeof(int)) &&
                             (!rings || !memcmp(a->ring, b->ring, rings * n * sizeof(int)))));
}

/* Number of communicators equal to comm i, itself included; 0: an earlier one is equal. */
static int alike(const struct nccl_profile *p, int i)
{
    int n = 0;

    for (int k = 0; k < p->comms; k++)
        if (same_comm(&p->comm[k], &p->comm[i])) {
            if (k < i)
                return 0;
            n++;
        }
    return n;
}

static void print_comm(FILE *f, const struct nccl_comm_profile *c, int count, bool first)
{
    char rate[UNITS_TEXT];

    fprintf(f, "%-10s ", first ? "comms" : "");
    if (count > 1)
        fprintf(f, "%d of ", count);
    fprintf(f, "%d ranks", c->ranks);
    if (c->nodes)
        fprintf(f, " on %d host%s", c->nodes, units_s(c->nodes));
    if (c->coll >= 0)
        fprintf(f, ", %d channel%s", c->coll, units_s(c->coll));
    if (c->p2p >= 0)
        fprintf(f, ", %d for send and receive", c->p2p);
    if (c->mnnvl > 0)
        fputs(", MNNVL", f);
    if (c->nvls >= 0)
        fprintf(f, c->nvls ? ", %d NVLS" : ", no NVLS", c->nvls);
    if (nccl_assumed(c) > 0)
        fprintf(f, "; assumed %s", units_rate_text(rate, nccl_assumed(c)));
    fputc('\n', f);
    for (int k = 0; k < NCCL_GRAPH_COUNT; k++)
        if (c->graph[k].pattern)
            print_graph(f, &c->graph[k], k);
    if (c->endpoint)
        print_rings(f, c);
}

/* Print large communicators first; pairs are only counted. */
static void print_comms(FILE *f, const struct nccl_profile *p)
{
    int shown = 0, pairs = 0, left = 0;

    for (int i = 0; i < p->comms; i++) {
        bool pair = p->comm[i].ranks <= 2 && p->comms > 1;
        int count = pair ? 0 : alike(p, i);
        pairs += pair;
        if (count && shown < COMMS_SHOWN)
            print_comm(f, &p->comm[i], count, shown++ == 0);
        else
            left += count;
    }
    if (left)
        fprintf(f, "%-10s %d more\n", "", left);
    if (pairs)
        fprintf(f, "%-10s %d of 2 ranks\n", shown ? "" : "comms", pairs);
}

static int rank_host(const struct topo *t, const struct nccl_comm_profile *c, int rank)
{
    int e = c->endpoint ? c->endpoint[rank] : -1;

    return t && e >= 0 && e < t->endpoints ? t->endpoint[e].place.at[LEVEL_HOST] : -1;
}

/* Print connections by transport and place: [within a host, between hosts, places not known]. */
static void print_links(FILE *f, const struct nccl_profile *p, const struct topo *t)
{
    static const char *const where[3] = {"within a host", "between hosts", "places not known"};
    long long lines[NCCL_VIA_COUNT][3] = {{0}}, direct[NCCL_VIA_COUNT][3] = {{0}},
              through[NCCL_VIA_COUNT][3] = {{0}};
    bool first = true;

    for (int i = 0; i < p->links; i++) {
        const struct nccl_link *k = &p->link[i];
        const struct nccl_comm_profile *c = &p->comm[p->link_comm[i]];
        int a = rank_host(t, c, k->from), b = rank_host(t, c, k->to);
        int w = a < 0 || b < 0 ? 2 : a != b;
        if (k->receives)
            continue; /* counted at its sender */
        lines[k->via][w] += k->channels;
        direct[k->via][w] += k->gdr ? k->channels : 0;
        through[k->via][w] += k->through >= 0 ? k->channels : 0;
    }
    for (int v = 0; v < NCCL_VIA_COUNT; v++)
        for (int w = 0; w < 3; w++) {
            if (!lines[v][w])
                continue;
            fprintf(f, "%-10s %-11s %s: %lld connection%s", first ? "used" : "", nccl_via_name[v],
                    where[w], lines[v][w], lines[v][w] == 1 ? "" : "s");
            if (v >= NCCL_VIA_NET_IB && v <= NCCL_VIA_NET_OTHER)
                fprintf(f, ", %lld with GPUDirect RDMA", direct[v][w]);
            if (through[v][w])
                fprintf(f, ", %lld by way of another GPU", through[v][w]);
            fputc('\n', f);
            first = false;
        }
}

static bool same_nics(const struct nccl_rank *a, const struct nccl_rank *b)
{
    bool same = a->nics == b->nics && !strcmp(a->net, b->net);

    for (int i = 0; same && i < a->nics; i++)
        same = a->nic[i].number == b->nic[i].number && !strcmp(a->nic[i].name, b->nic[i].name);
    return same;
}

static void print_ranks(FILE *f, const struct nccl_profile *p)
{
    int kind[KINDS_SHOWN + 1], kinds = 0;

    for (int i = 0; i < p->ranks; i++) {
        int k = 0, alike = 0;
        while (k < kinds && !same_nics(&p->rank[kind[k]], &p->rank[i]))
            k++;
        if (k < kinds)
            continue;
        if (kinds == KINDS_SHOWN) {
            fprintf(f, "%-10s and other sets\n", "");
            return;
        }
        kind[kinds++] = i;
        for (int o = 0; o < p->ranks; o++)
            alike += same_nics(&p->rank[i], &p->rank[o]);
        fprintf(f, "%-10s %s:", kinds == 1 ? "network" : "",
                p->rank[i].net[0] ? p->rank[i].net : "not reported");
        for (int n = 0; n < p->rank[i].nics && n < RANKS_SHOWN; n++)
            fprintf(f, " %s%s", p->rank[i].nic[n].name,
                    p->rank[i].nic[n].gdr == 1 ? " (GPUDirect)" : "");
        fprintf(f, "; %d rank%s\n", alike, units_s(alike));
    }
}

static int by_size(const void *a, const void *b)
{
    const struct nccl_choice *x = a, *y = b;
    int op = strcmp(x->op, y->op);

    return x->comm != y->comm ? (x->comm > y->comm) - (x->comm < y->comm)
           : op               ? op
                              : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool same_choice(const struct nccl_choice *a, const struct nccl_choice *b)
{
    return a->comm == b->comm && !strcmp(a->op, b->op) && !strcmp(a->algo, b->algo) &&
           !strcmp(a->proto, b->proto);
}

static void print_choices(FILE *f, const struct nccl_profile *p)
{
    struct nccl_choice *c = mem_calloc((size_t)p->choices + 1, sizeof(*c));
    int shown = 0, n = 0;

    for (int i = 0; i < p->choices; i++) /* skip pairs: too many */
        if (p->comm[p->choice[i].comm].ranks > 2 || p->comms == 1)
            c[n++] = p->choice[i];
    if (n)
        qsort(c, (size_t)n, sizeof(*c), by_size);
    for (int i = 0, last; i < n; i = last + 1) {
        char from[UNITS_TEXT], to[UNITS_TEXT];
        last = i;
        while (last + 1 < n && same_choice(&c[i], &c[last + 1]))
            last++;
        if (shown == 2 * TEXTS_SHOWN) {
            fprintf(f, "%-10s ...\n", "");
            break;
        }
        fprintf(f, "%-10s %-14s %s", shown++ ? "" : "chosen", c[i].op[0] ? c[i].op : "any",
                units_bytes_text(from, (double)c[i].bytes));
        if (last > i)
            fprintf(f, " to %s", units_bytes_text(to, (double)c[last].bytes));
        fprintf(f, ": %s %s", c[i].algo, c[i].proto);
        if (c[last].channels >= 0)
            fprintf(f, ", %d channel%s", c[last].channels, units_s(c[last].channels));
        fputc('\n', f);
    }
    free(c);
}

static bool one_type(const struct nccl_paths *d)
{
    for (int i = 0; i < d->gpus * d->gpus; i++)
        if (i / d->gpus != i % d->gpus && d->pair[i].type != d->pair[1].type)
            return false;
    for (int i = 0; i < d->gpus * d->nets; i++)
        if (d->nic[i].type != d->nic[0].type)
            return false;
    return true;
}

/* Head of column i of the table of paths: a GPU's rank, then a NIC's name. */
static int column_head(const struct nccl_paths *d, int i, char buf[16])
{
    int n = i < d->gpus ? snprintf(buf, 16, "%4d", d->gpu[i].rank)
                        : snprintf(buf, 16, "%.8s", d->net[i - d->gpus].name);

    return n < 4 ? 4 : n;
}

static const char *column_cell(const struct nccl_paths *d, int g, int i)
{
    return i == g        ? "-"
           : i < d->gpus ? nccl_path_type_name[d->pair[g * d->gpus + i].type]
                         : nccl_path_type_name[d->nic[g * d->nets + i - d->gpus].type];
}

/* Print the path of every pair, GPUs by rank and then NICs, unless all are equal; in several blocks of
 * columns if a line has more than `width` characters. */
static void print_table(FILE *f, const struct nccl_paths *d, int width)
{
    int columns = d->gpus + d->nets, whole = 16;
    char head[16];

    if (d->gpus < 2 || columns > TABLE_SHOWN || one_type(d))
        return;
    for (int i = 0; i < columns; i++)
        whole += 1 + column_head(d, i, head);
    for (int first = 0, end; first < columns; first = end) {
        int at = 16;
        for (end = first; end < columns; end++) {
            bool nics = whole > width && end == d->gpus; /* NICs begin a block */
            at += 1 + column_head(d, end, head);
            if (end > first && (at > width || nics))
                break;
        }
        fprintf(f, "%-10s  rank", "");
        for (int i = first; i < end; i++) {
            int n = column_head(d, i, head);
            fprintf(f, " %*s", n, head);
        }
        fputc('\n', f);
        for (int g = 0; g < d->gpus; g++) {
            fprintf(f, "%-10s  %4d", "", d->gpu[g].rank);
            for (int i = first; i < end; i++)
                fprintf(f, " %*s", column_head(d, i, head), column_cell(d, g, i));
            fputc('\n', f);
        }
    }
}

/* Print how many GPU pairs and GPU-NIC pairs have each type, from the dump with most GPUs. */
static void print_paths(FILE *f, const struct nccl_profile *p, int width)
{
    int most = 0;

    if (!p->n_paths)
        return;
    for (int d = 1; d < p->n_paths; d++)
        if (p->paths[d].gpus > p->paths[most].gpus)
            most = d;
    const struct nccl_paths *d = &p->paths[most];
    for (int nets = 0; nets < 2; nets++) {
        int count[NCCL_PATH_COUNT] = {0}, columns = nets ? d->nets : d->gpus;
        double Bps[NCCL_PATH_COUNT] = {0};
        bool any = false;
        for (int g = 0; g < d->gpus; g++)
            for (int i = 0; i < columns; i++) {
                const struct nccl_route *r =
                    nets ? &d->nic[g * d->nets + i] : &d->pair[g * d->gpus + i];
                if (!nets && i == g)
                    continue;
                count[r->type]++;
                Bps[r->type] = r->Bps > Bps[r->type] ? r->Bps : Bps[r->type];
                any = true;
            }
        if (!any)
            continue;
        fprintf(f, "%-10s", nets ? "GPU to NIC" : "GPU to GPU");
        for (int k = 0; k < NCCL_PATH_COUNT; k++) {
            char rate[UNITS_TEXT];
            if (count[k])
                fprintf(f, " %d %s%s%s%s", count[k], nccl_path_type_name[k], Bps[k] > 0 ? " (" : "",
                        Bps[k] > 0 ? units_rate_text(rate, Bps[k]) : "", Bps[k] > 0 ? ")" : "");
        }
        fprintf(f, " by NCCL's rules\n");
    }
    print_table(f, d, width);
}

static void print_texts(FILE *f, const char *title, char *const *list, int count)
{
    if (count)
        fprintf(f, "%s:\n", title);
    for (int i = 0; i < count && i < TEXTS_SHOWN; i++)
        fprintf(f, "  %.200s\n", list[i]);
    if (count > TEXTS_SHOWN)
        fprintf(f, "  and %d more\n", count - TEXTS_SHOWN);
}

void nccl_print(const struct nccl_profile *p, const struct topo *t, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = mem_stream(&text, &size);

    fprintf(f, "%-10s %s, %d rank%s reported, %lld log lines", "NCCL",
            p->version[0] ? p->version : "version not reported", p->ranks, units_s(p->ranks),
            p->lines);
    if (p->dropped)
        fprintf(f, " (%lld facts beyond the limits are left out)", p->dropped);
    fputc('\n', f);
    print_ranks(f, p);
    print_comms(f, p);
    print_links(f, p, t);
    print_choices(f, p);
    print_paths(f, p, table_width(out));
    print_texts(f, "NCCL settings", p->env, p->envs);
    print_texts(f, "NCCL warnings", p->warn, p->warns);
    print_texts(f, "NCCL findings", p->finding, p->findings);
    mem_stream_end(f);
    table_wrap_lines(out, text);
    free(text);
}
