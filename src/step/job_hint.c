/* SPDX-License-Identifier: BSD-3-Clause */
/* job_hint.c - search for a faster placement of the same ranks, among all placements that this
 * job's options can express. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/job.h"

enum { SEGMENTS = 12 };

/* Mesh orders that the launcher of each stack supports: Megatron-LM takes --use-tp-pp-dp-mapping,
 * torchtitan's order is fixed, other stacks have no mesh of their own. */
static const bool order_of[STACK_COUNT][ORDER_COUNT] = {
    [STACK_MEGATRON] = {[ORDER_MEGATRON] = true, [ORDER_TP_PP_DP] = true},
    [STACK_TORCHTITAN] = {[ORDER_TORCHTITAN] = true},
};

/* The given job, and a copy with another placement. */
struct rival {
    const struct job *j;
    const struct job_opts *o;
    const struct question *q;
    struct job_opts opts;
    struct job job;
    struct prediction p;
};

static void rival_free(struct rival *r)
{
    prediction_free(&r->p);
    job_close_again(&r->job, r->j);
}

/* Same ranks and batch; otherwise it is another job, not a placement. */
static bool rival_priced(struct rival *r)
{
    struct question q = *r->q;
    struct err err;

    if (job_open_again(&r->job, r->j, r->o, &r->opts, &err) < 0 ||
        r->job.layout.ranks != r->j->layout.ranks ||
        r->opts.recipe.global_batch != r->o->recipe.global_batch)
        return false;
    q.matrix = &r->job.matrix;
    q.layout = &r->job.layout;
    q.recipe = &r->opts.recipe;
    q.order = r->job.order;
    return predict_step(&r->p, &q, &err) == 0;
}

/* --- candidates --- */

static int endpoint_at(const int *order, int rank)
{
    return order ? order[rank] : rank;
}

/* Returns the number of groups of this level that ranks first, first + stride, ... are on; -1: one
 * is unknown. */
static int places_of(const struct topo *t, const int *order, enum level level, int first,
                     struct span span)
{
    bool *seen = mem_calloc((size_t)t->group[level].count + 1, sizeof(*seen));
    int count = 0;

    for (int i = 0; count >= 0 && i < span.size; i++) {
        int at = topo_at(t, endpoint_at(order, first + i * span.stride), level);
        if (at >= 0 && !seen[at]) {
            seen[at] = true;
            count++;
        }
        count = at < 0 ? -1 : count;
    }
    free(seen);
    return count;
}

static int nodes_of_rack(const struct topo *t)
{
    int *nodes = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(*nodes)), most = 0;
    bool *seen = mem_calloc((size_t)t->hosts + 1, sizeof(*seen));

    for (int i = 0; i < t->endpoints; i++) {
        int rack = topo_at(t, i, LEVEL_RACK), host = topo_at(t, i, LEVEL_HOST);
        if (rack < 0 || seen[host])
            continue;
        seen[host] = true;
        most = ++nodes[rack] > most ? nodes[rack] : most;
    }
    free(nodes);
    free(seen);
    return most;
}

/* Returns the largest number of nodes of a rack that hold whole groups of `ranks`, or that whole
 * groups fill. */
static int segment_for(int nodes, int per_node, int ranks)
{
    while (nodes > 0 && nodes * per_node % ranks && ranks % (nodes * per_node))
        nodes--;
    return nodes;
}

/* List segment sizes: 0, no segments, then those that suit the groups of each message. */
static int segments(int out[SEGMENTS], const struct prediction *p, const struct topo *t)
{
    int nodes = nodes_of_rack(t), per_node = t->hosts ? t->endpoints / t->hosts : 0, n = 0;

    out[n++] = 0;
    for (int i = 0; nodes > 1 && per_node > 0 && i < p->terms; i++) {
        struct span span = p->term[i].span;
        bool known = p->term[i].kind != TERM_MESSAGE || span.size < 2;
        int segment = known ? 0 : segment_for(nodes, per_node, span.size * span.stride);
        for (int k = 0; k < n; k++)
            known |= out[k] == segment;
        if (!known && n < SEGMENTS)
            out[n++] = segment;
    }
    return n;
}

/* True if the file lists the same endpoints that the ranks have without it. */
static bool order_permutes(const struct job *j)
{
    bool *seen = mem_calloc((size_t)j->matrix.topo.endpoints + 1, sizeof(*seen)), all = true;

    for (int i = 0; i < j->layout.ranks; i++)
        seen[j->order[i]] = true;
    for (int i = 0; i < j->layout.ranks; i++)
        all &= seen[i];
    free(seen);
    return all;
}

/* --- text --- */

static void say(char *out, size_t size, const char *option, const char *value)
{
    size_t used = strlen(out);

    snprintf(out + used, size - used, "%s%s%s%s", used ? " " : "", option, *value ? " " : "",
             value);
}

static void options_said(char *out, size_t size, const struct job_opts *was,
                         const struct job_opts *now)
{
    char number[16];

    *out = '\0';
    snprintf(number, sizeof(number), "%d", now->place.segment);
    if (was->place.order && !now->place.order)
        say(out, size, "without --order", "");
    if (was->mesh != now->mesh)
        say(out, size, "--mesh-order", order_name[now->mesh]);
    if (was->place.spread != now->place.spread)
        say(out, size, "--spread", "block");
    if (was->place.segment != now->place.segment)
        say(out, size, "--segment", number);
}

static int racks_of(const struct job *j)
{
    return places_of(&j->matrix.topo, j->order, LEVEL_RACK, 0, (struct span){j->layout.ranks, 1});
}

/* If each host is a domain of its own, say "host". */
static const char *places_word(enum level level, int places, int hosts)
{
    if (level == LEVEL_DOMAIN)
        return places == hosts ? "hosts" : "NVLink domains";
    return level_many[level];
}

static int group_places(const struct job *j, const struct term *t, enum level level)
{
    return places_of(&j->matrix.topo, j->order, level, span_rank(&t->span, t->index, 0), t->span);
}

/* Explain by the message that loses most time among those whose slowest groups lie in more places
 * than necessary. */
static void groups_said(struct faster *f, const struct prediction *p, const struct rival *best)
{
    static const enum level levels[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_HOST};
    double most = 0;

    snprintf(f->groups, sizeof(f->groups), "the order of ranks costs time");
    for (int i = 0; i < p->terms && i < best->p.terms; i++) {
        const struct term *a = &p->term[i], *b = &best->p.term[i];
        if (a->kind != TERM_MESSAGE || a->label != b->label || a->span.size != b->span.size ||
            a->sec - b->sec <= most)
            continue;
        for (size_t k = 0; k < sizeof(levels) / sizeof(*levels); k++) {
            int here = group_places(best->j, a, levels[k]);
            int there = group_places(&best->job, b, levels[k]);
            if (there < 0 || here <= there)
                continue;
            char axes[AXES_TEXT];
            most = a->sec - b->sec;
            snprintf(f->groups, sizeof(f->groups), "%s groups of %d straddle %s",
                     axes_text(axes, a->axes), a->span.size,
                     places_word(levels[k], here, group_places(best->j, a, LEVEL_HOST)));
            break;
        }
    }
}

static void take(struct faster *f, const struct prediction *p, const struct rival *r)
{
    int before = racks_of(r->j), now = racks_of(&r->job);

    f->sec = r->p.sec;
    f->racks = now > before && before > 0 ? now : 0;
    options_said(f->option, sizeof(f->option), r->o, &r->opts);
    groups_said(f, p, r);
}

/* Options that change nothing, or that the job cannot take, are skipped. */
static void try_one(struct prediction *p, struct rival *r)
{
    double best = p->faster.sec > 0 ? p->faster.sec : p->sec;

    if (rival_priced(r) && r->p.sec < best - JOB_HINT_IGNORES * p->sec)
        take(&p->faster, p, r);
    rival_free(r);
}

static void try_segments(struct prediction *p, const struct rival *like)
{
    int segment[SEGMENTS];
    int n = like->opts.place.order ? 1 : segments(segment, p, &like->j->matrix.topo);

    for (int i = 0; i < n; i++) {
        struct rival r = *like;
        if (i > 0)
            r.opts.place.segment = segment[i];
        try_one(p, &r);
    }
}

void job_hint(struct prediction *p, const struct job *j, const struct job_opts *o,
              const struct question *q)
{
    for (int mesh = 0; mesh < ORDER_COUNT; mesh++) {
        struct rival r = {.j = j, .o = o, .q = q, .opts = *o};
        if (mesh != o->mesh && !order_of[o->recipe.stack][mesh])
            continue;
        r.opts.mesh = mesh;
        try_segments(p, &r);
        if (!o->place.spread && (!o->place.order || !order_permutes(j)))
            continue;
        r.opts.place.order = NULL;
        r.opts.place.spread = SPREAD_BLOCK;
        try_segments(p, &r);
    }
}
