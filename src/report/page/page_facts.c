/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit.h"
#include "report/page/page_impl.h"
#include "report/plot/pair_map.h"
#include "topo/gpu.h"

const char *const way_name[WAYS] = {"inside, sends", "inside, receives", "network, sends",
                                    "network, receives"};
const struct page_mark_look page_mark_look[MARKS] = {
    {"within limits", "", "ok"}, {"behind a slow part", "", "behind"},
    {"late", "\u25f7", "late"},  {"slow", "\u25bc", "slow"},
    {"dead", "\u2205", "dead"},  {"wrong data", "\u2715", "wrong"}};

enum {
    BLOCK_ENDPOINTS = 64, /* adjacent endpoints per block if racks are not visible */
    PAIRS_MOST = 80000    /* per page: 10 bytes each, 13.3 as base64 */
};

static const char *host_name(const struct page_facts *f, int endpoint)
{
    return f->t->host[topo_at(f->t, endpoint, LEVEL_HOST)].name;
}

char *page_endpoint(const struct page_facts *f, int endpoint, char buf[300])
{
    snprintf(buf, 300, "%s:%d", host_name(f, endpoint), f->t->endpoint[endpoint].local);
    return buf;
}

/* --- pairs --- */

/* If a pair was measured twice, the probe that ran alone counts. */
static bool same_pair(const struct obs *a, const struct obs *b)
{
    return a->op == b->op && a->src == b->src && a->dst == b->dst && a->bytes == b->bytes &&
           a->by_nic == b->by_nic;
}

static void add_pair(struct page_facts *f, const struct obs *o)
{
    int tier = topo_tier_by(&f->m->topo, o->src, o->dst, o->by_nic);
    double whole = f->bytes / f->expected[tier];
    struct page_pair p = {.src = o->src,
                          .dst = o->dst,
                          .tier = tier,
                          .alone = o->alone,
                          .by_nic = o->by_nic,
                          .wrong = o->wrong > 0,
                          .share = NAN,
                          .lo = NAN,
                          .hi = NAN};

    if (!(whole > 0))
        return;
    if (!p.wrong && o->sec > 0) {
        p.share = whole / o->sec;
        p.lo = whole / obs_hi(o);
        p.hi = whole / obs_lo(o);
    }
    MEM_PUSH(f->pair, f->pairs) = p;
}

static void read_pairs(struct page_facts *f, const struct points *p, enum op op)
{
    struct obs *o;
    int n = observe(&o, p, true);

    for (int i = 0; i < n; i++) {
        bool again = i + 1 < n && same_pair(&o[i], &o[i + 1]) && o[i + 1].alone &&
                     (o[i + 1].sec > 0 || o[i + 1].wrong);
        if (o[i].op == op && o[i].bytes == f->bytes && o[i].src != o[i].dst && !again)
            add_pair(f, &o[i]);
    }
    free(o);
}

static bool is_clean(const struct page_facts *f, const struct page_pair *p)
{
    for (int i = 0; i < f->m->exceptions; i++)
        if (matrix_crosses(f->m, &f->m->exception[i], p->src, p->dst, p->tier))
            return false;
    return true;
}

static void count_pairs(struct page_facts *f)
{
    for (int i = 0; i < f->pairs; i++) {
        struct page_pair *p = &f->pair[i];
        bool slow = p->share < f->limit;
        p->clean = is_clean(f, p);
        f->wrong += p->wrong;
        f->failed += !p->wrong && isnan(p->share);
        f->slow += slow;
        f->slow_clean += slow && p->clean;
        f->by_nic += p->by_nic;
        f->end[p->src].partners++;
        f->end[p->dst].partners++;
        f->end[p->src].wrong += p->wrong;
        f->end[p->dst].wrong += p->wrong;
    }
}

/* Keep all odd pairs and a sample of the others; if there are too many odd pairs, a sample of
 * them. */
static void sample(struct page_facts *f)
{
    f->all[true] = f->slow + f->wrong + f->failed;
    f->all[false] = f->pairs - f->all[true];
    f->keep[true] = f->all[true] < PAIRS_MOST ? f->all[true] : PAIRS_MOST;
    int room = PAIRS_MOST - f->keep[true];
    f->keep[false] = f->all[false] < room ? f->all[false] : room;
}

/* --- endpoints --- */

static int way_of(const struct page_facts *f, const struct page_pair *p, bool receives)
{
    return (f->m->tier[p->tier].nic ? WAY_NIC_TX : WAY_NEAR_TX) + receives;
}

static struct page_share summed_up(double *v, int n)
{
    struct page_share s = {NAN, NAN, NAN, n};

    if (n) {
        s.mid = stats_median(v, n);
        stats_median_ci(v, n, &s.lo, &s.hi);
    }
    return s;
}

/* Shares of all endpoints in four directions, each a range of one array. */
static void share_ends(struct page_facts *f)
{
    int ends = f->t->endpoints, slots = ends * WAYS, *first = mem_ints(slots + 1, 0);
    double *v = mem_calloc((size_t)f->pairs * 2 + 1, sizeof(*v));

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 2 * f->pairs; i++) {
            const struct page_pair *p = &f->pair[i / 2];
            int at = (i % 2 ? p->dst : p->src) * WAYS + way_of(f, p, i % 2);
            if (isfinite(p->share) && pass)
                v[first[at]++] = p->share;
            else if (isfinite(p->share))
                first[at + 1]++;
        }
        for (int i = 0; i < slots && !pass; i++)
            first[i + 1] += first[i];
    }
    for (int i = 0, from = 0; i < slots; from = first[i++]) {
        struct page_end *e = &f->end[i / WAYS];
        struct page_share *s = &e->way[i % WAYS];
        *s = summed_up(v + from, first[i] - from);
        e->least = i % WAYS ? fmin(e->least, s->mid) : s->mid;
    }
    free(v);
    free(first);
}

/* --- parts --- */

enum page_mark page_mark_of(const struct part_row *r)
{
    return r->state == STATE_WRONG  ? MARK_WRONG
           : r->state == STATE_DEAD ? MARK_DEAD
           : r->state == STATE_LATE ? MARK_LATE
                                    : MARK_SLOW;
}

/* True if its endpoints are to blame.  For parts between leaves or racks none is. */
static bool blames(const struct exception *e)
{
    return e->part == PART_ENDPOINT || e->part == PART_HOST || e->part == PART_PAIR ||
           e->part == PART_RACK;
}

static void mark_part(struct page_facts *f, int number)
{
    const struct part_row *r = &f->in->parts->row[number];
    const struct exception *e = r->exception >= 0 ? &f->m->exception[r->exception] : NULL;
    enum page_mark mark = e && blames(e) ? page_mark_of(r) : MARK_BEHIND;

    for (int i = 0; e && i < f->t->endpoints; i++) {
        struct page_end *end = &f->end[i];
        if (end->mark >= mark || !matrix_touches(f->m, e, i))
            continue;
        end->mark = mark;
        end->part = number;
    }
}

/* --- blocks --- */

static bool new_block(const struct page_facts *f, int i)
{
    int rack = topo_at(f->t, f->order[i], LEVEL_RACK),
        host = topo_at(f->t, f->order[i], LEVEL_HOST);

    if (i == 0)
        return true;
    if (f->racks)
        return rack != topo_at(f->t, f->order[i - 1], LEVEL_RACK);
    const struct page_block *b = &f->block[f->blocks - 1];
    return host != topo_at(f->t, f->order[i - 1], LEVEL_HOST) && b->count >= BLOCK_ENDPOINTS;
}

static int row_of(struct page_block *b, int host)
{
    for (int i = b->hosts - 1; i >= 0; i--)
        if (b->host[i] == host)
            return i;
    MEM_PUSH(b->host, b->hosts) = host;
    return b->hosts - 1;
}

/* Slot of a host according to its GPUs; -1: not known. */
static int slot_of(const struct page_facts *f, int host)
{
    for (int i = 0; i < f->hw->gpus; i++)
        if (f->hw->gpu[i].host == host && f->hw->gpu[i].slot >= 0)
            return f->hw->gpu[i].slot;
    return -1;
}

/* Order rows by slot if every row has one. */
static void order_rows(struct page_facts *f, struct page_block *b)
{
    int(*row)[2] = mem_calloc((size_t)b->hosts + 1, sizeof(*row));

    b->slots = b->hosts > 0;
    for (int i = 0; i < b->hosts; i++) {
        row[i][0] = slot_of(f, b->host[i]);
        row[i][1] = b->host[i];
        b->slots = b->slots && row[i][0] >= 0;
    }
    if (b->slots)
        qsort(row, (size_t)b->hosts, sizeof(*row), stats_by_2ints);
    for (int i = 0; i < b->hosts; i++)
        b->host[i] = row[i][1];
    for (int i = b->first; i < b->first + b->count; i++)
        f->end[f->order[i]].row = row_of(b, topo_at(f->t, f->order[i], LEVEL_HOST));
    free(row);
}

int page_slot(const struct page_facts *f, const struct page_block *b, int row)
{
    return b->slots ? slot_of(f, b->host[row]) : -1;
}

static char *block_name(const struct page_facts *f, const struct page_block *b)
{
    const char *first = host_name(f, f->order[b->first]),
               *last = host_name(f, f->order[b->first + b->count - 1]);
    int rack = topo_at(f->t, f->order[b->first], LEVEL_RACK);

    if (f->racks)
        return mem_strdup(rack >= 0 ? f->t->group[LEVEL_RACK].name[rack] : "in no rack");
    return strcmp(first, last) ? mem_printf("%s to %s", first, last) : mem_strdup(first);
}

static void make_blocks(struct page_facts *f)
{
    for (int i = 0; i < f->t->endpoints; i++)
        f->racks |= topo_at(f->t, i, LEVEL_RACK) >= 0;
    for (int i = 0; i < f->t->endpoints; i++) {
        struct page_end *e = &f->end[f->order[i]];
        if (new_block(f, i))
            MEM_PUSH(f->block, f->blocks) = (struct page_block){.first = i, .least = NAN};
        struct page_block *b = &f->block[f->blocks - 1];
        b->count++;
        b->marked += e->mark > MARK_BEHIND;
        b->behind += e->mark == MARK_BEHIND;
        b->least = fmin(b->least, e->least);
        e->block = f->blocks - 1;
        e->row = row_of(b, topo_at(f->t, f->order[i], LEVEL_HOST));
    }
    for (int k = 0; k < f->blocks; k++) {
        f->block[k].name = block_name(f, &f->block[k]);
        order_rows(f, &f->block[k]);
    }
}

/* --- all facts --- */

/* Provenance in the points file: the second line of points.tsv. */
static json_t *points_provenance(const char *dir)
{
    char *path = file_join(dir, "points.tsv"), *line = NULL;
    FILE *in = fopen(path, "r");
    size_t room = 0;
    ssize_t n = in ? getline(&line, &room, in) : -1;
    json_t *said = NULL;

    if (n > 0 && (n = getline(&line, &room, in)) > 2 && line[0] == '#')
        said = json_loadb(line + 1, (size_t)n - 1, 0, NULL);
    if (in)
        fclose(in);
    free(line);
    free(path);
    return said;
}

static double slow_below(const struct accept *a)
{
    for (int i = 0; i < a->rows; i++)
        if (a->row[i].limit->check == CHECK_PART_SPEED)
            return a->row[i].limit->bound;
    return 0.9;
}

static void read_map(struct page_facts *f)
{
    struct pair_map map;

    if (pair_map_init(&map, f->m, f->in->p, NULL, NULL) < 0) {
        /* without pairs: in numerical order */
        f->order = mem_ints(f->t->endpoints, 0);
        f->place = mem_ints(f->t->endpoints, 0);
        for (int i = 0; i < f->t->endpoints; i++)
            f->order[i] = f->place[i] = i;
        return;
    }
    f->order = mem_dup(map.order, (size_t)map.n, sizeof(int));
    f->place = mem_dup(map.place, (size_t)map.n, sizeof(int));
    f->bytes = map.bytes;
    memcpy(f->expected, map.expected, sizeof(f->expected));
    if (f->in->p)
        read_pairs(f, f->in->p, map.dir == DIR_BI ? OP_PAIR_BIBW : OP_PAIR_BW);
    pair_map_free(&map);
}

struct page_facts *page_facts(const struct page *page)
{
    struct page_facts *f = mem_calloc(1, sizeof(*f));

    f->in = page;
    f->m = page->m;
    f->t = &page->m->topo;
    f->hw = page->t;
    f->simulated = page->m->transport && !strcmp(page->m->transport, "sim");
    f->limit = slow_below(page->accept);
    f->end = mem_calloc((size_t)f->t->endpoints + 1, sizeof(*f->end));
    for (int i = 0; i < f->t->endpoints; i++)
        f->end[i].part = -1;
    f->provenance = page->p ? points_provenance(page->path) : NULL;
    if (!f->provenance)
        f->provenance = json_incref(page->m->provenance);
    for (int i = 0; i < page->parts->rows; i++)
        mark_part(f, i);
    read_map(f);
    share_ends(f);
    count_pairs(f);
    sample(f);
    make_blocks(f);
    return f;
}

void page_facts_free(struct page_facts *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->blocks; i++) {
        free(f->block[i].name);
        free(f->block[i].host);
    }
    json_decref(f->provenance);
    free(f->order);
    free(f->place);
    free(f->end);
    free(f->pair);
    free(f->block);
    free(f);
}
