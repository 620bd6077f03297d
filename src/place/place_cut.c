/* SPDX-License-Identifier: BSD-3-Clause */
/* place_cut.c - lines of ranks cut into parts of K and more, each inside one domain.
 *
 * Each member of a line needs P slots, W of them such that as many lines lie alike: a domain of c slots has
 * floor(c / W) seats for them and holds at most c / P members of one.  A line of s ranks is whole in one
 * domain, or in parts of K and more.  Whatever a part of x counts, f(x): the parts of all lines count at
 * least
 *
 *   ranks / (s W)  times  min over ways to cut a line of  sum f(x)
 *
 * and at most what fits into the domains,  sum over c of max { sum f(x) : sum x <= floor(c / W),
 * x <= c / P },  so that K is possible only where the second is no smaller, for every f:
 *
 *   f(x) = x                          seats
 *   f(x) = C where x > C - K, else x  beside such a part no other fits into C seats: it has them all
 *                                     [Martello and Toth 1990, Lower bounds for bin packing]
 *
 * Nine racks of 72 hold nine groups of 64 whole; of ten groups one is split.  Where three parts are more than
 * a line and P = W, all ways are tried, as far as that is soon done. */
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* Lines and boxes of which all ways are tried. */
enum { LINES_MAX = 64, BOXES_MAX = 64 };

/* --- all ways --- */

/* How much of `room` units parts of c->few and more fill, whose line's rest is no smaller. */
static void fill_use(struct cutting *c, int room)
{
    c->use[0] = 0;
    for (int n = 1; n <= room; n++) {
        c->use[n] = c->use[n - 1];
        for (int x = c->few; x <= n && x <= c->units && c->use[n] < n; x++)
            if ((x == c->units || x <= c->units - c->few) && c->use[n - x] + x > c->use[n])
                c->use[n] = c->use[n - x] + x;
    }
}

static void take(struct cutting *c, int box, int units)
{
    c->room[box] -= units;
    c->part[c->parts++] = (struct row_part){box, units};
}

static void give_back(struct cutting *c)
{
    const struct row_part *p = &c->part[--c->parts];

    c->room[p->box] += p->units;
}

static bool cut_rest(struct cutting *c, int lines);

/* A line with x units in this box and the others in any that has room. */
static bool cut_at(struct cutting *c, int box, int x, int lines)
{
    bool done = false;

    take(c, box, x);
    if (x == c->units)
        done = cut_rest(c, lines - 1);
    for (int b = 0, last = -1; b < c->boxes && x < c->units && !done; b++) {
        if (b == box || c->room[b] < c->units - x || c->room[b] == last)
            continue;
        last = c->room[b];
        take(c, b, c->units - x);
        done = cut_rest(c, lines - 1);
        if (!done)
            give_back(c);
    }
    if (!done)
        give_back(c);
    return done;
}

/* So many lines more, whole or in two parts of c->few units and more: the box with the least room first,
 * which is left alone where nothing else helps. */
static bool cut_rest(struct cutting *c, int lines)
{
    uint64_t rooms = (uint64_t)lines; /* whichever box has which */
    int least = -1;
    long use = 0;

    for (int b = 0; b < c->boxes; b++) {
        int fits = c->use[c->room[b]];
        use += fits;
        rooms += fits ? map_mix(1, (uint64_t)c->room[b]) : 0;
        if (fits && (least < 0 || c->room[b] < c->room[least]))
            least = b;
    }
    c->looks += c->boxes;
    if (lines == 0 || least < 0 || use < (long)lines * c->units || c->looks > CUT_LOOKS)
        return lines == 0;
    int *tried = map_at(&c->tried, rooms, NULL, NULL);
    if (*tried != MAP_NONE)
        return false;
    *tried = 1;
    int room = c->room[least], most = room < c->units ? room : c->units;
    for (int x = most; x >= c->few; x--)
        if ((x == c->units || x <= c->units - c->few) && cut_at(c, least, x, lines))
            return true;
    c->room[least] = 0;
    bool done = cut_rest(c, lines);
    c->room[least] = room;
    return done;
}

/* As cut_largely() at c->few. */
static bool cut_all(struct cutting *c)
{
    int most = 0;

    for (int b = 0; b < c->boxes; b++)
        most = c->room[b] > most ? c->room[b] : most;
    c->use = mem_calloc((size_t)most + 1, sizeof(*c->use));
    fill_use(c, most);
    bool done = cut_rest(c, c->lines);
    map_free(&c->tried);
    free(c->use);
    return done;
}

bool cut_largely(struct cutting *c)
{
    bool done = false;

    if (c->lines > LINES_MAX || c->boxes > BOXES_MAX)
        return false;
    for (c->few = c->units / 2; c->few > 0 && !done && c->looks <= CUT_LOOKS; c->few--)
        done = cut_all(c);
    return done;
}

/* --- what parts count --- */

static int counts(const struct cut_lines *l, int full, int x)
{
    return full && x > full - l->few ? full : x;
}

/* The least that the parts of a line count, of up to `most` each, to least[n] of n ranks of it; INT_MAX:
 * they cannot be cut so.  full: C of f(x), 0: f(x) = x. */
static void least_counts(const struct cut_lines *l, int full, int most, int *least)
{
    for (int n = 1; n <= l->size; n++) {
        least[n] = INT_MAX;
        for (int x = l->few; x <= n && x <= most; x++)
            if (least[n - x] < INT_MAX && least[n - x] + counts(l, full, x) < least[n])
                least[n] = least[n - x] + counts(l, full, x);
    }
}

/* The most that parts in a domain of c slots count, those whose rest can be cut. */
static int most_count(const struct cut_lines *l, int full, int c, const int *least)
{
    int seats = (int)(c / l->whole), most = (int)(c / l->beside);
    int *sum = mem_calloc((size_t)seats + 1, sizeof(*sum));

    most = most < l->size ? most : l->size;
    for (int n = 1; n <= seats; n++) {
        sum[n] = sum[n - 1];
        for (int x = l->few; x <= n && x <= most; x++)
            if (least[l->size - x] < INT_MAX && sum[n - x] + counts(l, full, x) > sum[n])
                sum[n] = sum[n - x] + counts(l, full, x);
    }
    int count = sum[seats];
    free(sum);
    return count;
}

/* May the domains seat the ranks as far as f tells? */
static bool may_seat(const struct cut_lines *l, int full)
{
    int *least = mem_calloc((size_t)l->size + 1, sizeof(*least));
    long sum = 0;

    least_counts(l, full, (int)(l->slots / l->beside), least);
    for (int c = 1; c <= l->slots; c++)
        if (l->of[c])
            sum += (long)l->of[c] * most_count(l, full, c, least);
    int need = least[l->size];
    free(least);
    return need < INT_MAX && sum * l->size * l->whole >= (long)l->ranks * need;
}

/* Are all ways tried, and is none possible? */
static bool tried_all(const struct cut_lines *l)
{
    struct row_part part[2 * LINES_MAX];
    int room[BOXES_MAX];
    struct cutting c = {.lines = (int)(l->ranks / (l->size * l->whole)),
                        .units = l->size,
                        .room = room,
                        .part = part,
                        .few = l->few};

    for (int k = 1; k <= l->slots; k++)
        for (int i = 0; i < l->of[k]; i++) {
            if (c.boxes == BOXES_MAX)
                return false;
            room[c.boxes++] = (int)(k / l->whole);
        }
    if (c.lines > LINES_MAX || 3 * l->few <= l->size || l->beside != l->whole || !c.boxes)
        return false;
    return !cut_all(&c) && c.looks <= CUT_LOOKS;
}

bool cut_possible(const struct cut_lines *l)
{
    bool may = may_seat(l, 0);

    for (int c = 1; c <= l->slots && may; c++)
        if (l->of[c] && c / l->whole >= l->few)
            may = may_seat(l, (int)(c / l->whole));
    return may && !tried_all(l);
}
