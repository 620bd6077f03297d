/* SPDX-License-Identifier: BSD-3-Clause */
/* net_print.c - summary of a network: switches by tier, NICs, cables by rate, parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/net.h"
#include "topo/sources/net/net_view.h"

enum { TIERS = 8, RATES = 6, PARTS_SHOWN = 4 };

static int count_kind(const struct net_view *v, enum net_kind kind, int part)
{
    int n = 0;

    for (int i = 0; i < v->net->nodes; i++)
        n += v->net->node[i].kind == kind && (part < 0 || v->part[i] == part);
    return n;
}

/* Print "31 leaves and 9 spines" of a part (-1: of all). */
static void print_switches(FILE *f, const struct net_view *v, int part)
{
    static const char *const one[] = {"leaf", "spine", "core switch"}, *const many[] = {
                                                                           "leaves", "spines",
                                                                           "core switches"};
    int tier[TIERS + 1] = {0}, kinds = 0;

    for (int i = 0; i < v->net->nodes; i++) {
        const struct net_node *n = &v->net->node[i];
        if (n->kind == NET_SWITCH && (part < 0 || v->part[i] == part))
            tier[n->tier >= 0 && n->tier < TIERS ? n->tier : TIERS]++;
    }
    for (int k = 0; k < 3; k++)
        if (tier[k])
            fprintf(f, "%s%d %s", kinds++ ? ", " : "", tier[k], tier[k] == 1 ? one[k] : many[k]);
    for (int k = 3; k < TIERS; k++)
        if (tier[k])
            fprintf(f, "%s%d of tier %d", kinds++ ? ", " : "", tier[k], k);
    if (tier[TIERS])
        fprintf(f, "%s%d without a host below", kinds++ ? ", " : "", tier[TIERS]);
    if (!kinds)
        fputs("no switch", f);
}

static void print_nodes(FILE *f, const struct net_view *v)
{
    int hcas = count_kind(v, NET_HCA, -1), engines = count_kind(v, NET_AGGREGATION, -1),
        routers = count_kind(v, NET_ROUTER, -1);

    fprintf(f, "%-10s ", "network");
    print_switches(f, v, -1);
    fprintf(f, "; %d adapter%s of %d host%s", hcas - v->unnamed, units_s(hcas - v->unnamed),
            v->hosts, units_s(v->hosts));
    if (v->unnamed)
        fprintf(f, ", %d of unknown ones", v->unnamed);
    if (engines)
        fprintf(f, "; %d SHARP engine%s", engines, units_s(engines));
    if (routers)
        fprintf(f, "; %d router%s", routers, units_s(routers));
    fputc('\n', f);
}

struct rate_count {
    const struct net_cable *cable;
    int count;
};

static int by_count(const void *x, const void *y)
{
    const struct rate_count *a = x, *b = y;

    return (b->count > a->count) - (b->count < a->count);
}

static void print_cables(FILE *f, const struct net *n)
{
    struct rate_count *r = NULL;
    int rates = 0;
    char unit[UNITS_TEXT];

    for (int i = 0; i < n->cables; i++) {
        const struct net_cable *c = &n->cable[i];
        int k = 0;
        while (k < rates &&
               (r[k].cable->width != c->width || strcmp(r[k].cable->speed, c->speed) != 0))
            k++;
        if (k == rates)
            MEM_PUSH(r, rates) = (struct rate_count){c, 0};
        r[k].count++;
    }
    if (rates)
        qsort(r, (size_t)rates, sizeof(*r), by_count);
    fprintf(f, "%-10s %d", "cables", n->cables);
    for (int k = 0; k < rates && k < RATES; k++) {
        const struct net_cable *c = r[k].cable;
        fprintf(f, "%s ", k ? "," : ":");
        if (rates > 1)
            fprintf(f, "%d ", r[k].count);
        if (!c->width)
            fputs("of unknown rate", f);
        else if (c->Bps > 0)
            fprintf(f, "%dx%s (%s)", c->width, c->speed, units_rate_text(unit, c->Bps));
        else
            fprintf(f, "%dx%s", c->width, c->speed);
    }
    fprintf(f, "%s\n", rates > RATES ? ", other rates" : "");
    free(r);
}

/* Print subnets that no cable joins: compute, storage, rails of their own. */
static void print_parts(FILE *f, const struct net_view *v)
{
    if (v->parts < 2)
        return;
    for (int p = 0; p < v->parts && p < PARTS_SHOWN; p++) {
        int hcas = count_kind(v, NET_HCA, p);
        fprintf(f, "%-10s ", p ? "" : "subnets");
        print_switches(f, v, p);
        fprintf(f, ", %d adapter%s\n", hcas, units_s(hcas));
    }
    if (v->parts > PARTS_SHOWN)
        fprintf(f, "%-10s and %d more\n", "", v->parts - PARTS_SHOWN);
}

void net_print(FILE *f, const struct topo *t)
{
    struct net_view v;

    if (!t->net)
        return;
    net_view_make(&v, t->net, t);
    print_nodes(f, &v);
    print_cables(f, t->net);
    print_parts(f, &v);
    net_view_free(&v);
}
