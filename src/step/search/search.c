/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/search.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

/* --- what is kept of the candidates that a walk meets --- *
 *
 * The fastest, those that no other beats in both time and memory, and the fastest of each family.
 * Equal times are told apart by `serial`, so what is kept depends neither on the order in which
 * candidates come nor on how they were shared out. */

/* A family: which of FAMILY_AXES axes are above 1, and the strategy. */
enum { FAMILY_AXES = 4, FAMILIES = STRATEGY_COUNT << FAMILY_AXES };
struct search_shortlist {
    struct search_candidate *best; /* ascending in time, at most top */
    int bests, top;
    struct search_candidate *front; /* ascending in time, descending in bytes */
    int fronts;
    struct search_candidate family[FAMILIES]; /* sec 0: none yet */
};

static const enum axis family_axis[FAMILY_AXES] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_EP};

static int family_of(const struct search_candidate *c)
{
    int family = c->recipe.strategy;

    for (int i = 0; i < FAMILY_AXES; i++)
        family = family << 1 | (c->layout.size[family_axis[i]] > 1);
    return family;
}

static void family_text(char *buf, size_t size, const struct search_candidate *c)
{
    size_t used = 0;

    for (int i = 0; i < FAMILY_AXES; i++)
        if (c->layout.size[family_axis[i]] > 1)
            used += (size_t)snprintf(buf + used, size - used, "%s ", axis_name[family_axis[i]]);
    snprintf(buf + used, size - used, "%s", recipe_name.strategy[c->recipe.strategy]);
}

static bool candidate_sooner(const struct search_candidate *a, const struct search_candidate *b)
{
    return a->sec < b->sec || (a->sec == b->sec && a->serial < b->serial);
}

static void keep_best(struct search_shortlist *k, const struct search_candidate *c)
{
    if (k->bests == k->top) {
        if (!candidate_sooner(c, &k->best[k->bests - 1]))
            return;
        k->bests--;
    }
    int at = k->bests++;
    for (; at > 0 && candidate_sooner(c, &k->best[at - 1]); at--)
        k->best[at] = k->best[at - 1];
    k->best[at] = *c;
}

/* The front ascends in time and descends in bytes, so the last one that is not
 * slower is the smallest of those. */
static int not_slower(const struct search_shortlist *k, double sec)
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

static void keep_front(struct search_shortlist *k, const struct search_candidate *c)
{
    int at = not_slower(k, c->sec), to, old = k->fronts;
    struct search_candidate *last = at ? &k->front[at - 1] : NULL;

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

static void keep_family(struct search_shortlist *k, const struct search_candidate *c)
{
    struct search_candidate *best = &k->family[family_of(c)];

    if (best->sec == 0 || candidate_sooner(c, best))
        *best = *c;
}

static void shortlist_init(struct search_shortlist *k, int top)
{
    memset(k, 0, sizeof(*k));
    k->top = top;
    k->best = mem_calloc((size_t)top, sizeof(*k->best));
}

static void shortlist_add(struct search_shortlist *k, const struct search_candidate *c)
{
    keep_family(k, c);
    keep_best(k, c);
    keep_front(k, c);
}

static void shortlist_join(struct search_shortlist *to, const struct search_shortlist *from)
{
    for (int i = 0; i < FAMILIES; i++)
        if (from->family[i].sec > 0)
            keep_family(to, &from->family[i]);
    for (int i = 0; i < from->bests; i++)
        keep_best(to, &from->best[i]);
    for (int i = 0; i < from->fronts; i++)
        keep_front(to, &from->front[i]);
}

static void shortlist_free(struct search_shortlist *k)
{
    free(k->best);
    free(k->front);
    memset(k, 0, sizeof(*k));
}

/* --- a whole space evaluated by table --- *
 *
 * Parts that threads walk at the same time, what they met counted, the best of it kept.  The answer
 * does not depend on how many threads there are. */

struct search_survey {
    struct eval eval; /* for questions about what was kept */
    struct search_shortlist list;
    struct space_count count;
    long priced;        /* candidates with a time */
    long unfit;         /* do not fit in memory */
    long may_fit;       /* of them, those that may */
    long dead, unknown; /* need a dead part; a message's cost is unknown */
    double sec;         /* that the walk took */
};

enum { PROGRESS_EVERY = 1 << 14, PROGRESS_AFTER = 2 /* s */ };
/* Below this many ranks a search is over before a second thread has started. */
enum { THREADS_FROM = 512 };

/* One part of the walk. */
struct search_walker {
    struct search_survey survey;
    const struct space *space;
    int part, parts;
    pthread_t thread;
    struct evaluation now;
    long visited;
    double started, total;
    struct progress progress;
};

static bool count_only(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    (void)l;
    (void)r;
    (void)serial;
    ++*(double *)context;
    return true;
}

/* Nothing is shown of a search that is over at once; how much there is to do is
 * counted then. */
static void show_progress(struct search_walker *w)
{
    struct space_count count;

    if (!w->total && log_now() - w->started > PROGRESS_AFTER) {
        space_each(w->space, w->survey.eval.question->model, w->part, w->parts, count_only,
                   &w->total, &count);
        progress_start(&w->progress, w->total);
        w->progress.started = w->started;
    }
    if (w->total > 0)
        progress_show(&w->progress, (double)w->visited, "layouts");
}

static bool visit(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct search_walker *w = context;
    struct search_survey *s = &w->survey;
    const struct timing *t = &w->now.timing;

    if (++w->visited % PROGRESS_EVERY == 0 && w->part == 0)
        show_progress(w);
    eval_candidate(&w->now, &s->eval, l, r);
    if (!w->now.fits) {
        s->unfit++;
        s->may_fit += memory_fit(&w->now.memory) == MEMORY_MAY_NOT_FIT;
        return false; /* nor does a larger micro batch */
    }
    if (t->sec < INFINITY) {
        struct search_candidate c = {*l, *r, t->sec, w->now.memory.total, serial};
        s->priced++;
        shortlist_add(&s->list, &c);
    } else {
        s->dead += isinf(t->sec);
        s->unknown += isnan(t->sec);
    }
    return true;
}

static void *walk(void *context)
{
    struct search_walker *w = context;

    w->started = log_now();
    space_each(w->space, w->survey.eval.question->model, w->part, w->parts, visit, w,
               &w->survey.count);
    if (w->total > 0)
        progress_end(&w->progress);
    return NULL;
}

/* What another part met, into the first. */
static void join(struct search_survey *to, const struct search_survey *from)
{
    to->count.meshes += from->count.meshes;
    for (int i = 0; i < REFUSALS; i++)
        to->count.refused[i] += from->count.refused[i];
    to->count.candidates += from->count.candidates;
    to->count.refused_candidates += from->count.refused_candidates;
    to->count.larger += from->count.larger;
    to->priced += from->priced;
    to->unfit += from->unfit;
    to->may_fit += from->may_fit;
    to->dead += from->dead;
    to->unknown += from->unknown;
    shortlist_join(&to->list, &from->list);
}

/* All parts at the same time; what has no thread of its own runs here. */
static void walk_all(struct search_walker *w, int parts)
{
    bool started[SEARCH_THREADS] = {false};
    double start = log_now();

    for (int i = 1; i < parts; i++)
        started[i] = pthread_create(&w[i].thread, NULL, walk, &w[i]) == 0;
    walk(&w[0]);
    for (int i = 1; i < parts; i++) {
        if (started[i])
            pthread_join(w[i].thread, NULL);
        else
            walk(&w[i]);
        join(&w[0].survey, &w[i].survey);
    }
    w[0].survey.sec = log_now() - start;
}

static int parts_of(const struct space *space, int threads)
{
    long cores = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1 || (threads == 0 && space->ranks < THREADS_FROM))
        return 1;
    return cores < SEARCH_THREADS ? (int)cores : SEARCH_THREADS;
}

static void survey_free(struct search_survey *s)
{
    eval_close(&s->eval);
    shortlist_free(&s->list);
}

/* q without layout and recipe; top and threads as in search_run().
 * survey_free() also after an error. */
static int survey_space(struct search_survey *s, const struct question *q,
                        const struct space *space, int top, int threads, struct err *err)
{
    int parts = parts_of(space, threads), rc = 0;
    struct search_walker *w = mem_calloc((size_t)parts, sizeof(*w));

    for (int i = 0; i < parts && rc == 0; i++) {
        w[i].space = space;
        w[i].part = i;
        w[i].parts = parts;
        shortlist_init(&w[i].survey.list, top);
        rc = eval_open(&w[i].survey.eval, q, &space->base, space->ranks, err);
    }
    if (rc == 0)
        walk_all(w, parts);
    *s = w[0].survey;
    for (int i = 1; i < parts; i++)
        survey_free(&w[i].survey);
    free(w);
    return rc;
}

/* --- the best of it asked again --- */

static int finalist(struct search_finalist *f, const struct search_survey *v,
                    const struct search_candidate *c, struct err *err)
{
    struct question q = *v->eval.question;

    q.layout = &c->layout;
    q.recipe = &c->recipe;
    q.pricer = v->eval.pricer;
    *f = (struct search_finalist){.candidate = *c};
    family_text(f->family, sizeof(f->family), c);
    int rc = predict_step(&f->step, &q, err);
    if (rc < 0)
        prediction_free(&f->step);
    return rc;
}

/* qsort has no order among equals: the serial number decides. */
static int by_time(const void *x, const void *y)
{
    const struct search_finalist *a = x, *b = y;

    if (a->step.sec != b->step.sec)
        return a->step.sec < b->step.sec ? -1 : 1;
    return (a->candidate.serial > b->candidate.serial) -
           (a->candidate.serial < b->candidate.serial);
}

static int finalists(struct search_finalist **out, int *count, const struct search_survey *v,
                     const struct search_candidate *from, int n, struct err *err)
{
    *out = mem_calloc((size_t)n, sizeof(**out));
    for (*count = 0; *count < n; ++*count)
        if (finalist(&(*out)[*count], v, &from[*count], err) < 0)
            return -1;
    qsort(*out, (size_t)n, sizeof(**out), by_time);
    return 0;
}

static int by_table(const void *x, const void *y)
{
    return candidate_sooner(x, y) ? -1 : 1;
}

/* The fastest, and of each family one that is as fast: it may be simpler.  The caller frees. */
static struct search_candidate *shortlist_pool(const struct search_shortlist *k, int *count)
{
    struct search_candidate *pool = mem_calloc((size_t)k->bests + FAMILIES, sizeof(*pool));
    double most = k->best[0].sec * (1 + SEARCH_EQUAL), last = k->best[k->bests - 1].sec;

    memcpy(pool, k->best, (size_t)k->bests * sizeof(*pool));
    *count = k->bests;
    for (int i = 0; i < FAMILIES; i++)
        if (k->family[i].sec > last && k->family[i].sec <= most)
            pool[(*count)++] = k->family[i];
    return pool;
}

static int rank(struct search *s, const struct search_survey *v, const struct question *q,
                struct err *err)
{
    int n;
    struct search_candidate *pool = shortlist_pool(&v->list, &n);
    int rc = finalists(&s->best, &s->bests, v, pool, n, err) < 0 ||
             search_rank(s, q, v->list.top, err) < 0;

    free(pool);
    return rc ? -1 : 0;
}

/* The best of each family but the winner's; the one that is next anyway is
 * spoken of already. */
static int rivals(struct search *s, struct search_survey *v, struct err *err)
{
    int own = family_of(&s->best[0].candidate), n = 0;
    long next = s->bests > 1 ? s->best[1].candidate.serial : 0;

    for (int i = 0; i < FAMILIES; i++)
        if (i != own && v->list.family[i].sec > 0 && v->list.family[i].serial != next)
            v->list.family[n++] = v->list.family[i];
    qsort(v->list.family, (size_t)n, sizeof(*v->list.family), by_table);
    return finalists(&s->rival, &s->rivals, v, v->list.family,
                     n < SEARCH_RIVALS ? n : SEARCH_RIVALS, err);
}

static void why(struct search *s, struct search_survey *v)
{
    const struct search_candidate *first = &s->best[0].candidate;

    s->why = mem_calloc((size_t)s->rivals + 1, sizeof(*s->why));
    if (s->bests > 1)
        search_compare(s->why[s->whys++], &v->eval, first, &s->best[1].candidate);
    for (int i = 0; i < s->rivals; i++)
        search_compare(s->why[s->whys++], &v->eval, first, &s->rival[i].candidate);
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

static int finish(struct search *s, struct search_survey *v, struct err *err)
{
    struct question q = *v->eval.question;

    if (!s->priced)
        return search_none_runs(s, err);
    q.pricer = v->eval.pricer;
    if (rank(s, v, &q, err) < 0 ||
        finalists(&s->front, &s->fronts, v, v->list.front, v->list.fronts, err) < 0 ||
        rivals(s, v, err) < 0 || search_tell(s->front, s->fronts, s, &q, err) < 0 ||
        search_tell(s->rival, s->rivals, s, &q, err) < 0)
        return -1;
    mark_front(s);
    why(s, v);
    return 0;
}

int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err)
{
    struct search_survey v;
    int rc = survey_space(&v, q, space, top, threads, err);

    *s = (struct search){
        .batch = space->base.global_batch, .seq = space->base.seq, .ranks = space->ranks};
    if (rc == 0) {
        s->capacity = v.eval.capacity;
        s->peak = v.eval.peak;
        s->count = v.count;
        s->priced = v.priced;
        s->unfit = v.unfit + v.count.larger;
        s->may_fit = v.may_fit;
        s->dead = v.dead;
        s->unknown = v.unknown;
        s->sec = v.sec;
        rc = finish(s, &v, err);
    }
    survey_free(&v);
    return rc;
}

static void finalists_free(struct search_finalist *f, int n)
{
    for (int i = 0; i < n; i++)
        prediction_free(&f[i].step);
    free(f);
}

void search_free(struct search *s)
{
    finalists_free(s->best, s->bests);
    finalists_free(s->front, s->fronts);
    finalists_free(s->rival, s->rivals);
    free(s->why);
    memset(s, 0, sizeof(*s));
}
