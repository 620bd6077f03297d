/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_leaves.c - adapters on another leaf than those of the same name, by what each NIC is told of
 * the switch at its other end (LLDP); with a net, net_lint.h does it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/lint/lint_parts.h"
#include "topo/lint/net_lint_parts.h"

/* Hosts of a group have the same leaves, but for mistakes: each leaf counts for the set that most
 * hosts on it have, and a host belongs where most of its leaves do. */
struct leaves {
    const struct lint_view *v;
    struct topo words; /* LEAF: switches; RACK: sets of them, as text */
    int *leaf;         /* by row of NICs, -1 */
    int *set;          /* by host, -1 */
};

struct seat {
    int group, nic, leaf;
    const char *name;
};

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

static int by_seat(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    int order = a->group != b->group ? (a->group > b->group ? 1 : -1) : strcmp(a->name, b->name);

    return order ? order : (a->nic > b->nic) - (a->nic < b->nic);
}

/* The leaves of a host's NICs, each once and in order; the caller frees. */
static int *leaves_of(const struct leaves *s, int host, int *count)
{
    const struct lint_host *h = &s->v->host[host];
    int *list = mem_calloc((size_t)h->nics + 1, sizeof(*list)), n = 0;

    *count = 0;
    for (int i = 0; i < h->nics; i++)
        if (s->leaf[s->v->nic[h->nic + i]] >= 0)
            list[n++] = s->leaf[s->v->nic[h->nic + i]];
    qsort(list, (size_t)n, sizeof(*list), by_number);
    for (int i = 0; i < n; i++)
        if (!i || list[i] != list[i - 1])
            list[(*count)++] = list[i];
    return list;
}

static int set_of(struct leaves *s, int host)
{
    int n, *leaf = leaves_of(s, host, &n);
    enum { DIGITS = 12 }; /* of a number and the blank after it */
    char *text = mem_calloc((size_t)n + 1, DIGITS), *at = text;

    for (int i = 0; i < n; i++)
        at += snprintf(at, DIGITS, "%d ", leaf[i]);
    free(leaf);
    int set = n ? topo_add_group(&s->words, LEVEL_RACK, text) : -1;
    free(text);
    return set;
}

/* usual[leaf]: the set that most hosts on it have; the caller frees. */
static int *usual_sets(const struct leaves *s)
{
    const struct topo *t = s->v->t;
    int leaves = s->words.group[LEVEL_LEAF].count, times;
    int *usual = mem_calloc((size_t)leaves + 1, sizeof(*usual));
    int *first = mem_calloc((size_t)leaves + 2, sizeof(*first));
    int *value = mem_calloc((size_t)t->nics + 1, sizeof(*value));

    for (int pass = 0; pass < 2; pass++) {
        for (int h = 0; h < t->hosts; h++) {
            int n, *leaf = leaves_of(s, h, &n);
            for (int i = 0; i < n; i++)
                if (pass)
                    value[first[leaf[i]]++] = s->set[h];
                else
                    first[leaf[i] + 1]++;
            free(leaf);
        }
        for (int i = 0; !pass && i < leaves; i++)
            first[i + 1] += first[i];
    }
    for (int i = 0, at = 0; i < leaves; at = first[i++]) /* first[i] is now where i ends */
        usual[i] = net_mode(value + at, first[i] - at, &times);
    free(first);
    free(value);
    return usual;
}

/* The group of a host by a vote of its leaves. */
static int group_of(const struct leaves *s, const int *usual, int host)
{
    int n, times, *leaf = leaves_of(s, host, &n);

    for (int i = 0; i < n; i++)
        leaf[i] = usual[leaf[i]];
    int group = n ? net_mode(leaf, n, &times) : -1;
    free(leaf);
    return group;
}

/* NICs of one name of the hosts of one group. */
static void judge_seats(struct lint *l, const struct leaves *s, const struct seat *x, int n)
{
    const struct topo *t = s->v->t;
    int *value = mem_calloc((size_t)n, sizeof(*value)), times;

    for (int i = 0; i < n; i++)
        value[i] = x[i].leaf;
    int leaf = net_mode(value, n, &times);
    for (int i = 0; i < n && net_most(times, n); i++) {
        const struct nic *c = &t->nic[x[i].nic];
        char *what = mem_printf("%s %s", t->host[c->host].name, c->name);
        if (x[i].leaf != leaf)
            lint_add(l, "leaf", what, "%s: cabled to %s%s%s where %d of %d hosts have theirs on %s",
                     what, c->leaf, *c->leaf_port ? " port " : "", c->leaf_port, times, n,
                     s->words.group[LEVEL_LEAF].name[leaf]);
        free(what);
    }
    free(value);
}

static void compare(struct lint *l, const struct leaves *s, const int *usual)
{
    const struct topo *t = s->v->t;
    struct seat *seat = mem_calloc((size_t)t->nics + 1, sizeof(*seat));
    int n = 0;

    for (int h = 0; h < t->hosts; h++) {
        int group = group_of(s, usual, h);
        for (int i = 0; i < s->v->host[h].nics; i++) {
            int nic = s->v->nic[s->v->host[h].nic + i];
            if (s->leaf[nic] >= 0)
                seat[n++] = (struct seat){group, nic, s->leaf[nic], t->nic[nic].name};
        }
    }
    qsort(seat, (size_t)n, sizeof(*seat), by_seat);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1;
             end < n && seat[end].group == seat[i].group && !strcmp(seat[end].name, seat[i].name);
             end++)
            ;
        judge_seats(l, s, seat + i, end - i);
    }
    free(seat);
}

void lint_leaves(struct lint *l, const struct lint_view *v)
{
    const struct topo *t = v->t;
    struct leaves s = {.v = v};

    topo_init(&s.words);
    s.leaf = mem_calloc((size_t)t->nics + 1, sizeof(*s.leaf));
    s.set = mem_calloc((size_t)t->hosts + 1, sizeof(*s.set));
    for (int i = 0; i < t->nics; i++)
        s.leaf[i] = t->nic[i].leaf[0] ? topo_add_group(&s.words, LEVEL_LEAF, t->nic[i].leaf) : -1;
    for (int h = 0; h < t->hosts; h++)
        s.set[h] = set_of(&s, h);
    int *usual = usual_sets(&s);
    compare(l, &s, usual);
    free(usual);
    free(s.leaf);
    free(s.set);
    topo_free(&s.words);
}
