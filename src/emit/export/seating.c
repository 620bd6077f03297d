/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/seating.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"

int seating_host(const struct seating *s, int rank)
{
    return s->topo->endpoint[s->order[rank]].place.at[LEVEL_HOST];
}

void seating_stays(struct stays *v, const struct seating *s)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));

    *v = (struct stays){.back = -1};
    for (int r = 0; r < s->ranks; r++) {
        int host = seating_host(s, r);
        if (v->count && v->stay[v->count - 1].host == host) {
            v->stay[v->count - 1].ranks++;
            continue;
        }
        if (seen[host] && v->back < 0)
            v->back = r;
        seen[host] = true;
        MEM_PUSH(v->stay, v->count) = (struct stay){host, r, 1};
    }
    free(seen);
}

/* Node names hold letters, digits, '-', '.' and '_' only: everything else means something to some
 * of these formats. */
int seating_names(const struct seating *s, struct err *err)
{
    for (int r = 0; r < s->ranks; r++) {
        const char *name = s->topo->host[seating_host(s, r)].name;
        for (const char *c = name; *c; c++)
            if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
                return err_data(err, "node name \"%.80s\": '%c' cannot stand in a rank file", name,
                                isprint((unsigned char)*c) ? *c : '?');
    }
    return 0;
}

/* Does the k-th rank of every node run on its k-th device? */
int seating_local(const struct seating *s, const char *what, struct err *err)
{
    int *next = mem_calloc((size_t)s->topo->hosts + 1, sizeof(int)), rc = 0;

    for (int r = 0; rc == 0 && r < s->ranks; r++) {
        const struct endpoint *e = &s->topo->endpoint[s->order[r]];
        int host = seating_host(s, r), want = next[host]++;
        if (e->local != want)
            rc = err_data(err,
                          "rank %d is on device %d of node \"%s\", and %s gives it device %d: "
                          "ranks of a node take its devices in turn",
                          r, e->local, s->topo->host[host].name, what, want);
    }
    free(next);
    return rc;
}

/* The nodes, each once and filled before the next. */
int seating_whole(struct stays *v, const struct seating *s, const char *what, struct err *err)
{
    if (seating_names(s, err) < 0 || seating_local(s, what, err) < 0)
        return -1;
    seating_stays(v, s);
    if (v->back < 0)
        return 0;
    err_data(err,
             "rank %d comes back to node \"%s\", and %s fills a node before the next: use rankfile "
             "or slurm-hostfile",
             v->back, s->topo->host[seating_host(s, v->back)].name, what);
    free(v->stay);
    return -1;
}

/* Each node once, in the order in which ranks meet it. */
char **seating_nodes(const struct seating *s, int *count)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));
    char **name = NULL;

    *count = 0;
    for (int r = 0; r < s->ranks; r++) {
        int host = seating_host(s, r);
        if (!seen[host])
            MEM_PUSH(name, *count) = s->topo->host[host].name;
        seen[host] = true;
    }
    free(seen);
    return name;
}

char *seating_list(const struct seating *s)
{
    int count;
    char **name = seating_nodes(s, &count), *text = hostlist_fold(name, count);

    free(name);
    return text;
}

static int gcd(int a, int b)
{
    return b ? gcd(b, a % b) : a;
}

/* Of each group of a level, the nodes of the job; their greatest common divisor; 0: not known. */
static int common_at(const struct seating *s, enum level level)
{
    int groups = s->topo->group[level].count, common = 0;
    int *nodes = mem_calloc((size_t)groups + 1, sizeof(int));
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool)), known = true;

    for (int r = 0; r < s->ranks; r++) {
        int group = s->topo->endpoint[s->order[r]].place.at[level], host = seating_host(s, r);
        known &= group >= 0;
        if (known && !seen[host])
            nodes[group]++;
        seen[host] = true;
    }
    for (int g = 0; known && g < groups; g++)
        common = gcd(common, nodes[g]);
    free(nodes);
    free(seen);
    return common;
}

int seating_segment(const struct seating *s)
{
    int common = common_at(s, LEVEL_DOMAIN);

    if (common <= 1)
        common = common_at(s, LEVEL_RACK);
    return common > 1 ? common : 1;
}
