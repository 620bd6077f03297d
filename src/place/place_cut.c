/* SPDX-License-Identifier: BSD-3-Clause */
/* place_cut.c - lines of ranks cut into parts of K or more, each inside one domain.
 *
 * Each member of a line needs P slots, W of them for members of lines that are cut alike.  So a
 * domain of c slots has floor(c / W) seats for them and holds at most c / P members of one.  A line
 * of s ranks is whole in one domain, or in parts of K or more.  Let f(x) be any value of a part of
 * x.  The parts of all lines together have at least the value
 *
 *   ranks / (s W)  times  min over ways to cut a line of  sum f(x)
 *
 * and at most what fits into the domains,  sum over c of max { sum f(x) : sum x <= floor(c / W), x
 * <= c / P },  so K is possible only if the second is no smaller for every f:
 *
 *   f(x) = x                          seats
 *   f(x) = C where x > C - K, else x  no other part fits beside such a part in C seats, so it
 *                                     takes all [Martello and Toth 1990, Lower bounds for bin
 *                                     packing]
 *
 * Example: nine racks of 72 hold nine groups of 64 whole; of ten groups one is split.  If three
 * parts exceed a line and P = W, all ways are tried, within a limit of work. */
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* limits for trying all ways */
enum { LINES_MAX = 64, BOXES_MAX = 64 };

/* --- all ways --- */

/* Set use[n]: units, of n free ones, that parts of at least c->few can fill if the rest of their
 * line is no smaller. */
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

/* Put x units of a line into this box and the others into any box with room. */
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

/* Cut `lines` more lines whole or into two parts of at least c->few units.  The box with the least
 * room comes first; it is skipped if nothing else works. */
static bool cut_rest(struct cutting *c, int lines)
{
    uint64_t rooms = (uint64_t)lines; /* independent of which box has which room */
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

/* Same as cut_largely() for one value of c->few. */
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

/* --- values of parts --- */

static int counts(const struct cut_lines *l, int full, int x)
{
    return full && x > full - l->few ? full : x;
}

/* Set least[n]: least value of the parts of n ranks of a line, with at most `most` in each;
 * INT_MAX: no such cut.  full: C of f(x); 0: f(x) = x. */
static void least_counts(const struct cut_lines *l, int full, int most, int *least)
{
    for (int n = 1; n <= l->size; n++) {
        least[n] = INT_MAX;
        for (int x = l->few; x <= n && x <= most; x++)
            if (least[n - x] < INT_MAX && least[n - x] + counts(l, full, x) < least[n])
                least[n] = least[n - x] + counts(l, full, x);
    }
}

/* Returns the largest value of parts in a domain of c slots, counting parts whose rest can be
 * cut. */
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

/* True if the domains can seat the ranks according to f. */
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

/* True if all ways were tried and none is possible. */
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
