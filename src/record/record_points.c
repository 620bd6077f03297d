/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "record/import.h"

/* --- concurrent operations --- */

struct overlap_step {
    int64_t t;
    int comm, by; /* +1: an operation starts; -1: it ends */
};

static int by_time(const void *a, const void *b)
{
    const struct overlap_step *x = a, *y = b;

    return (x->t > y->t) - (x->t < y->t);
}

/* Time until `at` in which several communicators were busy; t[] and busy[] have n entries. */
static double busy_until(const int64_t *t, const double *busy, int n, int64_t at)
{
    int lo = 0, hi = n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (t[mid] <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return 0;
    if (lo == n)
        return busy[n - 1];
    double share = (double)(at - t[lo - 1]) / (double)(t[lo] - t[lo - 1]);
    return busy[lo - 1] + share * (busy[lo] - busy[lo - 1]);
}

struct overlap {
    const struct record_job *j;
    struct overlap_step *step;
    int64_t *t, *last; /* last: latest start of each call */
    double *busy;
    int *running; /* indexed by communicator */
    float *share;
};

static void overlap_process(struct overlap *o, const struct record_process *p)
{
    const struct record_entry *e = &o->j->entry[p->first];
    int n = 2 * p->entries, several = 0, starts = 0, ends = 0;

    for (int i = 0; i < p->entries; i++)
        o->step[i] = (struct overlap_step){e[i].end, o->j->kind[e[i].kind].comm, -1};
    if (n)
        qsort(o->step, (size_t)p->entries, sizeof(*o->step), by_time);
    for (int i = 0; i < n; i++) {
        struct overlap_step next = o->step[ends], *s = &next;
        if (starts < p->entries && (ends == p->entries || e[starts].start < next.t)) {
            next = (struct overlap_step){e[starts].start, o->j->kind[e[starts].kind].comm, 1};
            starts++;
        } else
            ends++;
        o->t[i] = s->t;
        o->busy[i] = i ? o->busy[i - 1] + (several > 1 ? (double)(s->t - o->t[i - 1]) : 0) : 0;
        int *running = &o->running[s->comm];
        several -= *running > 0;
        *running += s->by;
        several += *running > 0;
    }
    for (int i = 0; i < p->entries; i++) {
        if (e[i].call < 0 || e[i].end <= o->last[e[i].call])
            continue;
        int64_t from = o->last[e[i].call];
        double took = (double)(e[i].end - from),
               both = busy_until(o->t, o->busy, n, e[i].end) - busy_until(o->t, o->busy, n, from);
        o->share[e[i].call] += (float)(both / took / o->j->call[e[i].call].entries);
    }
}

float *record_points_overlap(const struct record_job *j)
{
    struct overlap o = {.j = j};
    int most = 0;

    for (int p = 0; p < j->processes; p++)
        most = j->process[p].entries > most ? j->process[p].entries : most;
    o.step = mem_calloc(2 * (size_t)most + 1, sizeof(*o.step));
    o.t = mem_calloc(2 * (size_t)most + 1, sizeof(*o.t));
    o.busy = mem_calloc(2 * (size_t)most + 1, sizeof(*o.busy));
    o.running = mem_calloc((size_t)j->teams + 1, sizeof(*o.running));
    o.last = mem_calloc((size_t)j->calls + 1, sizeof(*o.last));
    o.share = mem_calloc((size_t)j->calls + 1, sizeof(*o.share));
    for (int c = 0; c < j->calls; c++) {
        struct record_span s;
        record_call_span(&s, j, c);
        o.last[c] = s.last;
    }
    for (int p = 0; p < j->processes; p++)
        overlap_process(&o, &j->process[p]);
    free(o.step);
    free(o.t);
    free(o.busy);
    free(o.running);
    free(o.last);
    return o.share;
}

/* --- endpoints --- */

/* True if all processes of the host have distinct recorded devices; else devices are numbered in
 * order. */
static bool devices_differ(const struct record_job *j, const char *host)
{
    bool *seen = NULL, differ = true;
    int most = 0;

    for (int p = 0; p < j->processes; p++)
        if (!strcmp(j->process[p].host, host)) {
            int device = j->process[p].device;
            differ &= device >= 0;
            most = device >= most ? device + 1 : most;
        }
    seen = mem_calloc((size_t)most + 1, sizeof(*seen));
    for (int p = 0; p < j->processes && differ; p++)
        if (!strcmp(j->process[p].host, host)) {
            differ = !seen[j->process[p].device];
            seen[j->process[p].device] = true;
        }
    free(seen);
    return differ;
}

/* Endpoint of each process; NULL: EXIT_DATA. */
static int *find_endpoints(struct import *im, const struct record_job *j, struct err *err)
{
    int *endpoint = mem_calloc((size_t)j->processes, sizeof(*endpoint));
    int *next = mem_calloc((size_t)j->hosts.count + 1, sizeof(*next));
    bool *differ = mem_calloc((size_t)j->hosts.count + 1, sizeof(*differ));
    int rc = 0;

    for (int h = 0; h < j->hosts.count; h++)
        differ[h] = devices_differ(j, j->hosts.name[h]);
    for (int p = 0; p < j->processes && rc >= 0; p++) {
        const struct record_process *q = &j->process[p];
        struct recording_rank k = {.rank = q->rank};
        int host = names_find(&j->hosts, q->host);
        k.device = differ[host] ? q->device : next[host]++;
        snprintf(k.host, sizeof(k.host), "%s", q->host);
        rc = endpoint[p] = import_endpoint(im, q->path, &k, err);
    }
    free(next);
    free(differ);
    if (rc >= 0)
        return endpoint;
    free(endpoint);
    return NULL;
}

/* --- rounds and points --- */

struct points_work {
    struct import *im;
    const struct record_job *j;
    const int *endpoint;
    const float *overlap;
    struct lists calls; /* per kind, by `like`: complete calls in order */
    int odd;            /* calls that end before the last rank's start */
};

static void list_calls(struct points_work *w)
{
    int *like = mem_calloc((size_t)w->j->calls + 1, sizeof(*like));

    for (int c = 0; c < w->j->calls; c++) {
        struct record_span s;
        like[c] = -1;
        record_call_span(&s, w->j, c);
        const struct record_what *k = s.whole ? &w->j->kind[w->j->call[c].kind] : NULL;
        if (!k || record_is_message(k) || !k->bytes || s.entries < 2)
            continue;
        if (record_points_seconds(&s) > 0)
            like[c] = k->like;
        else
            w->odd++;
    }
    lists_make(&w->calls, like, NULL, w->j->calls, w->j->kinds);
    free(like);
}

static int calls_of(const struct points_work *w, int kind)
{
    return w->calls.start[kind + 1] - w->calls.start[kind];
}

/* Set the process that is last most often, and the median of first to last start. */
static void fill_late(struct point_row *row, const struct points_work *w, const int *call, int n)
{
    double *skew = mem_calloc((size_t)n, sizeof(*skew));
    int *often = mem_calloc((size_t)w->j->processes, sizeof(*often)), most = -1;

    for (int i = 0; i < n; i++) {
        struct record_span s;
        record_call_span(&s, w->j, call[i]);
        skew[i] = (double)(s.last - s.first) / 1e9;
        if (++often[s.latest] > (most < 0 ? 0 : often[most]))
            most = s.latest;
    }
    row->skew = stats_median(skew, n);
    row->late = w->endpoint[most];
    free(skew);
    free(often);
}

static void add_point(struct points_work *w, struct round *r, int group, int epoch, size_t bytes,
                      const int *call, int n)
{
    double *sec = mem_calloc((size_t)n, sizeof(*sec)), both = 0, all = 0;
    struct point_row row;
    struct summary sum;

    point_describe(&row, r, group, epoch, bytes);
    for (int i = 0; i < n; i++) {
        struct record_span s;
        record_call_span(&s, w->j, call[i]);
        sec[i] = record_points_seconds(&s);
        both += sec[i] * (double)w->overlap[call[i]];
        all += sec[i];
    }
    fill_late(&row, w, call, n);
    stats_summary(&sum, sec, n);
    point_summary(&row, &sum);
    row.point.stop = STOP_COUNT;
    point_note(&row.point, "of a job, %.0f %% of the time beside other communicators",
               100 * both / all);
    MEM_PUSH(w->im->row, w->im->rows) = row;
    r->epochs |= 1u << epoch;
    r->first = r->first && r->first < bytes ? r->first : bytes;
    r->last = r->last > bytes ? r->last : bytes;
    free(sec);
}

enum { EPOCH_CALLS = 8 }; /* calls per epoch, if there are several epochs */

static void add_size(struct points_work *w, struct round *r, int group, int kind)
{
    int n = calls_of(w, kind), epochs = n / EPOCH_CALLS;
    const int *call = &w->calls.at[w->calls.start[kind]];

    epochs = epochs < 1 ? 1 : epochs > PLAN_EPOCHS ? PLAN_EPOCHS : epochs;
    for (int e = 0; e < epochs; e++) {
        int from = (int)((long long)n * e / epochs), to = (int)((long long)n * (e + 1) / epochs);
        add_point(w, r, group, e, w->j->kind[kind].bytes, call + from, to - from);
    }
}

static void fill_group(struct plan_group *g, const struct points_work *w,
                       const struct record_team *c)
{
    for (int m = 0; m < c->size; m++)
        MEM_PUSH(g->members, g->size) = w->endpoint[c->member[m]];
}

/* Add a round: this operation, of the kinds of an axis, on the communicators with complete calls.
 * group[] is -1 for every communicator, before and after. */
static void add_round(struct points_work *w, const int *kind, int kinds, enum op op, int *group)
{
    const struct record_job *j = w->j;
    int groups = 0;

    for (int i = 0; i < kinds; i++)
        if (j->kind[kind[i]].op == op && group[j->kind[kind[i]].comm] < 0)
            group[j->kind[kind[i]].comm] = groups++;
    if (!groups)
        return;
    struct round *r = plan_add(&w->im->plan, STAGE_COLLECTIVE, op, groups);
    r->factor = 2;
    for (int i = 0; i < kinds; i++) {
        const struct record_what *k = &j->kind[kind[i]];
        struct plan_group *g = &r->group[group[k->comm] < 0 ? 0 : group[k->comm]];
        if (k->op != op)
            continue;
        if (!g->size)
            fill_group(g, w, &j->team[k->comm]);
        add_size(w, r, group[k->comm], kind[i]);
    }
    for (int i = 0; i < kinds; i++)
        group[j->kind[kind[i]].comm] = -1;
}

static void add_rounds(struct points_work *w)
{
    const struct record_job *j = w->j;
    int *axis = mem_calloc((size_t)j->kinds + 1, sizeof(*axis)), *group = mem_ints(j->teams, -1);
    struct lists of;

    for (int k = 0; k < j->kinds; k++)
        axis[k] = calls_of(w, k) ? j->team[j->kind[k].comm].axis : -1;
    lists_make(&of, axis, NULL, j->kinds, j->axes);
    for (int a = 0; a < j->axes; a++)
        for (int op = 0; op < OP_COUNT && of.start[a] < of.start[a + 1]; op++)
            add_round(w, &of.at[of.start[a]], of.start[a + 1] - of.start[a], (enum op)op, group);
    lists_free(&of);
    free(axis);
    free(group);
}

int record_points(struct import *im, const struct record_job *j, const float *overlap,
                  struct err *err)
{
    int *endpoint = find_endpoints(im, j, err);
    struct points_work w = {.im = im, .j = j, .endpoint = endpoint};

    if (!endpoint)
        return -1;
    list_calls(&w);
    w.overlap = overlap;
    add_rounds(&w);
    if (w.odd)
        import_say(im, mem_printf("calls left out of the points, for they end before their last "
                                  "rank's start on the common clock: %d",
                                  w.odd));
    lists_free(&w.calls);
    free(endpoint);
    return im->rows ? 0
                    : err_data(err,
                               "%s: no collective of two ranks and more is recorded by all of "
                               "its ranks",
                               j->process[0].path);
}
