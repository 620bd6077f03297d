/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/search_survey.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

enum { PROGRESS_EVERY = 1 << 14, PROGRESS_AFTER = 2 /* s */ };
/* Below this many ranks a search is over before a second thread has started. */
enum { THREADS_FROM = 512 };

/* One part of the walk. */
struct walker {
    struct survey survey;
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
static void show_progress(struct walker *w)
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
    struct walker *w = context;
    struct survey *s = &w->survey;
    const struct timing *t = &w->now.timing;

    if (++w->visited % PROGRESS_EVERY == 0 && w->part == 0)
        show_progress(w);
    eval_candidate(&w->now, &s->eval, l, r);
    if (!w->now.fits) {
        s->unfit++;
        return false; /* nor does a larger micro batch */
    }
    if (t->sec < INFINITY) {
        struct candidate c = {*l, *r, t->sec, w->now.memory.total, serial};
        s->priced++;
        kept_add(&s->kept, &c);
    } else {
        s->dead += isinf(t->sec);
        s->unknown += isnan(t->sec);
    }
    return true;
}

static void *walk(void *context)
{
    struct walker *w = context;

    w->started = log_now();
    space_each(w->space, w->survey.eval.question->model, w->part, w->parts, visit, w,
               &w->survey.count);
    if (w->total > 0)
        progress_end(&w->progress);
    return NULL;
}

/* What another part met, into the first. */
static void join(struct survey *to, const struct survey *from)
{
    to->count.meshes += from->count.meshes;
    for (int i = 0; i < REFUSALS; i++)
        to->count.refused[i] += from->count.refused[i];
    to->count.settings += from->count.settings;
    to->count.refused_settings += from->count.refused_settings;
    to->count.larger += from->count.larger;
    to->priced += from->priced;
    to->unfit += from->unfit;
    to->dead += from->dead;
    to->unknown += from->unknown;
    kept_join(&to->kept, &from->kept);
}

/* All parts at the same time; what has no thread of its own runs here. */
static void walk_all(struct walker *w, int parts)
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

int survey_space(struct survey *s, const struct question *q, const struct space *space, int top,
                 int threads, struct err *err)
{
    int parts = parts_of(space, threads), rc = 0;
    struct walker *w = mem_calloc((size_t)parts, sizeof(*w));

    for (int i = 0; i < parts && rc == 0; i++) {
        w[i].space = space;
        w[i].part = i;
        w[i].parts = parts;
        kept_init(&w[i].survey.kept, top);
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

void survey_free(struct survey *s)
{
    eval_close(&s->eval);
    kept_free(&s->kept);
}
