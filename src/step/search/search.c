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

/* --- candidates kept during a walk --- *
 *
 * The fastest, those that no other beats in both time and memory, and the fastest of each family.
 * Ties are broken by `serial`, so the result depends neither on the order of candidates nor on the
 * division of the walk. */

/* A family: strategy, and which of FAMILY_AXES axes are above 1. */
enum { FAMILY_AXES = 4, FAMILIES = STRATEGY_COUNT << FAMILY_AXES };
struct search_shortlist {
    struct search_candidate *best; /* ascending in time, at most top */
    int bests, top;
    struct search_candidate *front; /* ascending in time, descending in bytes */
    int fronts;
    struct search_candidate family[FAMILIES]; /* sec 0: none yet */
};

static const enum axis family_axis[FAMILY_AXES] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_EP};

static int family_of(const struct layout *l, const struct recipe *r)
{
    int family = r->strategy;

    for (int i = 0; i < FAMILY_AXES; i++)
        family = family << 1 | (l->size[family_axis[i]] > 1);
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

/* What one would run first: what fits, then what is faster. */
static bool candidate_better(const struct search_candidate *a, const struct search_candidate *b)
{
    return a->tight != b->tight ? b->tight : candidate_sooner(a, b);
}

/* Chunks, schedules and recomputing that a variant of a mesh could do without. */
static int extras_of(const struct search_candidate *c)
{
    return (c->recipe.stages > 1) + (c->recipe.schedule > SCHEDULE_INTERLEAVED) +
           (c->recipe.recompute != RECOMPUTE_NONE);
}

/* Keep one of each mesh with so many extras. */
static void keep_best(struct search_shortlist *k, const struct search_candidate *c)
{
    int same = 0;

    if (k->bests == k->top && !candidate_better(c, &k->best[k->bests - 1]))
        return;
    while (same < k->bests &&
           !(search_same_mesh(c, &k->best[same]) && extras_of(c) == extras_of(&k->best[same])))
        same++;
    if (same < k->bests) {
        if (!candidate_better(c, &k->best[same]))
            return;
        memmove(&k->best[same], &k->best[same + 1], (size_t)(--k->bests - same) * sizeof(*k->best));
    } else if (k->bests == k->top) {
        k->bests--;
    }
    int at = k->bests++;
    for (; at > 0 && candidate_better(c, &k->best[at - 1]); at--)
        k->best[at] = k->best[at - 1];
    k->best[at] = *c;
}

/* Returns the number of front candidates that take at most `sec`; the last of these is the
 * smallest. */
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
        *last = *c; /* equal, and earlier in the walk */
    if (last && last->bytes <= c->bytes)
        return;
    if (last && last->sec == c->sec)
        at--;
    for (to = at; to < k->fronts && k->front[to].bytes >= c->bytes;)
        to++; /* skip those neither faster nor smaller */
    if (to == at)
        (void)MEM_PUSH(k->front, k->fronts);
    else
        k->fronts = old - (to - at) + 1;
    memmove(&k->front[at + 1], &k->front[to], (size_t)(old - to) * sizeof(*k->front));
    k->front[at] = *c;
}

static void keep_family(struct search_shortlist *k, const struct search_candidate *c)
{
    struct search_candidate *best = &k->family[family_of(&c->layout, &c->recipe)];

    if (best->sec == 0 || candidate_better(c, best))
        *best = *c;
}

static void shortlist_init(struct search_shortlist *k, int top)
{
    memset(k, 0, sizeof(*k));
    k->top = top;
    k->best = mem_calloc((size_t)top, sizeof(*k->best));
}

/* True if a candidate of more than `sec` seconds and at least `bytes` would enter none of the three
 * lists.  *if_tight: but only if it is tight. */
static bool shortlist_beats(const struct search_shortlist *k, double sec, double bytes, int family,
                            bool *if_tight)
{
    if (k->bests < k->top || !(k->best[k->bests - 1].sec <= sec) || k->family[family].sec == 0 ||
        !(k->family[family].sec <= sec))
        return false;
    *if_tight = k->best[k->bests - 1].tight || k->family[family].tight;
    int at = not_slower(k, sec);
    return at > 0 && k->front[at - 1].bytes <= bytes;
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
 * Cheap checks come first: does it fit, could it be kept at the time of a step without messages,
 * and only then its full time.  The space is walked in a fixed number of parts, so the candidates
 * of a part, and every count, do not depend on the number of threads.  The first part finishes
 * before the others begin, and its results are their bounds from the start: the better they are,
 * the fewer candidates are priced. */

/* Results of one part. */
struct search_survey {
    struct search_shortlist list;
    struct search met; /* counts only */
};

/* PARTS is prime, so that parts do not align with the loop over any axis. */
enum { PARTS = 17, PROGRESS_EVERY = 1 << 14, PROGRESS_AFTER = 2 /* s */ };
enum { VARIANTS = 3 };       /* candidates kept for each mesh that is asked for */
enum { THREADS_FROM = 512 }; /* ranks; a smaller search ends before a second thread starts */

struct search_walk {
    const struct space *space;
    struct search_survey part[PARTS];
    _Atomic int next; /* next part to start */
    struct progress progress;
};

/* One thread. */
struct search_walker {
    struct search_walk *walk;
    struct search_survey *at; /* current part */
    struct eval eval;
    struct evaluation now;
    long visited;
    bool shows; /* progress */
    pthread_t thread;
};

/* Short searches show no progress. */
static void show_progress(struct search_walk *w)
{
    if (log_now() - w->progress.started < PROGRESS_AFTER)
        return;
    progress_show(&w->progress, w->next - 1, "parts of the layouts");
}

/* True if no list would keep the candidate, whatever its messages cost. */
static bool is_beaten(const struct search_walker *w)
{
    int family = family_of(&w->now.layout, &w->now.recipe);
    const struct search_shortlist *list[2] = {&w->at->list, &w->walk->part[0].list};
    double least = w->now.least, bytes = w->now.bytes;
    bool if_fits = false;

    for (int i = 0; i < 2 && (i == 0 || list[1] != list[0]); i++) {
        bool if_tight;
        if (!shortlist_beats(list[i], least, bytes, family, &if_tight))
            continue;
        if (!if_tight)
            return true;
        if_fits = true;
    }
    return if_fits && eval_may_fit(&w->now, &w->eval);
}

static void take(struct search_walker *w, long serial)
{
    struct search *s = &w->at->met;
    double sec = w->now.timing.sec;

    if (sec < INFINITY) {
        struct search_candidate c = {
            w->now.layout, w->now.recipe, sec, w->now.bytes, eval_may_fit(&w->now, &w->eval),
            serial};
        s->priced++;
        shortlist_add(&w->at->list, &c);
    } else {
        s->dead += isinf(sec);
        s->unknown += isnan(sec);
    }
}

static bool visit(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct search_walker *w = context;
    struct search *s = &w->at->met;

    if (++w->visited % PROGRESS_EVERY == 0 && w->shows)
        show_progress(w->walk);
    if (!eval_fits(&w->now, &w->eval, l, r)) {
        s->unfit++;
        s->may_fit += eval_may_fit(&w->now, &w->eval);
        return false; /* a larger micro batch does not fit either */
    }
    if (is_beaten(w)) {
        s->bounded++;
        return true;
    }
    eval_price(&w->now, &w->eval);
    take(w, serial);
    return true;
}

static void walk_part(struct search_walker *w, int part)
{
    w->at = &w->walk->part[part];
    space_each(w->walk->space, w->eval.question->model, part, PARTS, visit, w, &w->at->met.count);
}

static void *walk_parts(void *context)
{
    struct search_walker *w = context;

    for (int part; (part = w->walk->next++) < PARTS;)
        walk_part(w, part);
    return NULL;
}

/* Walk the first part, then all others in parallel. */
static void walk_all(struct search_walk *walk, struct search_walker *w, int threads)
{
    bool started[SEARCH_THREADS] = {false};

    w[0].shows = true;
    progress_start(&walk->progress, PARTS);
    walk_part(&w[0], walk->next++);
    for (int i = 1; i < threads; i++)
        started[i] = pthread_create(&w[i].thread, NULL, walk_parts, &w[i]) == 0;
    walk_parts(&w[0]);
    for (int i = 1; i < threads; i++)
        if (started[i])
            pthread_join(w[i].thread, NULL);
    progress_end(&walk->progress);
}

/* Add the counts of another part. */
static void join(struct search *to, const struct search *from)
{
    to->count.meshes += from->count.meshes;
    for (int i = 0; i < REFUSALS; i++)
        to->count.refused[i] += from->count.refused[i];
    to->count.candidates += from->count.candidates;
    to->count.refused_candidates += from->count.refused_candidates;
    to->count.larger += from->count.larger;
    to->priced += from->priced;
    to->bounded += from->bounded;
    to->unfit += from->unfit;
    to->may_fit += from->may_fit;
    to->dead += from->dead;
    to->unknown += from->unknown;
}

static int threads_of(const struct space *space, int threads)
{
    long cores = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1 || (threads == 0 && space->ranks < THREADS_FROM))
        return 1;
    return cores < SEARCH_THREADS ? (int)cores : SEARCH_THREADS;
}

/* Walk the space.  q: without layout and recipe; top and threads: as in search_run().  *out: all
 * parts together; *eval: for evaluating kept candidates.  The caller frees both, even after an
 * error. */
static int survey_space(struct search_survey *out, struct eval *eval, const struct question *q,
                        const struct space *space, int top, int threads, struct err *err)
{
    struct search_walk *walk = mem_calloc(1, sizeof(*walk));
    struct search_walker *w = mem_calloc((size_t)threads, sizeof(*w));
    int rc = 0;

    walk->space = space;
    for (int i = 0; i < PARTS; i++)
        shortlist_init(&walk->part[i].list, top);
    for (int i = 0; i < threads && rc == 0; i++) {
        w[i].walk = walk;
        rc = eval_open(&w[i].eval, q, &space->base, space->ranks, err);
    }
    if (rc == 0)
        walk_all(walk, w, threads);
    for (int i = 1; i < PARTS; i++) {
        join(&walk->part[0].met, &walk->part[i].met);
        shortlist_join(&walk->part[0].list, &walk->part[i].list);
        shortlist_free(&walk->part[i].list);
    }
    for (int i = 1; i < threads; i++)
        eval_close(&w[i].eval);
    *out = walk->part[0];
    *eval = w[0].eval;
    free(w);
    free(walk);
    return rc;
}

/* --- the best candidates, predicted --- */

static int finalist(struct search_finalist *f, const struct eval *e,
                    const struct search_candidate *c, struct err *err)
{
    struct question q = *e->question;

    q.layout = &c->layout;
    q.recipe = &c->recipe;
    q.pricer = e->pricer;
    *f = (struct search_finalist){.candidate = *c};
    family_text(f->family, sizeof(f->family), c);
    int rc = predict_step(&f->step, &q, err);
    if (rc < 0)
        prediction_free(&f->step);
    return rc;
}

static int by_time(const void *x, const void *y)
{
    const struct search_finalist *a = x, *b = y;

    if (a->step.sec != b->step.sec)
        return a->step.sec < b->step.sec ? -1 : 1;
    return (a->candidate.serial > b->candidate.serial) -
           (a->candidate.serial < b->candidate.serial);
}

static int finalists(struct search_finalist **out, int *count, const struct eval *e,
                     const struct search_candidate *from, int n, struct err *err)
{
    *out = mem_calloc((size_t)n, sizeof(**out));
    for (*count = 0; *count < n; ++*count)
        if (finalist(&(*out)[*count], e, &from[*count], err) < 0)
            return -1;
    qsort(*out, (size_t)n, sizeof(**out), by_time);
    return 0;
}

static int by_table(const void *x, const void *y)
{
    return candidate_better(x, y) ? -1 : 1;
}

/* List `top` meshes of the best: the fastest variant of each and, if that is as fast, a simpler one.
 * Add from each family a candidate that is as fast as the best, because it may be simpler. */
static struct search_candidate *shortlist_pool(const struct search_shortlist *k, int top,
                                               int *count)
{
    struct search_candidate *pool = mem_calloc((size_t)k->bests + FAMILIES, sizeof(*pool));
    double most = k->best[0].sec * (1 + SEARCH_EQUAL), last = k->best[k->bests - 1].sec;
    int meshes = 0;

    *count = 0;
    for (int i = 0; i < k->bests; i++) {
        const struct search_candidate *c = &k->best[i];
        bool first = true, adds = false;
        for (int p = 0; p < *count; p++)
            if (search_same_mesh(c, &pool[p])) {
                bool equal =
                    c->tight == pool[p].tight && c->sec <= pool[p].sec * (1 + SEARCH_EQUAL);
                adds = (first || adds) && equal && extras_of(c) < extras_of(&pool[p]);
                first = false;
            }
        if ((first && meshes < top) || adds)
            pool[(*count)++] = *c;
        meshes += first;
    }
    for (int i = 0; i < FAMILIES; i++)
        if (k->family[i].sec > last && k->family[i].sec <= most &&
            k->family[i].tight <= k->best[0].tight)
            pool[(*count)++] = k->family[i];
    return pool;
}

static int rank(struct search *s, const struct search_shortlist *k, const struct eval *e,
                const struct question *q, int top, struct err *err)
{
    int n;
    struct search_candidate *pool = shortlist_pool(k, top, &n);
    int rc = finalists(&s->best, &s->bests, e, pool, n, err) < 0 || search_rank(s, q, top, err) < 0;

    free(pool);
    return rc ? -1 : 0;
}

/* Add the best of each family except the winner's and that of the second best, which is compared
 * already. */
static int rivals(struct search *s, struct search_shortlist *k, const struct eval *e,
                  struct err *err)
{
    const struct search_candidate *first = &s->best[0].candidate;
    int own = family_of(&first->layout, &first->recipe), n = 0;
    long next = s->bests > 1 ? s->best[1].candidate.serial : 0;

    for (int i = 0; i < FAMILIES; i++)
        if (i != own && k->family[i].sec > 0 && k->family[i].serial != next)
            k->family[n++] = k->family[i];
    qsort(k->family, (size_t)n, sizeof(*k->family), by_table);
    return finalists(&s->rival, &s->rivals, e, k->family, n < SEARCH_RIVALS ? n : SEARCH_RIVALS,
                     err);
}

static void why(struct search *s, struct eval *e)
{
    const struct search_candidate *first = &s->best[0].candidate;

    s->why = mem_calloc((size_t)s->rivals + 1, sizeof(*s->why));
    if (s->bests > 1)
        search_compare(s->why[s->whys++], e, first, &s->best[1].candidate);
    for (int i = 0; i < s->rivals; i++)
        search_compare(s->why[s->whys++], e, first, &s->rival[i].candidate);
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

static int finish(struct search *s, struct search_shortlist *k, struct eval *e, int top,
                  struct err *err)
{
    struct question q = *e->question;

    if (!s->priced)
        return search_none_runs(s, err);
    q.pricer = e->pricer;
    if (rank(s, k, e, &q, top, err) < 0 ||
        finalists(&s->front, &s->fronts, e, k->front, k->fronts, err) < 0 ||
        rivals(s, k, e, err) < 0 || search_tell(s->front, s->fronts, s, &q, err) < 0 ||
        search_tell(s->rival, s->rivals, s, &q, err) < 0)
        return -1;
    mark_front(s);
    why(s, e);
    return 0;
}

int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err)
{
    double start = log_now();
    struct search_survey v;
    struct eval eval;
    int rc = survey_space(&v, &eval, q, space, top * VARIANTS, threads_of(space, threads), err);

    *s = v.met;
    s->unfit += s->count.larger;
    s->batch = space->base.global_batch;
    s->seq = space->base.seq;
    s->ranks = space->ranks;
    s->capacity = eval.capacity;
    s->peak = eval.peak;
    s->sec = log_now() - start;
    if (rc == 0)
        rc = finish(s, &v.list, &eval, top, err);
    eval_close(&eval);
    shortlist_free(&v.list);
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
