/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

/* Families: which of these axes are above 1, and the strategy. */
static const enum axis family_axis[] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_EP};
enum { FAMILY_AXES = 4, FAMILIES = STRATEGY_COUNT << FAMILY_AXES };
enum { PROGRESS_EVERY = 1 << 14, PROGRESS_AFTER = 2 /* s */ };
/* Below this many ranks a search is over before a second thread has started. */
enum { THREADS_FROM = 512 };

/* One part of the walk, and the best that it met. */
struct keeper {
    struct eval eval;
    const struct space *space;
    int part, parts, top;
    pthread_t thread;
    struct evaluation now;
    struct candidate *best, *front;
    int bests, fronts;
    struct candidate family[FAMILIES]; /* sec 0: none yet */
    struct space_count count;
    long visited, priced, unfit, dead, unknown;
    double started, total;
    struct progress progress;
};

static bool sooner(const struct candidate *a, const struct candidate *b)
{
    return a->sec < b->sec || (a->sec == b->sec && a->serial < b->serial);
}

static void keep_best(struct keeper *k, const struct candidate *c)
{
    if (k->bests == k->top) {
        if (!sooner(c, &k->best[k->bests - 1]))
            return;
        k->bests--;
    }
    int at = k->bests++;
    for (; at > 0 && sooner(c, &k->best[at - 1]); at--)
        k->best[at] = k->best[at - 1];
    k->best[at] = *c;
}

/* The front ascends in time and descends in bytes, so the last one that is not slower is the
 * smallest of those. */
static int not_slower(const struct keeper *k, double sec)
{
    int at = 0, to = k->fronts;

    while (at < to) {
        int mid = (at + to) / 2;
        if (k->front[mid].sec <= sec)
            at = mid + 1;
        else
            to = mid;
    }
    return at;
}

static void keep_front(struct keeper *k, const struct candidate *c)
{
    int at = not_slower(k, c->sec), to, old = k->fronts;
    struct candidate *last = at ? &k->front[at - 1] : NULL;

    if (last && last->sec == c->sec && last->bytes == c->bytes && c->serial < last->serial)
        *last = *c; /* the same, and earlier in the walk */
    if (last && last->bytes <= c->bytes)
        return;
    if (last && last->sec == c->sec)
        at--;
    for (to = at; to < k->fronts && k->front[to].bytes >= c->bytes;)
        to++; /* these are neither faster nor smaller */
    if (to == at)
        (void)MEM_PUSH(k->front, k->fronts);
    else
        k->fronts = old - (to - at) + 1;
    memmove(&k->front[at + 1], &k->front[to], (size_t)(old - to) * sizeof(*k->front));
    k->front[at] = *c;
}

static int family_of(const struct candidate *c)
{
    int family = c->recipe.strategy;

    for (int i = 0; i < FAMILY_AXES; i++)
        family = family << 1 | (c->layout.size[family_axis[i]] > 1);
    return family;
}

static void family_text(char *buf, size_t size, const struct candidate *c)
{
    size_t used = 0;

    for (int i = 0; i < FAMILY_AXES; i++)
        if (c->layout.size[family_axis[i]] > 1)
            used += (size_t)snprintf(buf + used, size - used, "%s ", axis_name[family_axis[i]]);
    snprintf(buf + used, size - used, "%s", strategy_name[c->recipe.strategy]);
}

static bool count_only(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    (void)l;
    (void)r;
    (void)serial;
    ++*(double *)context;
    return true;
}

/* Nothing is shown of a search that is over at once; how much there is to do is counted then. */
static void show_progress(struct keeper *k)
{
    struct space_count count;

    if (!k->total && log_now() - k->started > PROGRESS_AFTER) {
        space_each(k->space, k->eval.question->model, k->part, k->parts, count_only, &k->total,
                   &count);
        progress_start(&k->progress, k->total);
        k->progress.started = k->started;
    }
    if (k->total > 0)
        progress_show(&k->progress, (double)k->visited, "layouts");
}

static void keep_family(struct keeper *k, const struct candidate *c)
{
    struct candidate *best = &k->family[family_of(c)];

    if (best->sec == 0 || sooner(c, best))
        *best = *c;
}

static bool visit(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct keeper *k = context;
    const struct timing *t = &k->now.timing;

    if (++k->visited % PROGRESS_EVERY == 0 && k->part == 0)
        show_progress(k);
    eval_candidate(&k->now, &k->eval, l, r);
    if (!k->now.fits) {
        k->unfit++;
        return false; /* nor does a larger micro batch */
    }
    if (t->sec < INFINITY) {
        struct candidate c = {*l, *r, t->sec, k->now.memory.total, serial};
        k->priced++;
        keep_family(k, &c);
        keep_best(k, &c);
        keep_front(k, &c);
    } else {
        k->dead += isinf(t->sec);
        k->unknown += isnan(t->sec);
    }
    return true;
}

static void *walk(void *context)
{
    struct keeper *k = context;

    k->started = log_now();
    space_each(k->space, k->eval.question->model, k->part, k->parts, visit, k, &k->count);
    if (k->total > 0)
        progress_end(&k->progress);
    return NULL;
}

static void take_terms(struct finalist *f, const struct prediction *p)
{
    for (int i = 0; i < p->terms && f->terms < FINALIST_TERMS; i++) {
        const struct term *t = &p->term[i];
        f->term[f->terms++] = (struct finalist_term){t->kind, t->label, t->axes, t->sec, t->hidden};
    }
}

static int finalist(struct finalist *f, const struct keeper *k, const struct candidate *c,
                    struct err *err)
{
    struct question q = *k->eval.question;
    struct prediction p;

    q.layout = &c->layout;
    q.recipe = &c->recipe;
    q.pricer = k->eval.pricer;
    *f = (struct finalist){.candidate = *c};
    int rc = predict_step(&p, &q, err);
    if (rc == 0) {
        f->sec = p.sec;
        f->lo = p.lo;
        f->hi = p.hi;
        f->tokens_per_gpu = p.tokens_per_gpu;
        f->mfu = p.mfu;
        take_terms(f, &p);
    }
    prediction_free(&p);
    layout_text(f->layout, sizeof(f->layout), &c->layout);
    family_text(f->family, sizeof(f->family), c);
    return rc;
}

/* qsort has no order among equals: the serial number decides. */
static int by_time(const void *x, const void *y)
{
    const struct finalist *a = x, *b = y;

    if (a->sec != b->sec)
        return a->sec < b->sec ? -1 : 1;
    return (a->candidate.serial > b->candidate.serial) -
           (a->candidate.serial < b->candidate.serial);
}

static int finalists(struct finalist **out, int *count, const struct keeper *k,
                     const struct candidate *from, int n, struct err *err)
{
    *out = mem_calloc((size_t)n, sizeof(**out));
    for (int i = 0; i < n; i++)
        if (finalist(&(*out)[i], k, &from[i], err) < 0)
            return -1;
    *count = n;
    qsort(*out, (size_t)n, sizeof(**out), by_time);
    return 0;
}

static int by_table(const void *x, const void *y)
{
    return sooner(x, y) ? -1 : 1;
}

/* The best of each family but the winner's; the one that is next anyway is spoken of already. */
static int rivals(struct search *s, struct keeper *k, struct err *err)
{
    int own = family_of(&s->best[0].candidate), n = 0;
    long next = s->bests > 1 ? s->best[1].candidate.serial : 0;

    for (int i = 0; i < FAMILIES; i++)
        if (i != own && k->family[i].sec > 0 && k->family[i].serial != next)
            k->family[n++] = k->family[i];
    qsort(k->family, (size_t)n, sizeof(*k->family), by_table);
    return finalists(&s->rival, &s->rivals, k, k->family, n < SEARCH_RIVALS ? n : SEARCH_RIVALS,
                     err);
}

static void why(struct search *s, struct keeper *k)
{
    const struct candidate *first = &s->best[0].candidate;

    s->why = mem_calloc((size_t)s->rivals + 1, sizeof(*s->why));
    if (s->bests > 1)
        search_compare(s->why[s->whys++], &k->eval, first, &s->best[1].candidate);
    for (int i = 0; i < s->rivals; i++)
        search_compare(s->why[s->whys++], &k->eval, first, &s->rival[i].candidate);
}

static int none_runs(const struct search *s, struct err *err)
{
    int most = 0;

    if (s->unknown)
        return err_set(err,
                       "no layout of %d GPUs can be priced: %ld need a cost that the matrix "
                       "does not have",
                       s->ranks, s->unknown);
    if (s->dead)
        return err_set(err, "no layout of %d GPUs runs: %ld need a dead part", s->ranks, s->dead);
    if (s->unfit)
        return err_set(err, "none of %ld layouts and recipes fits in the %.1f GB of a GPU",
                       s->unfit, s->capacity / 1e9);
    if (!s->count.meshes)
        return err_usage(err, "no layout of %d GPUs meets the constraints", s->ranks);
    for (int i = 1; i < REFUSALS; i++)
        if (s->count.refused[i] > s->count.refused[most])
            most = i;
    if (s->count.refused_settings)
        return err_usage(err,
                         "no layout of %d GPUs meets the constraints: of %ld recipes no "
                         "stages and micro batch divide layers and batch",
                         s->ranks, s->count.refused_settings);
    return err_usage(err,
                     "no layout of %d GPUs divides the model: of %ld most, %ld, are refused "
                     "because %s",
                     s->ranks, s->count.meshes, s->count.refused[most], refusal_name[most]);
}

static void mark_front(struct search *s)
{
    for (int i = 0; i < s->fronts; i++) {
        s->front[i].front = true;
        for (int b = 0; b < s->bests; b++)
            if (s->best[b].candidate.serial == s->front[i].candidate.serial)
                s->best[b].front = true;
    }
}

static int finish(struct search *s, struct keeper *k, struct err *err)
{
    if (!s->priced)
        return none_runs(s, err);
    if (finalists(&s->best, &s->bests, k, k->best, k->bests, err) < 0 ||
        finalists(&s->front, &s->fronts, k, k->front, k->fronts, err) < 0 || rivals(s, k, err) < 0)
        return -1;
    mark_front(s);
    why(s, k);
    return 0;
}

static void count(struct search *s, const struct keeper *k)
{
    s->count.meshes += k->count.meshes;
    for (int i = 0; i < REFUSALS; i++)
        s->count.refused[i] += k->count.refused[i];
    s->count.settings += k->count.settings;
    s->count.refused_settings += k->count.refused_settings;
    s->count.larger += k->count.larger;
    s->unfit += k->unfit + k->count.larger;
    s->priced += k->priced;
    s->dead += k->dead;
    s->unknown += k->unknown;
}

/* What another part found, into the first; equal times are told apart by their serial numbers, so
 * that the order of parts does not matter. */
static void join(struct keeper *to, const struct keeper *from)
{
    for (int i = 0; i < FAMILIES; i++)
        if (from->family[i].sec > 0)
            keep_family(to, &from->family[i]);
    for (int i = 0; i < from->bests; i++)
        keep_best(to, &from->best[i]);
    for (int i = 0; i < from->fronts; i++)
        keep_front(to, &from->front[i]);
}

static int parts_of(const struct space *space, int threads)
{
    long cores = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1 || (threads == 0 && space->ranks < THREADS_FROM))
        return 1;
    return cores < SEARCH_THREADS ? (int)cores : SEARCH_THREADS;
}

/* All parts at the same time; what has no thread of its own runs here. */
static void walk_all(struct search *s, struct keeper *k, int parts)
{
    bool started[SEARCH_THREADS] = {false};
    double start = log_now();

    for (int i = 1; i < parts; i++)
        started[i] = pthread_create(&k[i].thread, NULL, walk, &k[i]) == 0;
    walk(&k[0]);
    count(s, &k[0]);
    for (int i = 1; i < parts; i++) {
        if (started[i])
            pthread_join(k[i].thread, NULL);
        else
            walk(&k[i]);
        count(s, &k[i]);
        join(&k[0], &k[i]);
    }
    s->sec = log_now() - start;
}

int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err)
{
    int parts = parts_of(space, threads), rc = 0;
    struct keeper *k = mem_calloc((size_t)parts, sizeof(*k));

    *s = (struct search){
        .batch = space->base.global_batch, .seq = space->base.seq, .ranks = space->ranks};
    for (int i = 0; i < parts && rc == 0; i++) {
        rc = eval_open(&k[i].eval, q, &space->base, space->ranks, err);
        k[i].space = space;
        k[i].part = i;
        k[i].parts = parts;
        k[i].top = top;
        k[i].best = mem_calloc((size_t)top, sizeof(*k->best));
    }
    if (rc == 0) {
        s->capacity = k->eval.capacity;
        s->peak = k->eval.peak;
        walk_all(s, k, parts);
        rc = finish(s, k, err);
    }
    for (int i = 0; i < parts; i++) {
        eval_close(&k[i].eval);
        free(k[i].best);
        free(k[i].front);
    }
    free(k);
    return rc;
}

void search_free(struct search *s)
{
    free(s->best);
    free(s->front);
    free(s->rival);
    free(s->why);
    memset(s, 0, sizeof(*s));
}
