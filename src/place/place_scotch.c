/* SPDX-License-Identifier: BSD-3-Clause */
/* place_scotch.c - ranks assigned to boxes by Scotch, if it is installed.
 *
 * The boxes are a complete graph with vertex weights equal to their slots (Scotch and libScotch 7.0
 * User's Guide: SCOTCH_archCmpltw, SCOTCH_graphBuild, SCOTCH_graphMap).  Scotch balances within a
 * tolerance and may put more ranks into a box than it has slots, so those that exchange the least
 * there are moved out.  Prototypes are declared here: only libraries with SCOTCH_Num of type int
 * are used. */
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"
#include "place/place_impl.h"

struct scotch {
    int (*num_sizeof)(void);
    void *(*graph_alloc)(void), *(*arch_alloc)(void), *(*strat_alloc)(void);
    int (*graph_init)(void *), (*arch_init)(void *), (*strat_init)(void *);
    void (*graph_exit)(void *), (*arch_exit)(void *), (*strat_exit)(void *);
    int (*arch_cmpltw)(void *arch, int vertices, const int *weight);
    int (*graph_build)(void *graph, int base, int vertices, const int *start, const int *end,
                       const int *load, const int *label, int edges, const int *edge,
                       const int *weight);
    int (*graph_map)(void *graph, const void *arch, const void *plan, int *part);
    void (*random_seed)(int);
    void (*random_reset)(void);
    void (*mem_free)(void *);
};

#define CALL(symbol, member)                                                                       \
    {                                                                                              \
        "SCOTCH_" symbol, offsetof(struct scotch, member), LIBRARY_NEEDED                          \
    }
static const struct library_call calls[] = {
    CALL("numSizeof", num_sizeof),     CALL("graphAlloc", graph_alloc),
    CALL("archAlloc", arch_alloc),     CALL("stratAlloc", strat_alloc),
    CALL("graphInit", graph_init),     CALL("archInit", arch_init),
    CALL("stratInit", strat_init),     CALL("graphExit", graph_exit),
    CALL("archExit", arch_exit),       CALL("stratExit", strat_exit),
    CALL("archCmpltw", arch_cmpltw),   CALL("graphBuild", graph_build),
    CALL("graphMap", graph_map),       CALL("randomSeed", random_seed),
    CALL("randomReset", random_reset), CALL("memFree", mem_free),
};

static int load(struct scotch *s, struct err *err)
{
    static const char *const names[] = {"libscotch-7.0.so", "libscotch.so.7.0", "libscotch.so.7",
                                        NULL};
    const char *name;
    void *library = library_open(names, "Scotch", &name, err);

    if (!library ||
        library_resolve(s, library, calls, sizeof(calls) / sizeof(*calls), 0, name, err) < 0)
        return -1;
    if (s->num_sizeof() != (int)sizeof(int))
        return err_config(err, "%s counts with %d bytes, not %zu", name, s->num_sizeof(),
                          sizeof(int));
    return 0;
}

/* Flows between ranks with integer weights, symmetric. */
struct graph {
    int *start, *edge, *weight, edges;
};

static double bytes_of(const struct tie *t)
{
    return t->out + t->in;
}

static void graph_of(struct graph *g, const struct ties *t, int ranks)
{
    double total = 0;

    g->edges = t->start[ranks];
    g->start = mem_calloc((size_t)ranks + 1, sizeof(int));
    g->edge = mem_calloc((size_t)g->edges + 1, sizeof(int));
    g->weight = mem_calloc((size_t)g->edges + 1, sizeof(int));
    memcpy(g->start, t->start, ((size_t)ranks + 1) * sizeof(int));
    for (int i = 0; i < g->edges; i++)
        total += bytes_of(&t->tie[i]);
    for (int r = 0; r < ranks; r++)
        for (int i = t->start[r]; i < t->start[r + 1]; i++) {
            int peer = t->tie[i].peer;
            const struct tie me = {.peer = r}, *one = &t->tie[i];
            if (peer < r) /* the other side sums in another order, so take that one */
                one = bsearch(&me, &t->tie[t->start[peer]],
                              (size_t)(t->start[peer + 1] - t->start[peer]), sizeof(me),
                              stats_by_int);
            g->edge[i] = peer;
            g->weight[i] = 1 + (int)(1e9 * bytes_of(one) / total);
        }
}

static void graph_free(struct graph *g)
{
    free(g->start);
    free(g->edge);
    free(g->weight);
}

/* Set part[rank] to its box.  Returns 0, or -1 if Scotch fails. */
static int map(const struct scotch *s, const struct graph *g, int ranks, const int *slots,
               int boxes, unsigned seed, int *part)
{
    void *graph = s->graph_alloc(), *arch = s->arch_alloc(), *plan = s->strat_alloc();

    s->graph_init(graph);
    s->arch_init(arch);
    s->strat_init(plan);
    s->random_seed((int)(seed & 0x7fffffff));
    s->random_reset();
    int rc =
        s->arch_cmpltw(arch, boxes, slots) ||
        s->graph_build(graph, 0, ranks, g->start, NULL, NULL, NULL, g->edges, g->edge, g->weight) ||
        s->graph_map(graph, arch, plan, part);
    s->graph_exit(graph);
    s->arch_exit(arch);
    s->strat_exit(plan);
    s->mem_free(graph);
    s->mem_free(arch);
    s->mem_free(plan);
    return rc ? -1 : 0;
}

/* Bytes between a rank and a box. */
static double to_box(const struct ties *t, const int *part, int rank, int box)
{
    double sum = 0;

    for (int i = t->start[rank]; i < t->start[rank + 1]; i++)
        if (part[t->tie[i].peer] == box)
            sum += bytes_of(&t->tie[i]);
    return sum;
}

/* Move one rank out of an overfull box to the box that it exchanges most with. */
static void move_out(const struct ties *t, int *part, int ranks, int *room, int boxes, int full)
{
    double least = 0;
    int who = -1, where = -1;

    for (int r = 0; r < ranks; r++) {
        if (part[r] != full)
            continue;
        double here = to_box(t, part, r, full);
        for (int b = 0; b < boxes; b++) {
            if (room[b] <= 0)
                continue;
            double loss = here - to_box(t, part, r, b);
            if (who < 0 || loss < least) {
                least = loss;
                who = r;
                where = b;
            }
        }
    }
    part[who] = where;
    room[where]--;
    room[full]++;
}

/* Make every box hold at most its slots.  Returns false if that is impossible. */
static bool fit(const struct ties *t, int *part, int ranks, const int *slots, int boxes)
{
    int *room = mem_calloc((size_t)boxes + 1, sizeof(int));

    memcpy(room, slots, (size_t)boxes * sizeof(int));
    for (int r = 0; r < ranks; r++) {
        if (part[r] < 0 || part[r] >= boxes) {
            free(room);
            return false;
        }
        room[part[r]]--;
    }
    for (int b = 0; b < boxes; b++)
        while (room[b] < 0)
            move_out(t, part, ranks, room, boxes, b);
    free(room);
    return true;
}

/* Use as few boxes of the row as hold the ranks; the last one counts only with the slots needed. */
static int boxes_used(const struct row *r, const struct node_pool *p, int ranks, int *slots)
{
    int n = 0;

    for (int left = ranks; left > 0 && n < r->boxes; n++) {
        slots[n] = row_slots(r, p, n);
        slots[n] = slots[n] < left ? slots[n] : left;
        left -= slots[n];
    }
    return n;
}

static void try_level(struct place_best *b, struct placer *pl, const struct scotch *s, int level)
{
    const struct ties *t = placer_ties(pl);
    size_t n = (size_t)pl->ranks + 1;
    int *part = mem_calloc(n, sizeof(int)), *order = mem_calloc(n, sizeof(int));
    struct graph g;
    struct row r;

    row_make(&r, pl->pool, level, ROW_HEALTHY, -1, -1);
    int *slots = mem_calloc((size_t)r.boxes + 1, sizeof(int));
    int boxes = boxes_used(&r, pl->pool, pl->ranks, slots);
    graph_of(&g, t, pl->ranks);
    pl->spent += 8.0 * g.edges;
    if (boxes > 1 && map(s, &g, pl->ranks, slots, boxes, pl->ask->seed, part) == 0 &&
        fit(t, part, pl->ranks, slots, boxes) && greedy_fill(pl, &r, part, order))
        place_try(b, pl, order, "Scotch", NULL);
    graph_free(&g);
    row_free(&r);
    free(slots);
    free(part);
    free(order);
}

int place_scotch(struct place_best *b, struct placer *pl, struct err *err)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(pl->pool, level);
    struct scotch s;

    if (load(&s, err) < 0)
        return -1;
    for (int k = 0; k < levels && placer_may(pl, 0.8); k++)
        try_level(b, pl, &s, level[k]);
    return 0;
}
