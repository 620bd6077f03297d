/* SPDX-License-Identifier: BSD-3-Clause */
/* place/place_greedy.c - whoever takes a slot has as much to do with those nearby as anybody who waits;
 * place_cut.c - lines are cut as well as any way of cutting them. */
#include "place/place_impl.h"
#include "place_scene.h"
#include "test.h"

enum { HOST, BOX, ANY, NEARS };

struct watch {
    const struct matrix *m;
    const struct ties *ties;
    double worth[NEARS];
    const int *box_of;
};

static double per_byte(const struct matrix *m, int a, int b)
{
    return 1 / matrix_rate(m, matrix_tier(m, a, b), DIR_BI);
}

/* What the rank's bytes to ranks that are placed already save when it is on `slot` of box `box`: those on its host and in
 * its box, and a thousandth of what the ends of the row cost for all. */
static double saved(const struct watch *w, const int *at, const int *box_at, int rank, int slot,
                    int box)
{
    const struct topo *t = &w->m->topo;
    double near[NEARS] = {0};

    for (int i = w->ties->start[rank]; i < w->ties->start[rank + 1]; i++) {
        const struct tie *x = &w->ties->tie[i];
        if (at[x->peer] < 0)
            continue;
        near[ANY] += x->out + x->in;
        near[BOX] += box_at[x->peer] == box ? x->out + x->in : 0;
        near[HOST] += topo_at(t, at[x->peer], LEVEL_HOST) == topo_at(t, slot, LEVEL_HOST)
                          ? x->out + x->in
                          : 0;
    }
    return w->worth[HOST] * near[HOST] + w->worth[BOX] * near[BOX] + w->worth[ANY] * near[ANY];
}

/* Plays the order again, slot by slot. */
static void check_each_slot(const struct watch *w, const struct node_pool *p, const struct row *row,
                            const int *order, int ranks)
{
    int *at = mem_calloc((size_t)ranks, sizeof(int)),
        *box_at = mem_calloc((size_t)ranks, sizeof(int));
    int *rank_of = mem_calloc((size_t)w->m->topo.endpoints, sizeof(int)), left = ranks;

    memset(at, -1, (size_t)ranks * sizeof(int));
    memset(box_at, -1, (size_t)ranks * sizeof(int));
    memset(rank_of, -1, (size_t)w->m->topo.endpoints * sizeof(int));
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(rank_of[order[r]], -1);
        rank_of[order[r]] = r;
    }
    for (int b = 0; b < row->boxes; b++)
        for (int i = row->first[b]; i < row->first[b + 1]; i++)
            for (int s = p->start[row->host[i]]; s < p->start[row->host[i] + 1] && left; s++) {
                int slot = p->endpoint[s], rank = rank_of[slot];
                double most = -1;
                for (int r = 0; r < ranks; r++)
                    if (at[r] < 0 && (!w->box_of || w->box_of[r] == b))
                        most = fmax(most, saved(w, at, box_at, r, slot, b));
                if (rank < 0) { /* nobody who belongs into this box waits */
                    assert_true(most < 0);
                    break;
                }
                double got = saved(w, at, box_at, rank, slot, b);
                if (!(got >= most * (1 - 1e-12)))
                    fail_msg("slot %d: rank %d saves %g s, another %g", slot, rank, got, most);
                at[rank] = slot;
                box_at[rank] = b;
                left--;
            }
    assert_int_equal(left, 0);
    free(at);
    free(box_at);
    free(rank_of);
}

/* Rings, groups and chance, of any weight; some ranks talk to nobody. */
static void random_demand(struct demand *d, int ranks, struct rng *rng)
{
    *d = (struct demand){.ranks = ranks};
    for (int i = 0; i < 3 * ranks; i++) {
        int src = (int)rng_below(rng, (unsigned)ranks), reach = 1 << rng_below(rng, 6);
        int dst = rng_below(rng, 2) ? (src + reach) % ranks : (int)rng_below(rng, (unsigned)ranks);
        if (src != dst)
            MEM_PUSH(d->flow, d->flows) = (struct flow){
                src, dst, rng_below(rng, 3) ? (double)(1 + rng_below(rng, 1 << 20)) : 4096};
    }
}

/* Ranks dealt to boxes that hold them. */
static void deal(int *box_of, const struct node_pool *p, const struct row *row, int ranks,
                 struct rng *rng)
{
    int r = 0, *rank = mem_calloc((size_t)ranks, sizeof(int));

    for (int i = 0; i < ranks; i++)
        rank[i] = i;
    rng_shuffle(rng, rank, ranks);
    for (int b = 0; b < row->boxes; b++)
        for (int n = row_slots(row, p, b); n-- && r < ranks;)
            box_of[rank[r++]] = b;
    free(rank);
}

static void on_any_traffic(struct scene *s, const char *fabric, unsigned seed)
{
    struct host_slots slots;
    struct node_pool pool;
    struct placer pl;
    struct demand d;
    struct row row;
    struct rng rng;
    struct err err = {0, ""};

    rng_seed(&rng, seed);
    open_scene(s, fabric, 2 + (int)rng_below(&rng, 3), "llama3.1-8b", "dp=8", STRATEGY_FSDP,
               ORDER_TORCHTITAN);
    host_slots_make(&slots, &s->matrix.topo);
    int hosts = s->matrix.topo.hosts;
    for (int h = 0; h < hosts; h++)
        if (h == 0 || rng_below(&rng, 4))
            MEM_PUSH(s->host, s->hosts) = h;
    assert_int_equal(node_pool_make(&pool, &s->matrix, &slots, s->host, s->hosts, 0, &err), 0);
    random_demand(&d, 1 + (int)rng_below(&rng, (unsigned)pool.slots), &rng);
    struct place_ask ask = {.demand = &d, .matrix = &s->matrix, .host = s->host, .hosts = s->hosts};
    placer_open(&pl, &ask, &pool);
    int level[LEVEL_COUNT], levels = node_pool_levels(&pool, level);
    row_make(&row, &pool, levels ? level[levels - 1] : -1, (enum row_how)rng_below(&rng, ROW_HOWS),
             -1, -1);

    int *order = mem_calloc((size_t)pl.ranks, sizeof(int)),
        *box_of = mem_calloc((size_t)pl.ranks, sizeof(int));
    struct watch w = {.m = &s->matrix, .ties = placer_ties(&pl)};
    const int *first = &pool.start[row.host[0]], *last = &pool.start[row.host[row.hosts - 1]];
    double far = per_byte(w.m, pool.endpoint[*first], pool.endpoint[*last]), host = far, box = far;
    for (int i = 0; i < row.hosts && host >= far; i++)
        if (node_pool_slots(&pool, row.host[i]) > 1)
            host = per_byte(w.m, pool.endpoint[pool.start[row.host[i]]],
                            pool.endpoint[pool.start[row.host[i]] + 1]);
    for (int b = 0; b < row.boxes && box >= far; b++)
        if (row.first[b + 1] - row.first[b] > 1)
            box = per_byte(w.m, pool.endpoint[pool.start[row.host[row.first[b]]]],
                           pool.endpoint[pool.start[row.host[row.first[b] + 1]]]);
    w.worth[HOST] = fmax(0, box - host);
    w.worth[BOX] = fmax(0, far - box);
    w.worth[ANY] = 1e-3 * far;
    assert_true(greedy_fill(&pl, &row, NULL, order));
    check_each_slot(&w, &pool, &row, order, pl.ranks);
    deal(box_of, &pool, &row, pl.ranks, &rng);
    w.box_of = box_of;
    assert_true(greedy_fill(&pl, &row, box_of, order));
    check_each_slot(&w, &pool, &row, order, pl.ranks);

    free(order);
    free(box_of);
    row_free(&row);
    placer_close(&pl);
    node_pool_free(&pool);
    host_slots_free(&slots);
    demand_free(&d);
    close_scene(s);
}

TEST(whoever_takes_a_slot_has_most_to_do_there)
{
    static const char *fabric[] = {"hgx-h100", "gb200-nvl72", "rtxpro6000-100gbe"};
    struct scene s;

    for (unsigned seed = 1; seed <= 60; seed++)
        on_any_traffic(&s, fabric[seed % 3], seed);
}

/* --- lines that are cut --- */

/* What is asked: lines of so many units, in parts of `few` and more, `most` of them at most. */
struct way {
    int units, few, most;
};

/* Is there a way for `left` units of a line, in boxes of their own from `from` on, and the lines after it?
 * Every way is walked. */
static bool some_way(const struct way *w, int *room, int boxes, int from, int left, int lines,
                     int parts)
{
    if (left == 0)
        return lines == 1 || some_way(w, room, boxes, 0, w->units, lines - 1, w->most);
    for (int b = from; b < boxes && parts; b++)
        for (int x = w->few; x <= left && x <= room[b]; x++) {
            room[b] -= x;
            bool done = some_way(w, room, boxes, b + 1, left - x, lines, parts - 1);
            room[b] += x;
            if (done)
                return true;
        }
    return false;
}

static bool can_be_cut(int units, int few, int most, int *room, int boxes, int lines)
{
    return some_way(&(struct way){units, few, most}, room, boxes, 0, units, lines, most);
}

static void check_parts(const struct cutting *c, const int *room, int few)
{
    int left[8] = {0}, line = 0, sum = 0;

    for (int b = 0; b < c->boxes; b++)
        left[b] = room[b];
    for (int i = 0; i < c->parts; i++) {
        const struct row_part *p = &c->part[i];
        assert_true(p->units >= few && (left[p->box] -= p->units) >= 0);
        assert_true(sum == 0 || c->part[i - 1].box != p->box);
        sum = (sum + p->units) % c->units;
        line += sum == 0;
    }
    assert_int_equal(line, c->lines);
}

/* A K that some way has is never refused, and where a line has two parts at most one that no way has is. */
TEST(lines_are_cut_as_well_as_any_way_does)
{
    int refused = 0, possible = 0;
    struct rng rng;

    rng_seed(&rng, 5);
    for (int round = 0; round < 3000; round++) {
        int whole = 1 + (int)rng_below(&rng, 2), boxes = 1 + (int)rng_below(&rng, 4), of[40] = {0};
        int room[4], work[4], units = 2 + (int)rng_below(&rng, 8),
                              lines = 1 + (int)rng_below(&rng, 4);
        int best = 0;
        for (int b = 0; b < boxes; b++) {
            int slots = 1 + (int)rng_below(&rng, 24);
            of[slots]++;
            room[b] = work[b] = slots / whole;
        }
        for (int few = 1; few <= units; few++) {
            struct cut_lines l = {lines * units * whole, units, few, whole, whole, of, 24};
            bool is = can_be_cut(units, few, units, work, boxes, lines);
            bool exact = 3 * few > units, says = cut_possible(&l);
            if (says != is && (is || exact))
                fail_msg("round %d: parts of %d of %d lines of %d: %d, and it says %d", round, few,
                         lines, units, is, says);
            refused += !says;
            possible += is;
            if (few <= units / 2 && can_be_cut(units, few, 2, work, boxes, lines))
                best = few;
        }
        struct row_part part[16];
        struct cutting c = {
            .lines = lines, .units = units, .boxes = boxes, .room = work, .part = part};
        assert_int_equal(cut_largely(&c), best > 0);
        if (best)
            check_parts(&c, room, best);
    }
    print_message("%d refused, %d possible\n", refused, possible);
    assert_true(refused > 1000 && possible > 1000);
}
