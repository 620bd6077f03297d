/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"
#include "topo/topo.h"

static void add_node(struct segments *s, const char *node)
{
    MEM_PUSH(s->node, s->nodes) = mem_strdup(node);
}

/* Returns the index of the new opinion.  All nodes must be added before. */
static int add_opinion(struct segments *s, const char *who)
{
    MEM_PUSH(s->opinion, s->opinions) =
        (struct opinion){mem_strdup(who), mem_calloc((size_t)s->nodes + 1, sizeof(char *)), 0};
    return s->opinions - 1;
}

static void tell(struct segments *s, int opinion, int node, const char *block)
{
    struct opinion *o = &s->opinion[opinion];

    o->told += !o->block[node];
    free(o->block[node]);
    o->block[node] = mem_strdup(block);
}

void segments_free(struct segments *s)
{
    for (int i = 0; i < s->opinions; i++) {
        hostlist_free(s->opinion[i].block, s->nodes);
        free(s->opinion[i].who);
    }
    free(s->opinion);
    hostlist_free(s->node, s->nodes);
    *s = (struct segments){.size = 0};
}

void segment_verdict_free(struct segment_verdict *v)
{
    hostlist_free(v->word, v->words);
    hostlist_free(v->differ, v->differs);
    free(v->order);
    *v = (struct segment_verdict){.segments = 0};
}

/* Number the blocks of one source in order of appearance; -1: unknown. */
static int *number(const struct segments *s, const struct opinion *o, int *blocks)
{
    int *of = mem_calloc((size_t)s->nodes + 1, sizeof(*of));
    struct names names = {0};

    for (int i = 0; i < s->nodes; i++)
        of[i] = o->block[i] ? names_add(&names, o->block[i]) : -1;
    *blocks = names.count;
    names_free(&names);
    return of;
}

/* --- one segment --- */

enum state { UNKNOWN, TOGETHER, SPLIT };

static enum state look(const struct opinion *o, int from, int to)
{
    const char *first = NULL;
    bool all = true;

    for (int i = from; i < to; i++) {
        const char *b = o->block[i];
        if (b && first && strcmp(b, first))
            return SPLIT;
        first = first ? first : b;
        all = all && b;
    }
    return all ? TOGETHER : UNKNOWN;
}

static char *names_in(const struct segments *s, const struct opinion *o, int from, int to,
                      const char *block)
{
    char **name = mem_calloc((size_t)(to - from) + 1, sizeof(*name));
    int n = 0;

    for (int i = from; i < to; i++)
        if (block ? o->block[i] && !strcmp(o->block[i], block) : !o->block[i])
            name[n++] = s->node[i];
    char *list = n ? hostlist_fold(name, n) : NULL;
    free(name);
    return list;
}

/* "node05 is in rack2, node[06-08] are in rack1"; blocks in order of appearance. */
static void put_whereabouts(FILE *f, const struct segments *s, const struct opinion *o, int from,
                            int to)
{
    for (int i = from; i < to; i++) {
        bool seen = false;
        for (int k = from; k < i && !seen; k++)
            seen = o->block[i] ? o->block[k] && !strcmp(o->block[i], o->block[k]) : !o->block[k];
        if (seen)
            continue;
        char *list = names_in(s, o, from, to, o->block[i]);
        fprintf(f, "%s%s %s%s", i > from ? ", " : "", list, o->block[i] ? "in " : "not known",
                o->block[i] ? o->block[i] : "");
        free(list);
    }
}

static void say(struct segment_verdict *v, const struct segments *s, int segment, int from, int to,
                int by, const enum state *state)
{
    char *list = hostlist_fold(s->node + from, to - from), *text;
    size_t len;
    FILE *f = mem_stream(&text, &len);

    if (by < 0)
        fprintf(f, "segment %d (%s): no source tells of all of its nodes", segment + 1, list);
    if (by >= 0) {
        fprintf(f, "segment %d wants %d nodes of one block, %s: ", segment + 1, to - from,
                s->opinion[by].who);
        put_whereabouts(f, s, &s->opinion[by], from, to);
    }
    for (int o = 0; o < s->opinions && by >= 0; o++)
        if (state[o] == TOGETHER)
            fprintf(f, "; %s: all in %s", s->opinion[o].who, s->opinion[o].block[from]);
    mem_stream_end(f);
    MEM_PUSH(v->word, v->words) = text;
    free(list);
}

/* Returns the first source that has the segment split, or -1. */
static int judge_one(struct segment_verdict *v, const struct segments *s, int segment)
{
    int from = segment * s->size, to = from + s->size < s->nodes ? from + s->size : s->nodes;
    enum state *state = mem_calloc((size_t)s->opinions + 1, sizeof(*state));
    int split = -1;
    bool known = false;

    for (int o = 0; o < s->opinions; o++) {
        state[o] = look(&s->opinion[o], from, to);
        known = known || state[o] == TOGETHER;
        if (state[o] == SPLIT && split < 0)
            split = o;
    }
    if (split >= 0 && !v->split)
        v->first = v->words;
    v->split += split >= 0;
    v->together += split < 0 && known;
    v->unknown += split < 0 && !known;
    if (split >= 0 || !known)
        say(v, s, segment, from, to, split, state);
    free(state);
    return split;
}

/* --- all segments --- */

/* Returns an order of the same nodes with whole segments according to this source, or NULL.  Each
 * block, in order of appearance, gives as many segments as it holds. */
static char *better_order(const struct segments *s, const struct opinion *o)
{
    int blocks, *of = number(s, o, &blocks), n = 0;
    int *held = mem_calloc((size_t)blocks + 1, sizeof(*held));
    char **name = mem_calloc((size_t)s->nodes + 1, sizeof(*name)), *list = NULL;

    for (int i = 0; i < s->nodes; i++)
        if (of[i] >= 0)
            held[of[i]]++;
    for (int b = 0; b < blocks; b++)
        for (int i = 0, left = held[b] / s->size * s->size; i < s->nodes && left; i++)
            if (of[i] == b) {
                name[n++] = s->node[i];
                left--;
            }
    if (n == s->nodes)
        list = hostlist_fold(name, n);
    free(name);
    free(held);
    free(of);
    return list;
}

/* Find two nodes that x puts together and y apart, among nodes known to both. */
static bool coarser(const struct segments *s, const int *x, const int *y, int blocks, int *a,
                    int *b)
{
    int *first = mem_calloc((size_t)blocks + 1, sizeof(*first));
    bool found = false;

    for (int i = 0; i < s->nodes && !found; i++) {
        if (x[i] < 0 || y[i] < 0)
            continue;
        int *f = &first[x[i]];
        if (!*f)
            *f = i + 1;
        else if (y[*f - 1] != y[i]) {
            *a = *f - 1;
            *b = i;
            found = true;
        }
    }
    free(first);
    return found;
}

/* One grouping may be finer than the other (cliques of a rack).  If each has nodes together that
 * the other has apart, one of them is wrong. */
static void compare(struct segment_verdict *v, const struct segments *s, int p, int q)
{
    const struct opinion *x = &s->opinion[p], *y = &s->opinion[q];
    int xs, ys, a, b, c, d;
    int *of_x = number(s, x, &xs), *of_y = number(s, y, &ys);

    if (coarser(s, of_x, of_y, xs, &a, &b) && coarser(s, of_y, of_x, ys, &c, &d))
        MEM_PUSH(v->differ, v->differs) = mem_printf(
            "%s and %s disagree: %s and %s are in %s and in %s, %s; %s and %s are in %s and in %s, "
            "%s; the other has them together",
            x->who, y->who, s->node[a], s->node[b], y->block[a], y->block[b], y->who, s->node[c],
            s->node[d], x->block[c], x->block[d], x->who);
    free(of_x);
    free(of_y);
}

void segments_judge(struct segment_verdict *v, const struct segments *s)
{
    int first = -1;

    *v = (struct segment_verdict){.segments = (s->nodes + s->size - 1) / s->size};
    for (int i = 0; i < v->segments; i++) {
        int split = judge_one(v, s, i);
        first = first < 0 ? split : first;
    }
    for (int p = 0; p < s->opinions; p++)
        for (int q = p + 1; q < s->opinions; q++)
            compare(v, s, p, q);
    if (first >= 0 && s->nodes % s->size == 0)
        v->order = better_order(s, &s->opinion[first]);
}

int segments_exit(const struct segment_verdict *v, const struct segments *s, struct err *err)
{
    if (v->split)
        err_code(err, EXIT_BELOW, "%d of %d segments of %d nodes are split: %.300s", v->split,
                 v->segments, s->size, v->word[v->first]);
    else if (v->unknown)
        err_set(err, "nobody tells where the nodes of %d of %d segments are: %.200s", v->unknown,
                v->segments, v->word[0]);
    else
        return EXIT_GOOD;
    return err->code;
}

/* --- sources: reports of the nodes, and files --- */

static const enum level finest[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF};
enum { FINEST = sizeof(finest) / sizeof(*finest) };

static int take_addr(struct segments *s, const struct self_report *list, int count, struct err *err)
{
    int o = -1;

    for (int i = 0; i < count; i++) {
        const struct self_report *t = &list[i];
        struct slurm_addr a;
        if (!t->addr || !t->pattern)
            continue;
        int rc = slurm_addr_parse(&a, t->addr, t->pattern, t->node, err);
        const struct slurm_addr_part *above = rc == 0 ? slurm_addr_above(&a) : NULL;
        if (above && o < 0)
            o = add_opinion(s, "SLURM_TOPOLOGY_ADDR");
        if (above)
            tell(s, o, i, above->text);
        slurm_addr_free(&a);
        if (rc < 0)
            return err_wrap(err, "%.80s", t->node);
    }
    return 0;
}

int segments_from_told(struct segments *s, const struct self_report *list, int count,
                       struct err *err)
{
    int nvml = -1, label = -1;

    for (int i = 0; i < count; i++)
        add_node(s, list[i].node);
    for (int i = 0; i < count; i++)
        if (list[i].nvlink) {
            nvml = nvml < 0 ? add_opinion(s, "NVML") : nvml;
            tell(s, nvml, i, list[i].nvlink);
        }
    for (int i = 0; i < count; i++)
        if (list[i].label) {
            label = label < 0 ? add_opinion(s, "label") : label;
            tell(s, label, i, list[i].label);
        }
    return take_addr(s, list, count, err);
}

/* group[] of each host of t; -1: unknown. */
static void say_all(struct segments *s, const struct topo *t, const char *who, const int *of,
                    char *const *name)
{
    int o = -1;

    for (int i = 0; i < s->nodes; i++) {
        int host = topo_find_host(t, s->node[i]);
        if (host < 0 || of[host] < 0)
            continue;
        if (o < 0)
            o = add_opinion(s, who);
        tell(s, o, i, name[of[host]]);
    }
}

/* Add the coordinates of the file.  Returns their source, or -1. */
static int from_places(struct segments *s, const struct topo *t, const char *name)
{
    for (int k = 0; k < FINEST; k++) {
        char **group;
        int groups, source = -1;
        for (int i = 0; i < t->endpoints && source < 0; i++)
            if (t->endpoint[i].place.at[finest[k]] >= 0)
                source = t->endpoint[i].source[finest[k]];
        if (source < 0)
            continue;
        int *of = groups_of_hosts(t, finest[k], &group, &groups);
        bool good = groups_shared(of, t->hosts, groups) > 0;
        if (good) {
            char *who = mem_printf("%s (%s)", name, level_name[finest[k]]);
            say_all(s, t, who, of, group);
            free(who);
        }
        hostlist_free(group, groups);
        free(of);
        if (good)
            return source;
    }
    return -1;
}

static int rank_of(enum level level)
{
    for (int k = 0; k < FINEST; k++)
        if (finest[k] == level)
            return k;
    return FINEST;
}

/* A source declares several levels; its finest counts. */
static bool has_finer(const struct group_set *set, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (set[k].source == set[i].source && rank_of(set[k].level) < rank_of(set[i].level))
            return true;
    return false;
}

void segments_from_topo(struct segments *s, const struct topo *t, const char *name)
{
    int places = from_places(s, t, name), count;
    struct group_set *set = group_sets(t, &count);

    for (int i = 0; i < count; i++) {
        if ((int)set[i].source == places || rank_of(set[i].level) == FINEST || set[i].above ||
            has_finer(set, count, i))
            continue;
        int *of = group_set_of(&set[i], t);
        char **group = mem_calloc((size_t)set[i].groups + 1, sizeof(*group));
        char *who = mem_printf("%s (%s)", set[i].origin, level_name[set[i].level]);
        for (int k = 0; k < set[i].groups; k++)
            group[k] = set[i].group[k]->name;
        say_all(s, t, who, of, group);
        free(who);
        free(group);
        free(of);
    }
    group_sets_free(set, count);
}
