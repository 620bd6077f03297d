/* SPDX-License-Identifier: BSD-3-Clause */
/* place_greedy.c - fill slots one after another, each with the rank that exchanges most with those
 * on the same host, then in the same box, then anywhere.
 *
 * Waiting ranks are kept in heaps, one per box if the box of each rank is given.  Filling n slots
 * costs their number of ties times the height of a heap. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

enum { NEAR_HOST, NEAR_BOX, NEAR_ANY, NEARS };

struct greedy {
    const struct placer *placer;
    const struct ties *ties;
    const struct row *row;
    double worth[NEARS]; /* s saved per byte if its peer is this near instead of farthest */
    double *near[NEARS]; /* per rank: bytes to ranks on this host, in this box, placed anywhere */
    double *score;       /* per rank: seconds saved by them */
    int *met[NEARS], meets[NEARS]; /* ranks with nonzero bytes, for the first two */
    int *order;
    /* Heaps of waiting ranks, the best first: heap h is heap[first[h]] and the `count[h]` - 1
     * places behind.  at: place of each rank in its heap; -1: it has a slot. */
    const int *box_of; /* per rank: its heap; NULL: a single heap */
    int *heap, *first, *count, *at;
};

/* Seconds per byte between two slots of the pool. */
static double per_byte(const struct matrix *m, int a, int b)
{
    int tier = matrix_tier(m, a, b);
    double rate = matrix_rate(m, tier, DIR_BI);

    return rate > 0 ? 1 / rate : 0;
}

/* Set the worth of nearness from the first host with two slots, the first box with two hosts, and
 * the ends of the row. */
static void weigh(struct greedy *f)
{
    const struct node_pool *p = f->placer->pool;
    const struct matrix *m = p->matrix;
    const struct row *r = f->row;
    int first = r->host[0], last = r->host[r->hosts - 1];
    double far = per_byte(m, p->endpoint[p->start[first]], p->endpoint[p->start[last]]);
    double host = far, box = far;

    for (int i = 0; i < r->hosts && host == far; i++)
        if (p->start[r->host[i] + 1] - p->start[r->host[i]] > 1)
            host = per_byte(m, p->endpoint[p->start[r->host[i]]],
                            p->endpoint[p->start[r->host[i]] + 1]);
    for (int b = 0; b < r->boxes && box == far; b++)
        if (r->first[b + 1] - r->first[b] > 1)
            box = per_byte(m, p->endpoint[p->start[r->host[r->first[b]]]],
                           p->endpoint[p->start[r->host[r->first[b] + 1]]]);
    f->worth[NEAR_HOST] = fmax(0, box - host);
    f->worth[NEAR_BOX] = fmax(0, far - box);
    f->worth[NEAR_ANY] = 1e-3 * far; /* keeps neighbours near if boxes decide nothing */
}

static void rate(struct greedy *f, int rank)
{
    double sum = 0;

    for (int k = 0; k < NEARS; k++)
        sum += f->worth[k] * f->near[k][rank];
    f->score[rank] = sum;
}

/* Higher score first; among equal ones the lower rank. */
static bool before(const struct greedy *f, int a, int b)
{
    double one = f->score[a], other = f->score[b];

    return one > other || (!(one < other) && a < b);
}

static int heap_of(const struct greedy *f, int rank)
{
    return f->box_of ? f->box_of[rank] : 0;
}

static void swap(struct greedy *f, int *heap, int i, int k)
{
    int rank = heap[i];

    heap[i] = heap[k];
    heap[k] = rank;
    f->at[heap[i]] = i;
    f->at[heap[k]] = k;
}

/* Move the rank at place i to its position in the heap. */
static void settle(struct greedy *f, int h, int i)
{
    int *heap = f->heap + f->first[h], n = f->count[h];

    for (; i > 0 && before(f, heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(f, heap, i, (i - 1) / 2);
    for (int best = i;; i = best) {
        for (int k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            if (before(f, heap[k], heap[best]))
                best = k;
        if (best == i)
            break;
        swap(f, heap, i, best);
    }
}

static void settle_rank(struct greedy *f, int rank)
{
    rate(f, rank);
    if (f->at[rank] >= 0)
        settle(f, heap_of(f, rank), f->at[rank]);
}

static int pick(const struct greedy *f, int h)
{
    return f->count[h] ? f->heap[f->first[h]] : -1;
}

/* `rank` is the first of its heap. */
static void put(struct greedy *f, int rank, int slot)
{
    int h = heap_of(f, rank);

    f->order[rank] = slot;
    swap(f, f->heap + f->first[h], 0, --f->count[h]);
    f->at[rank] = -1;
    settle(f, h, 0);
    for (int i = f->ties->start[rank]; i < f->ties->start[rank + 1]; i++) {
        int peer = f->ties->tie[i].peer;
        double bytes = f->ties->tie[i].out + f->ties->tie[i].in;
        for (int k = 0; k < NEARS && bytes > 0; k++) {
            if (k < NEAR_ANY && f->near[k][peer] == 0)
                f->met[k][f->meets[k]++] = peer;
            f->near[k][peer] += bytes;
        }
        settle_rank(f, peer);
    }
}

static void forget(struct greedy *f, int near)
{
    for (int i = 0; i < f->meets[near]; i++) {
        int rank = f->met[near][i];
        f->near[near][rank] = 0;
        settle_rank(f, rank);
    }
    f->meets[near] = 0;
}

/* Fill every slot of the row in order.  False: ranks are left. */
static bool fill_row(struct greedy *f)
{
    const struct node_pool *p = f->placer->pool;
    int left = f->placer->ranks;

    for (int b = 0; b < f->row->boxes && left; b++) {
        forget(f, NEAR_BOX);
        for (int i = f->row->first[b]; i < f->row->first[b + 1] && left; i++) {
            int host = f->row->host[i];
            forget(f, NEAR_HOST);
            for (int s = p->start[host]; s < p->start[host + 1] && left; s++) {
                int rank = pick(f, f->box_of ? b : 0);
                if (rank < 0)
                    break;
                put(f, rank, p->endpoint[s]);
                left--;
            }
        }
    }
    return left == 0;
}

/* Same for boxes of `size` slots and hosts of the usual size: order[rank] is the place in the
 * line. */
static void fill_line(struct greedy *f, int size)
{
    int per = f->placer->pool->per_host;

    for (int s = 0; s < f->placer->ranks; s++) {
        if (s % size == 0)
            forget(f, NEAR_BOX);
        if (s % per == 0)
            forget(f, NEAR_HOST);
        put(f, pick(f, 0), s);
    }
}

/* All scores are 0, so ranks in ascending order already form heaps. */
static void heaps_make(struct greedy *f, int ranks, int heaps)
{
    f->heap = mem_calloc((size_t)ranks + 1, sizeof(int));
    f->at = mem_calloc((size_t)ranks + 1, sizeof(int));
    f->first = mem_calloc((size_t)heaps + 1, sizeof(int));
    f->count = mem_calloc((size_t)heaps + 1, sizeof(int));
    for (int r = 0; r < ranks; r++)
        f->first[heap_of(f, r) + 1]++;
    for (int h = 0; h < heaps; h++)
        f->first[h + 1] += f->first[h];
    for (int r = 0; r < ranks; r++) {
        int h = heap_of(f, r);
        f->at[r] = f->count[h]++;
        f->heap[f->first[h] + f->at[r]] = r;
    }
}

static void fill_open(struct greedy *f, struct placer *pl, const struct row *row, const int *box_of,
                      int *order)
{
    size_t n = (size_t)pl->ranks + 1;

    *f = (struct greedy){
        .placer = pl, .ties = placer_ties(pl), .row = row, .box_of = box_of, .order = order};
    for (int k = 0; k < NEARS; k++) {
        f->near[k] = mem_calloc(n, sizeof(double));
        f->met[k] = k < NEAR_ANY ? mem_calloc(n, sizeof(int)) : NULL;
    }
    f->score = mem_calloc(n, sizeof(double));
    heaps_make(f, pl->ranks, box_of ? row->boxes : 1);
    weigh(f);
    /* a tie costs a heap update; a unit of work is one look-up */
    pl->spent += 4.0 * (f->ties->start[pl->ranks] + pl->ranks);
}

static void fill_close(struct greedy *f)
{
    for (int k = 0; k < NEARS; k++) {
        free(f->near[k]);
        free(f->met[k]);
    }
    free(f->score);
    free(f->heap);
    free(f->first);
    free(f->count);
    free(f->at);
}

bool greedy_fill(struct placer *pl, const struct row *row, const int *box_of, int *order)
{
    struct greedy f;

    fill_open(&f, pl, row, box_of, order);
    bool done = fill_row(&f);
    fill_close(&f);
    return done;
}

/* Where lines of ranks are tried, and how. */
struct line_search {
    struct place_best *best;
    struct placer *placer;
    struct row row[ROW_HOWS];
    bool split;   /* split blocks too large for any box into smaller ones of every size */
    double share; /* of the placer's time */
    int *order;   /* scratch */
};

/* Try blocks of `size` adjacent ranks, whole in boxes.  Blocks that no box holds are split into
 * blocks of `small`, which divides size; 0: not split.  at: place of each rank in the line. */
static void try_line(struct line_search *l, const struct row *r, const int *at, int size, int small)
{
    struct placer *pl = l->placer;
    int least = small ? small : size, per = pl->pool->per_host < least ? pl->pool->per_host : 1;
    int block[4] = {size, small, per, 1}, plain[3] = {size, per, 1};
    int *slot = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    char words[64];

    snprintf(words, sizeof(words), "greedy; blocks of %d inside a %s", size,
             r->level < 0 ? "machine" : level_name[r->level]);
    if (row_fill(r, pl->pool, small ? block : plain, small ? 4 : 3, pl->ranks, small > 0, slot)) {
        for (int rank = 0; rank < pl->ranks; rank++)
            l->order[rank] = slot[at[rank]];
        place_try(l->best, pl, l->order, words, NULL);
    }
    free(slot);
}

/* Try rows of all kinds. */
static void try_rows(struct line_search *l, const int *at, int size)
{
    int per = l->placer->pool->per_host;

    for (int how = 0; how < ROW_HOWS; how++) {
        if (!l->split)
            try_line(l, &l->row[how], at, size, 0);
        for (int small = size / 2; l->split && small > per && placer_may(l->placer, l->share);
             small--)
            if (size % small == 0 && small % per == 0)
                try_line(l, &l->row[how], at, size, small);
    }
}

/* Cluster ranks in every size that divides them, is a multiple or divisor of a host's slots, and
 * fits a box; with split, up to twice a box. */
static void lines(struct place_best *b, struct placer *pl, int level, bool split, double share)
{
    int per = pl->pool->per_host;
    struct line_search l = {.best = b,
                            .placer = pl,
                            .split = split,
                            .share = share,
                            .order = mem_calloc((size_t)pl->ranks + 1, sizeof(int))};
    int *at = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    struct greedy f;

    for (int how = 0; how < ROW_HOWS; how++)
        row_make(&l.row[how], pl->pool, level, (enum row_how)how, -1, -1);
    int most = (split ? 2 : 1) * row_largest(&l.row[0], pl->pool);
    int from = most < pl->ranks / 2 ? most : pl->ranks / 2;
    for (int size = from; size > 1 && placer_may(pl, share); size--) {
        if (pl->ranks % size || (size % per && per % size))
            continue;
        fill_open(&f, pl, &l.row[0], NULL, at);
        fill_line(&f, size);
        fill_close(&f);
        try_rows(&l, at, size);
        for (int rank = 0; rank < pl->ranks; rank++)
            at[rank] = rank;
        try_rows(&l, at, size);
    }
    for (int how = 0; how < ROW_HOWS; how++)
        row_free(&l.row[how]);
    free(l.order);
    free(at);
}

void place_greedy(struct place_best *b, struct placer *pl)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(pl->pool, level);
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    struct row row[(LEVEL_COUNT + 1) * ROW_HOWS];

    if (levels == 0)
        level[levels++] = -1;
    for (int i = 0; i < levels * ROW_HOWS; i++) {
        char words[64];
        int at = level[i / ROW_HOWS];
        row_make(&row[i], pl->pool, at, (enum row_how)(i % ROW_HOWS), -1, -1);
        snprintf(words, sizeof(words), "greedy, by %s", at < 0 ? "host" : level_name[at]);
        if (!row_again(row, i) && placer_may(pl, 0.65) && greedy_fill(pl, &row[i], NULL, order))
            place_try(b, pl, order, words, NULL);
    }
    for (int i = 0; i < levels * ROW_HOWS; i++)
        row_free(&row[i]);
    free(order);
    for (int k = 0; pl->ask->demand && k < levels; k++)
        lines(b, pl, level[k], false, 0.65 + 0.15 * (k + 1) / levels);
    for (int k = 0; pl->ask->demand && k < levels; k++)
        lines(b, pl, level[k], true, 0.8 + 0.1 * (k + 1) / levels);
}
