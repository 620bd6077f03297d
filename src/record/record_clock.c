/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

enum {
    CLOCK_CALLS = 300, /* calls used per operation and communicator */
    CLOCK_TURNS = 10,
    CLOCK_LINE = 12 /* number of ends from which on drift is fitted */
};

struct clock_end {
    int process;
    double own; /* s since the job's first start */
};

static const double DRIFT_MAX = 1e-2; /* no clock is worse */

struct clock_difference {
    int process;
    double t, s;
};

struct clock_work {
    struct record_job *j;
    struct clock_end *end; /* ordered by call */
    int ends, *at, calls;  /* call i: at[i] .. at[i + 1] - 1 */
    int *block, blocks;    /* calls of one lane: block[b] .. block[b + 1] - 1 */
    double *offset, *drift;
    int *joined; /* by process: 1 + the process of the common clock; 0: not connected yet */
    struct clock_difference *d;
    int ds;
    int *place; /* position of each end in d, sorted by process and time */
    double *buf;
};

/* --- calls that are used --- */

static int lane_of(const struct record_job *j, int call)
{
    return j->call[call].kind < 0 ? -1 : j->kind[j->call[call].kind].lane;
}

static void take_call(struct clock_work *w, int call)
{
    const struct record_job *j = w->j;

    if (j->call[call].entries < 2 || j->call[call].kind < 0)
        return;
    MEM_PUSH(w->at, w->calls) = w->ends;
    for (int i = 0; i < j->call[call].entries; i++) {
        const struct record_entry *e = record_call_entry(j, call, i);
        MEM_PUSH(w->end, w->ends) =
            (struct clock_end){e->process, (double)(e->end - j->origin) / 1e9};
    }
}

/* Calls of a lane are adjacent; calls without a lane do not separate them. */
static void take_calls(struct clock_work *w)
{
    const struct record_job *j = w->j;

    for (int i = 0, next; i < j->calls; i = next) {
        int lane = lane_of(j, i);
        for (next = i + 1; next < j->calls && lane_of(j, next) == lane; next++)
            ;
        int every = 1 + (next - i) / CLOCK_CALLS;
        if (lane < 0 || !record_joins(&j->kind[j->call[i].kind]))
            continue;
        MEM_PUSH(w->block, w->blocks) = w->calls;
        for (int c = i; c < next; c += every)
            take_call(w, c);
    }
    MEM_PUSH(w->block, w->blocks) = w->calls;
    w->blocks--;
    MEM_PUSH(w->at, w->calls) = w->ends;
    w->calls--;
}

static int by_process(const void *a, const void *b)
{
    const struct clock_difference *x = a, *y = b;

    return x->process != y->process ? (x->process > y->process) - (x->process < y->process)
                                    : (x->t > y->t) - (x->t < y->t);
}

/* --- first guess, along the communicators --- */

/* Member of the block with a known clock; -1: none, or all are known. */
static int known_of(const struct clock_work *w, int block)
{
    int known = -1;
    bool all = true;

    for (int i = w->at[w->block[block]]; i < w->at[w->block[block + 1]]; i++)
        if (w->joined[w->end[i].process])
            known = w->end[i].process;
        else
            all = false;
    return all ? -1 : known;
}

/* Set each new member to the median of its differences from `known` in these calls. */
static void guess_block(struct clock_work *w, int block, int known)
{
    w->ds = 0;
    for (int c = w->block[block]; c < w->block[block + 1]; c++) {
        double own = NAN;
        for (int i = w->at[c]; i < w->at[c + 1]; i++)
            own = w->end[i].process == known ? w->end[i].own : own;
        for (int i = w->at[c]; i < w->at[c + 1] && !isnan(own); i++)
            if (!w->joined[w->end[i].process])
                w->d[w->ds++] =
                    (struct clock_difference){w->end[i].process, own, w->end[i].own - own};
    }
    if (w->ds)
        qsort(w->d, (size_t)w->ds, sizeof(*w->d), by_process);
    for (int i = 0, next; i < w->ds; i = next) {
        int p = w->d[i].process;
        for (next = i; next < w->ds && w->d[next].process == p; next++)
            w->buf[next - i] = w->d[next].s;
        w->offset[p] = w->offset[known] + stats_median(w->buf, next - i);
        w->joined[p] = w->joined[known];
    }
}

static void guess(struct clock_work *w)
{
    for (int p = 0; p < w->j->processes; p++) {
        bool more = !w->joined[p];
        if (more)
            w->joined[p] = p + 1;
        while (more) {
            more = false;
            for (int b = 0; b < w->blocks; b++) {
                int known = known_of(w, b);
                if (known < 0 || w->joined[known] != p + 1)
                    continue;
                guess_block(w, b, known);
                more |= w->ds > 0;
            }
        }
    }
}

/* --- iteration --- */

static double common(const struct clock_work *w, int process, double own)
{
    double t = own - w->offset[process];

    return t - w->drift[process] * t / (1 + w->drift[process]);
}

/* Position of each end in the ends of the same process, by time. */
static void find_places(struct clock_work *w)
{
    for (int i = 0; i < w->ends; i++)
        w->d[i] = (struct clock_difference){w->end[i].process, w->end[i].own, i};
    if (w->ends)
        qsort(w->d, (size_t)w->ends, sizeof(*w->d), by_process);
    for (int i = 0; i < w->ends; i++)
        w->place[(int)w->d[i].s] = i;
}

/* Difference of each end from the median end of the call, by process. */
static void differences(struct clock_work *w)
{
    for (int c = 0; c < w->calls; c++) {
        int n = w->at[c + 1] - w->at[c];
        const struct clock_end *e = &w->end[w->at[c]];
        const int *place = &w->place[w->at[c]];
        for (int i = 0; i < n; i++)
            w->buf[i] = common(w, e[i].process, e[i].own);
        double t = stats_middle(w->buf, n);
        for (int i = 0; i < n; i++)
            w->d[place[i]] =
                (struct clock_difference){e[i].process, t, common(w, e[i].process, e[i].own) - t};
    }
    w->ds = w->ends;
}

static double part_median(struct clock_work *w, const struct clock_difference *d, int n, bool time)
{
    for (int i = 0; i < n; i++)
        w->buf[i] = time ? d[i].t : d[i].s;
    return stats_middle(w->buf, n);
}

static void turn_process(struct clock_work *w, const struct clock_difference *d, int n, bool last)
{
    struct record_process *p = &w->j->process[d->process];
    double slope = 0, lo, hi;
    int third = n / 3;

    if (n >= CLOCK_LINE) {
        const struct clock_difference *end = d + n - third;
        double t = part_median(w, end, third, true) - part_median(w, d, third, true);
        if (t > 0)
            slope = (part_median(w, end, third, false) - part_median(w, d, third, false)) / t;
    }
    for (int i = 0; i < n; i++)
        w->buf[i] = d[i].s - slope * d[i].t;
    double offset = stats_middle(w->buf, n);
    w->drift[d->process] = fmax(-DRIFT_MAX, fmin(w->drift[d->process] + slope, DRIFT_MAX));
    w->offset[d->process] += offset;
    if (last) {
        stats_sort(w->buf, n);
        stats_median_ci(w->buf, n, &lo, &hi);
        p->unsure = (hi - lo) / 2;
    }
}

static void turn(struct clock_work *w, bool last)
{
    differences(w);
    for (int i = 0, next; i < w->ds; i = next) {
        for (next = i + 1; next < w->ds && w->d[next].process == w->d[i].process; next++)
            ;
        turn_process(w, &w->d[i], next - i, last);
    }
}

/* --- results --- */

/* The clock of the first connected process is the common one. */
static void set_common(struct clock_work *w)
{
    for (int p = w->j->processes - 1; p >= 0; p--) {
        int first = w->joined[p] - 1;
        if (first == p)
            continue;
        w->drift[p] -= w->drift[first];
        w->offset[p] -= w->offset[first];
    }
    for (int p = 0; p < w->j->processes; p++)
        if (w->joined[p] == p + 1)
            w->offset[p] = w->drift[p] = 0;
}

static double median_of(struct clock_work *w, const double *of, const int *process, int n,
                        double *spread)
{
    for (int i = 0; i < n; i++)
        w->buf[i] = of[process[i]];
    double median = stats_median(w->buf, n);
    *spread = w->buf[n - 1] - w->buf[0];
    return median;
}

/* Processes on the same host share a clock, unless the data contradicts it. */
static void share_hosts(struct clock_work *w)
{
    struct record_job *j = w->j;
    int *host = mem_calloc((size_t)j->processes, sizeof(*host));
    struct lists of;
    double spread, unused;

    for (int p = 0; p < j->processes; p++)
        host[p] = names_find(&j->hosts, j->process[p].host);
    lists_make(&of, host, NULL, j->processes, j->hosts.count);
    for (int h = 0; h < j->hosts.count; h++) {
        const int *member = of.at + of.start[h];
        int n = of.start[h + 1] - of.start[h];
        bool joined = n > 1;
        for (int i = 1; i < n; i++)
            joined &= w->joined[member[i]] == w->joined[member[0]];
        for (int i = 0; i < n; i++)
            joined &= !j->process[member[i]].own_clock;
        if (!joined)
            continue;
        double offset = median_of(w, w->offset, member, n, &spread);
        if (spread > RECORD_CLOCK_HOST)
            continue;
        double drift = median_of(w, w->drift, member, n, &unused);
        for (int i = 0; i < n; i++) {
            struct record_process *p = &j->process[member[i]];
            p->unsure = fmax(p->unsure, spread / 2);
            w->offset[member[i]] = offset;
            w->drift[member[i]] = drift;
        }
    }
    lists_free(&of);
    free(host);
}

static void apply(struct clock_work *w)
{
    struct record_job *j = w->j;

    for (int p = 0; p < j->processes; p++) {
        struct record_process *q = &j->process[p];
        int64_t shift = (int64_t)llround(w->offset[p] * 1e9);
        double rate = w->drift[p] / (1 + w->drift[p]);
        q->offset = w->offset[p];
        q->drift = w->drift[p];
        for (int i = q->first; i < q->first + q->entries; i++) {
            int64_t *time[] = {&j->entry[i].start, &j->entry[i].end};
            for (int k = 0; k < 2; k++) {
                int64_t t = *time[k] - shift;
                *time[k] = t - (int64_t)llround(rate * (double)(t - j->origin));
            }
        }
    }
}

void record_clock_align(struct record_job *j)
{
    struct clock_work w = {.j = j};
    size_t n = (size_t)j->processes + 1;

    take_calls(&w);
    w.offset = mem_calloc(n, sizeof(*w.offset));
    w.drift = mem_calloc(n, sizeof(*w.drift));
    w.joined = mem_calloc(n, sizeof(*w.joined));
    w.d = mem_calloc((size_t)w.ends + 1, sizeof(*w.d));
    w.buf = mem_calloc((size_t)w.ends + n, sizeof(*w.buf));
    w.place = mem_calloc((size_t)w.ends + 1, sizeof(*w.place));
    for (int p = 0; p < j->processes; p++)
        j->process[p].unsure = NAN;
    guess(&w);
    find_places(&w);
    for (int i = 1; i <= CLOCK_TURNS; i++)
        turn(&w, i == CLOCK_TURNS);
    share_hosts(&w);
    set_common(&w);
    apply(&w);
    free(w.end);
    free(w.at);
    free(w.block);
    free(w.offset);
    free(w.drift);
    free(w.joined);
    free(w.d);
    free(w.place);
    free(w.buf);
}

double record_clock_unsure(const struct record_job *j)
{
    double most = 0;

    for (int p = 0; p < j->processes; p++)
        most = j->process[p].unsure > most ? j->process[p].unsure : most;
    return most;
}
