/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts are slow.  Every sample (a directed pair) is evidence for its sender, its receiver
 * and its two racks.  A part is suspect when the median over its samples is low: the median over
 * partners keeps a slow part from dragging its peers along.  The part that explains most goes
 * first, its samples count as explained, and the rest is judged again; pairs that nothing explains
 * are exceptions of their own when they were slow alone too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/parts.h"

enum { ELEMENT_MIN = 2, RACKS_MAX = 2048 };
static const double same_factor = 0.1; /* factors that differ less belong to one cause */

/* A part of one tier and the samples that cross it: index[from..to). */
struct element {
    struct exception e;
    int from, to, split; /* both sides: samples before `split` are sent, the others received */
    double score;
};

struct hunt {
    struct fit *f;
    int tier;
    int *index; /* samples by sender, then by receiver, then by rack pair */
    struct element *element;
    int elements;
    double *v; /* scratch */
};

/* --- elements of a tier --- */

static int rack_key(const struct fit *f, const struct sample *s)
{
    int a = f->m->topo.endpoint[s->src].place.at[LEVEL_RACK];
    int b = f->m->topo.endpoint[s->dst].place.at[LEVEL_RACK];
    int racks = f->m->topo.group[LEVEL_RACK].count;

    if (a < 0 || b < 0 || a == b || racks > RACKS_MAX)
        return -1;
    return a < b ? a * racks + b : b * racks + a;
}

static int key_of(const struct fit *f, const struct sample *s, int what)
{
    return what == 0 ? s->src : what == 1 ? s->dst : rack_key(f, s);
}

/* Counting sort of the tier's samples by one key into index[at..]; offset[k]..offset[k+1]
 * afterwards. */
static int sort_by(struct hunt *h, int what, int keys, int at, int **offset)
{
    const struct fit *f = h->f;
    int *start = mem_calloc((size_t)keys + 2, sizeof(*start)), n = at;

    for (int i = 0; i < f->samples; i++) {
        int k = f->sample[i].tier == h->tier ? key_of(f, &f->sample[i], what) : -1;
        if (k >= 0)
            start[k + 2]++;
    }
    start[0] = start[1] = at;
    for (int k = 2; k <= keys + 1; k++)
        start[k] += start[k - 1];
    for (int i = 0; i < f->samples; i++) {
        int k = f->sample[i].tier == h->tier ? key_of(f, &f->sample[i], what) : -1;
        if (k >= 0) {
            h->index[start[k + 1]++] = i;
            n++;
        }
    }
    *offset = start;
    return n;
}

static void add_element(struct hunt *h, struct exception e, int from, int to)
{
    if (to - from >= ELEMENT_MIN) {
        e.tier = h->tier;
        MEM_PUSH(h->element, h->elements) = (struct element){.e = e, .from = from, .to = to};
    }
}

static void make_elements(struct hunt *h)
{
    const struct fit *f = h->f;
    int n = f->m->topo.endpoints, racks = f->m->topo.group[LEVEL_RACK].count, *by[3] = {NULL};
    int pairs = racks <= RACKS_MAX ? racks * racks : 0;
    int sent = sort_by(h, 0, n, 0, &by[0]), received = sort_by(h, 1, n, sent, &by[1]);

    sort_by(h, 2, pairs, received, &by[2]);
    for (int i = 0; i < n; i++) {
        struct exception e = {.part = PART_ENDPOINT, .a = i, .b = -1};
        e.side = SIDE_TX;
        add_element(h, e, by[0][i], by[0][i + 1]);
        e.side = SIDE_RX;
        add_element(h, e, by[1][i], by[1][i + 1]);
    }
    for (int k = 0; k < pairs; k++) {
        struct exception e = {.part = PART_RACK_PAIR, .a = k / racks, .b = k % racks};
        if (by[2][k + 1] - by[2][k] > ELEMENT_MIN)
            add_element(h, e, by[2][k], by[2][k + 1]);
    }
    for (int k = 0; k < 3; k++)
        free(by[k]);
}

/* --- judging --- */

/* How much lower than normal a median of n samples must be.  Of M healthy elements the lowest lies
 * about sqrt(2 ln M) deviations down, so the more are judged the further out a suspect must be; the
 * deviation of a median is 1.25 sigma / sqrt(n). */
static double margin(const struct hunt *h, int n)
{
    double z = fmax(3, 0.7 + sqrt(2 * log(h->elements + 1)));

    return fmax(h->f->o.outlier, z * 1.25 * h->f->normal[h->tier].sigma / sqrt(n));
}

/* Look at what is left of an element; false: nothing wrong with it. */
static bool suspect(struct hunt *h, struct element *x)
{
    struct fit *f = h->f;
    double range;
    int n = 0, left = 0;

    for (int i = x->from; i < x->to; i++)
        if (f->sample[h->index[i]].explained < 0)
            h->v[left++] = f->sample[h->index[i]].range;
    if (left < ELEMENT_MIN)
        return false;
    range = stats_median(h->v, left);
    for (int i = x->from; i < x->to; i++)
        if (f->sample[h->index[i]].explained < 0)
            h->v[n++] = f->sample[h->index[i]].residual;
    double median = stats_median(h->v, n);
    x->e.factor = median;
    x->e.evidence = n;
    x->score = n * (1 - median);
    /* what moves that much from epoch to epoch proves nothing; rack pairs also need most of their
     * samples low */
    if (!(median < 1 - margin(h, n)) || 1 - median < range)
        return false;
    return x->e.part != PART_RACK_PAIR || stats_quantile(h->v, n, 0.75) < 1 - margin(h, n) / 2;
}

static int by_score(const void *a, const void *b)
{
    const struct element *x = *(struct element *const *)a, *y = *(struct element *const *)b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x > y) - (x < y);
}

static void accept(struct hunt *h, const struct element *x)
{
    struct fit *f = h->f;

    MEM_PUSH(f->m->exception, f->m->exceptions) = x->e;
    for (int i = x->from; i < x->to; i++)
        if (f->sample[h->index[i]].explained < 0)
            f->sample[h->index[i]].explained = f->m->exceptions - 1;
}

/* One pass: all suspects, the one that explains most first; each is judged again before it is
 * accepted. */
static bool pass(struct hunt *h)
{
    struct element **list = NULL;
    int n = 0;
    bool any = false;

    for (int i = 0; i < h->elements; i++)
        if (suspect(h, &h->element[i]))
            MEM_PUSH(list, n) = &h->element[i];
    if (n)
        qsort(list, (size_t)n, sizeof(struct element *), by_score);
    for (int i = 0; i < n; i++) {
        double score = list[i]->score;
        if (!suspect(h, list[i]) || list[i]->score < 0.5 * score)
            continue; /* others explain most of it; the next pass looks again */
        accept(h, list[i]);
        any = true;
    }
    free(list);
    return any;
}

static void hunt_tier(struct fit *f, int tier)
{
    struct hunt h = {.f = f, .tier = tier};

    h.index = mem_calloc(3 * (size_t)f->samples, sizeof(*h.index));
    h.v = mem_calloc((size_t)f->samples, sizeof(*h.v));
    make_elements(&h);
    while (pass(&h))
        ;
    free(h.index);
    free(h.element);
    free(h.v);
}

/* --- the dead: nobody gets an answer, while those who asked answer others --- */

static void add_dead(struct fit *f, int endpoint)
{
    struct exception e = {.part = PART_ENDPOINT, .a = endpoint, .b = -1, .tier = -1};

    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].src == endpoint || f->sample[i].dst == endpoint) {
            if (f->sample[i].explained < 0)
                f->sample[i].explained = f->m->exceptions;
            e.evidence++;
        }
    MEM_PUSH(f->m->exception, f->m->exceptions) = e;
}

static void find_dead(struct fit *f)
{
    int n = f->m->topo.endpoints;
    int *answers = mem_calloc((size_t)n, sizeof(*answers)),
        *asked = mem_calloc((size_t)n, sizeof(*asked));
    bool anybody = false;

    for (int i = 0; i < f->samples; i++) {
        const struct sample *s = &f->sample[i];
        asked[s->src]++;
        asked[s->dst]++;
        answers[s->src] += s->residual > 0;
        answers[s->dst] += s->residual > 0;
        anybody = anybody || s->residual > 0;
    }
    for (int i = 0; i < n && anybody; i++)
        if (asked[i] >= ELEMENT_MIN && !answers[i])
            add_dead(f, i);
    free(answers);
    free(asked);
}

/* --- what is left --- */

/* Even its best epoch is clearly below normal: residual * (1 + range) is at least that epoch's. */
static bool bad(const struct fit *f, const struct sample *s, double noise)
{
    return s->explained < 0 && s->residual * (1 + s->range) < 1 - fmax(f->o.outlier, noise);
}

/* The exception of another tier that already names one end of this sample; -1: none. */
static int known_end(const struct fit *f, const struct sample *s)
{
    for (int i = 0; i < f->m->exceptions; i++) {
        const struct exception *e = &f->m->exception[i];
        if (e->part == PART_ENDPOINT && parts_pass(&f->m->topo, e, s))
            return i;
    }
    return -1;
}

/* Noise of the quietest tier that has any; NAN: none has. */
static double quietest(const struct fit *f)
{
    double sigma = NAN;

    for (int t = 0; t < f->m->tiers; t++)
        if (f->normal[t].sigma > 0)
            sigma = fmin(sigma, f->normal[t].sigma);
    return sigma;
}

/* Too few partners in this tier, but another tier told which end is slow.  So a sample of that end
 * may be judged by the quietest tier's noise: in a tier of two pairs a slow one looks like noise.
 */
static void blame_known(struct fit *f)
{
    int before = f->m->exceptions;
    double quiet = quietest(f);

    for (int i = 0; i < f->samples; i++) {
        struct sample *s = &f->sample[i];
        double noise = 3 * fmin(quiet, f->normal[s->tier].sigma);
        int k = before && bad(f, s, noise) ? known_end(f, s) : -1;
        if (k < 0 || k >= before)
            continue;
        struct exception e = f->m->exception[k];
        e.tier = s->tier;
        e.factor = s->residual;
        e.evidence = 1;
        s->explained = f->m->exceptions;
        for (int j = i + 1; j < f->samples; j++) /* its other pairs in this tier */
            if (f->sample[j].tier == e.tier && bad(f, &f->sample[j], noise) &&
                parts_pass(&f->m->topo, &e, &f->sample[j])) {
                f->sample[j].explained = f->m->exceptions;
                e.factor = fmax(e.factor, f->sample[j].residual);
                e.evidence++;
            }
        MEM_PUSH(f->m->exception, f->m->exceptions) = e;
    }
}

static void blame_pairs(struct fit *f)
{
    int first = f->m->exceptions;

    for (int i = 0; i < f->samples; i++) {
        struct sample *s = &f->sample[i];
        if (!bad(f, s, 5 * f->normal[s->tier].sigma) || (!s->alone && s->residual > 0))
            continue;
        int k = first;
        while (k < f->m->exceptions &&
               !(f->m->exception[k].a == s->dst && f->m->exception[k].b == s->src))
            k++;
        s->explained = k;
        if (k < f->m->exceptions) { /* the way back is slow as well */
            struct exception *e = &f->m->exception[k];
            e->factor = e->side == SIDE_BOTH ? e->factor : (e->factor + s->residual) / 2;
            e->side = SIDE_BOTH;
            e->evidence++;
            continue;
        }
        MEM_PUSH(f->m->exception, f->m->exceptions) = (struct exception){.part = PART_PAIR,
                                                                         .side = SIDE_TX,
                                                                         .a = s->src,
                                                                         .b = s->dst,
                                                                         .tier = s->tier,
                                                                         .factor = s->residual,
                                                                         .evidence = 1};
    }
}

/* Factors above 1 do not occur: suspects are below; a dead part has exactly 0. */
void fit_parts(struct fit *f)
{
    find_dead(f);
    for (int tier = 0; tier < f->m->topo.tiers; tier++)
        hunt_tier(f, tier);
    blame_known(f);
    parts_merge(f, same_factor);
    blame_pairs(f);
    parts_explain(f);
}
