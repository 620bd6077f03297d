/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void take_terms(struct finalist *f, const struct prediction *p)
{
    for (int i = 0; i < p->terms && f->terms < FINALIST_TERMS; i++) {
        const struct term *t = &p->term[i];
        f->term[f->terms++] = (struct finalist_term){t->kind, t->label, t->axes, t->sec, t->hidden};
    }
}

static int finalist(struct finalist *f, const struct survey *v, const struct candidate *c,
                    struct err *err)
{
    struct question q = *v->eval.question;
    struct prediction p;

    q.layout = &c->layout;
    q.recipe = &c->recipe;
    q.pricer = v->eval.pricer;
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

static int finalists(struct finalist **out, int *count, const struct survey *v,
                     const struct candidate *from, int n, struct err *err)
{
    *out = mem_calloc((size_t)n, sizeof(**out));
    for (int i = 0; i < n; i++)
        if (finalist(&(*out)[i], v, &from[i], err) < 0)
            return -1;
    *count = n;
    qsort(*out, (size_t)n, sizeof(**out), by_time);
    return 0;
}

static int by_table(const void *x, const void *y)
{
    return candidate_sooner(x, y) ? -1 : 1;
}

/* The best of each family but the winner's; the one that is next anyway is
 * spoken of already. */
static int rivals(struct search *s, struct survey *v, struct err *err)
{
    int own = family_of(&s->best[0].candidate), n = 0;
    long next = s->bests > 1 ? s->best[1].candidate.serial : 0;

    for (int i = 0; i < FAMILIES; i++)
        if (i != own && v->kept.family[i].sec > 0 && v->kept.family[i].serial != next)
            v->kept.family[n++] = v->kept.family[i];
    qsort(v->kept.family, (size_t)n, sizeof(*v->kept.family), by_table);
    return finalists(&s->rival, &s->rivals, v, v->kept.family,
                     n < SEARCH_RIVALS ? n : SEARCH_RIVALS, err);
}

static void why(struct search *s, struct survey *v)
{
    const struct candidate *first = &s->best[0].candidate;

    s->why = mem_calloc((size_t)s->rivals + 1, sizeof(*s->why));
    if (s->bests > 1)
        search_compare(s->why[s->whys++], &v->eval, first, &s->best[1].candidate);
    for (int i = 0; i < s->rivals; i++)
        search_compare(s->why[s->whys++], &v->eval, first, &s->rival[i].candidate);
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
        return err_code(err, EXIT_BELOW,
                        "none of %ld layouts and recipes fits in the %.1f GB of a GPU", s->unfit,
                        s->capacity / 1e9);
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

static int finish(struct search *s, struct survey *v, struct err *err)
{
    if (!s->priced)
        return none_runs(s, err);
    if (finalists(&s->best, &s->bests, v, v->kept.best, v->kept.bests, err) < 0 ||
        finalists(&s->front, &s->fronts, v, v->kept.front, v->kept.fronts, err) < 0 ||
        rivals(s, v, err) < 0)
        return -1;
    mark_front(s);
    why(s, v);
    return 0;
}

int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err)
{
    struct survey v;
    int rc = survey_space(&v, q, space, top, threads, err);

    *s = (struct search){
        .batch = space->base.global_batch, .seq = space->base.seq, .ranks = space->ranks};
    if (rc == 0) {
        s->capacity = v.eval.capacity;
        s->peak = v.eval.peak;
        s->count = v.count;
        s->priced = v.priced;
        s->unfit = v.unfit + v.count.larger;
        s->dead = v.dead;
        s->unknown = v.unknown;
        s->sec = v.sec;
        rc = finish(s, &v, err);
    }
    survey_free(&v);
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
