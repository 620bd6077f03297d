/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "record/record_job.h"

/* --- period of a communicator on one of the processes --- */

struct beat {
    int comm, process;
    int period, first, count; /* entries: `count` entries from `first` on repeat */
    double sec;               /* time of a period, s */
    double share;             /* share of its process' busy time */
};

enum { BEAT_CONTEXT = 4, BEAT_LEAST = 3, BEAT_ENTRIES = 1 << 14 };

struct beat_sequence {
    const struct record_entry **entry;
    int *like, n;
};

/* Take the last BEAT_ENTRIES entries. */
static void sequence_of(struct beat_sequence *s, const struct record_job *j, int process, int comm)
{
    const struct record_process *p = &j->process[process];
    int n = 0, skip = 0;

    for (int i = p->first; i < p->first + p->entries; i++)
        n += j->kind[j->entry[i].kind].comm == comm;
    skip = n > BEAT_ENTRIES ? n - BEAT_ENTRIES : 0;
    s->n = 0;
    for (int i = p->first; i < p->first + p->entries; i++)
        if (j->kind[j->entry[i].kind].comm == comm && skip-- <= 0) {
            s->entry[s->n] = &j->entry[i];
            s->like[s->n++] = j->kind[j->entry[i].kind].like;
        }
}

/* Find the run of like[i] == like[i + p] around `at`.  Returns its length; 0: not equal at `at`. */
static int run_around(const struct beat_sequence *s, int p, int at, int *first)
{
    int lo = at, hi = at;

    for (int i = 0; i < BEAT_CONTEXT; i++)
        if (at - i >= 0 && s->like[at - i] != s->like[at - i + p])
            return 0;
    while (lo > 0 && s->like[lo - 1] == s->like[lo - 1 + p])
        lo--;
    while (hi + p < s->n && s->like[hi] == s->like[hi + p])
        hi++;
    *first = lo;
    return hi - lo;
}

/* Find the shortest period that covers about as many entries as any other. */
static bool find_period(struct beat *b, const struct beat_sequence *s)
{
    int at = s->n / 4, best = 0;

    b->period = 0;
    for (int p = 1; 2 * p <= s->n; p++) {
        int first = 0, run = at + p < s->n ? run_around(s, p, at, &first) : 0, covers = run + p;
        if (run < p || covers <= best + best / 9)
            continue;
        best = covers;
        *b = (struct beat){b->comm, b->process, p, first, covers, 0, 0};
        if (covers >= s->n - s->n / 50)
            break;
    }
    return b->period && b->count >= BEAT_LEAST * b->period;
}

static double beat_seconds(const struct beat *b, const struct beat_sequence *s)
{
    int n = b->count / b->period - 1;
    double *d = mem_calloc((size_t)n, sizeof(*d));

    for (int i = 0; i < n; i++)
        d[i] = (double)(s->entry[b->first + (i + 1) * b->period]->start -
                        s->entry[b->first + i * b->period]->start) /
               1e9;
    double sec = stats_median(d, n);
    free(d);
    return sec;
}

static double busy(const struct record_entry *e)
{
    return e->end > e->start ? (double)(e->end - e->start) : 0;
}

static double share_of(const struct record_job *j, int process, const struct beat_sequence *s)
{
    const struct record_process *p = &j->process[process];
    double own = 0, all = 0;

    for (int i = 0; i < s->n; i++)
        own += busy(s->entry[i]);
    for (int i = p->first; i < p->first + p->entries; i++)
        all += busy(&j->entry[i]);
    return all > 0 ? own / all : 0;
}

/* Use the communicator of an axis with most entries, on its first process. */
static bool beat_of_axis(struct beat *b, const struct record_job *j, const struct record_axis *a,
                         const int *entries, struct beat_sequence *s)
{
    *b = (struct beat){.comm = -1, .process = -1};
    for (int i = 0; i < a->comms; i++)
        if (b->comm < 0 || entries[a->comm[i]] > entries[b->comm])
            b->comm = a->comm[i];
    for (int r = 0; r < a->size && b->process < 0; r++)
        b->process = j->team[b->comm].member[r];
    if (b->process < 0)
        return false;
    sequence_of(s, j, b->process, b->comm);
    if (!find_period(b, s))
        return false;
    b->sec = beat_seconds(b, s);
    b->share = share_of(j, b->process, s);
    return b->sec > 0;
}

/* Take the longest period of the communicators that matter, or a multiple of that period. */
static bool find_beat(struct beat *found, const struct record_job *j, struct beat_sequence *s)
{
    struct beat *beat = mem_calloc((size_t)j->axes + 1, sizeof(*beat));
    int *entries = mem_calloc((size_t)j->teams + 1, sizeof(*entries)), n = 0;
    const struct beat *best = NULL, *longer = NULL;

    for (int e = 0; e < j->entries; e++)
        entries[j->kind[j->entry[e].kind].comm]++;
    for (int a = 0; a < j->axes; a++)
        n += beat_of_axis(&beat[n], j, &j->axis[a], entries, s);
    for (int i = 0; i < n; i++)
        if (beat[i].share >= RECORD_STEPS_SHARE && (!best || beat[i].sec > 1.02 * best->sec))
            best = &beat[i];
    for (int i = 0; i < n && best; i++) {
        double parts = beat[i].sec / best->sec, off = fabs(parts - round(parts));
        if (parts > 1.5 && parts < RECORD_STEPS_PARTS + 0.5 && off < 0.05 * parts && off < 0.3 &&
            (!longer || beat[i].sec > longer->sec))
            longer = &beat[i];
    }
    if (best)
        *found = longer ? *longer : *best;
    free(beat);
    free(entries);
    return best != NULL;
}

/* --- start of steps --- */

/* Pause before an entry on its process, over all communicators. */
static double pause_before(const struct record_job *j, const struct record_entry *e)
{
    int at = (int)(e - j->entry);

    return at > j->process[e->process].first ? (double)(e->start - e[-1].start) : 0;
}

/* Set the starts of steps and the end of the last.  Returns the number of steps. */
static int find_begins(int64_t *begin, const struct record_job *j, struct beat *b,
                       const struct beat_sequence *s)
{
    double *pause = mem_calloc((size_t)(b->count / b->period) + 1, sizeof(*pause)), most = -1;
    int phase = 0, n = 0;

    for (int k = 0; k < b->period; k++) {
        int m = 0;
        for (int i = b->first + k; i < b->first + b->count; i += b->period)
            pause[m++] = pause_before(j, s->entry[i]);
        double median = stats_median(pause, m);
        if (median > most) {
            most = median;
            phase = k;
        }
    }
    for (int i = b->first + phase; i < b->first + b->count; i += b->period)
        begin[n++] = s->entry[i]->start;
    free(pause);
    return n - 1;
}

/* --- rows --- */

struct steps_work {
    struct record_steps *s;
    const struct record_job *j;
    const float *overlap;
    int64_t *begin;
    struct map row_at;
};

static bool same_row(const void *wanted, int value)
{
    const struct record_row *const *w = wanted, *a = w[0], *b = &w[1][value];

    return a->axis == b->axis && a->size == b->size && a->stride == b->stride &&
           a->inside == b->inside && a->op == b->op && a->bytes == b->bytes &&
           a->algorithm == b->algorithm && a->protocol == b->protocol && a->channels == b->channels;
}

/* Fill in the kind; false: a rank of the message is missing. */
static bool describe(struct record_row *r, const struct record_job *j, const struct record_what *k)
{
    const struct record_team *c = &j->team[k->comm];
    const struct record_axis *a = &j->axis[c->axis];

    *r = (struct record_row){.axis = c->axis,
                             .size = a->size,
                             .stride = a->stride,
                             .inside = a->inside,
                             .op = k->op,
                             .bytes = k->bytes,
                             .algorithm = k->algorithm,
                             .protocol = k->protocol,
                             .channels = k->channels,
                             .overlap = NAN};
    if (!record_is_message(k))
        return true;
    if (c->member[k->src] < 0 || c->member[k->dst] < 0)
        return false;
    const struct record_process *src = &j->process[c->member[k->src]],
                                *dst = &j->process[c->member[k->dst]];
    r->axis = -1;
    r->size = 2;
    r->stride = dst->rank - src->rank;
    r->inside = !strcmp(src->host, dst->host);
    return true;
}

static void make_rows(struct steps_work *w)
{
    struct record_steps *s = w->s;
    const struct record_job *j = w->j;

    s->row_of = mem_ints(j->kinds, -1);
    for (int k = 0; k < j->kinds; k++) {
        struct record_row r;
        if (!describe(&r, j, &j->kind[k]))
            continue;
        uint64_t key = map_mix(map_mix((uint64_t)r.axis, (uint64_t)r.op), r.bytes);
        const struct record_row *wanted[] = {&r, s->row};
        int *at = map_at(&w->row_at, map_mix(key, (uint64_t)r.stride), same_row, wanted);
        if (*at == MAP_NONE) {
            *at = s->rows;
            MEM_PUSH(s->row, s->rows) = r;
        }
        s->row_of[k] = *at;
        s->row[*at].groups++;
    }
    map_free(&w->row_at);
}

/* Step that contains a time; -1: before the first or after the last. */
static int step_at(const struct steps_work *w, int64_t t)
{
    int lo = 0, hi = w->s->steps;

    if (t < w->begin[0] || t >= w->begin[hi])
        return -1;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (w->begin[mid] <= t)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double middle(const struct steps_work *w, int *in_step, const int *call, int calls,
                     double *buf)
{
    int n = w->s->steps, inside = 0;

    memset(in_step, 0, sizeof(*in_step) * (size_t)(n + 1));
    for (int i = 0; i < calls; i++) {
        struct record_span s;
        record_call_span(&s, w->j, call[i]);
        int at = n ? step_at(w, s.first) : 0;
        if (at >= 0) {
            in_step[at]++;
            inside++;
        }
    }
    for (int i = 0; i < n; i++)
        buf[i] = in_step[i];
    double median = n ? stats_median(buf, n) : inside;
    return median > 0 || !n ? median : (double)inside / n;
}

static void fill_row(struct steps_work *w, struct record_row *r, const int *call, int calls)
{
    double sec = 0, waiting = 0, both = 0, proxies = 0;
    int timed = 0, parts = 0;

    for (int i = 0; i < calls; i++) {
        struct record_span s;
        record_call_span(&s, w->j, call[i]);
        double took = record_points_seconds(&s);
        if (!s.whole || took <= 0)
            continue;
        timed++;
        sec += took;
        both += took * (double)w->overlap[call[i]];
        for (int k = 0; k < s.entries; k++) {
            const struct record_entry *e = record_call_entry(w->j, call[i], k);
            waiting += (double)(s.last - e->start) / 1e9;
            proxies += (double)e->wait;
            parts++;
        }
    }
    r->calls = calls;
    r->sec = timed ? sec / timed * r->count : NAN;
    r->waiting = parts ? waiting / parts * r->count : NAN;
    r->proxies = parts ? proxies / parts * r->count : 0;
    r->overlap = timed && r->axis >= 0 ? both / sec : NAN;
}

/* Set the calls per group and step.  Each group has a median of its own: a call at the cut is in the
 * step before on some groups, so that the sum of all groups differs from step to step. */
static void count_calls(struct steps_work *w)
{
    struct record_steps *s = w->s;
    const struct record_job *j = w->j;
    int *kind = mem_calloc((size_t)j->calls + 1, sizeof(*kind));
    int *in_step = mem_calloc((size_t)s->steps + 1, sizeof(*in_step));
    double *buf = mem_calloc((size_t)s->steps + 1, sizeof(*buf));
    struct lists of;

    for (int c = 0; c < j->calls; c++)
        kind[c] = j->call[c].kind;
    lists_make(&of, kind, NULL, j->calls, j->kinds);
    for (int k = 0; k < j->kinds; k++)
        if (s->row_of[k] >= 0)
            s->row[s->row_of[k]].count +=
                middle(w, in_step, &of.at[of.start[k]], of.start[k + 1] - of.start[k], buf);
    for (int r = 0; r < s->rows; r++)
        s->row[r].count /= s->row[r].groups;
    lists_free(&of);
    free(kind);
    free(in_step);
    free(buf);
}

static void fill_rows(struct steps_work *w)
{
    struct record_steps *s = w->s;
    int *row = mem_calloc((size_t)w->j->calls + 1, sizeof(*row));
    struct lists of;

    count_calls(w);
    for (int c = 0; c < w->j->calls; c++)
        row[c] = w->j->call[c].kind < 0 ? -1 : s->row_of[w->j->call[c].kind];
    lists_make(&of, row, NULL, w->j->calls, s->rows);
    for (int r = 0; r < s->rows; r++)
        fill_row(w, &s->row[r], &of.at[of.start[r]], of.start[r + 1] - of.start[r]);
    lists_free(&of);
    free(row);
}

/* --- complete analysis --- */

static void find_steps(struct steps_work *w)
{
    const struct record_job *j = w->j;
    struct beat_sequence q = {mem_calloc(BEAT_ENTRIES, sizeof(*q.entry)),
                              mem_calloc(BEAT_ENTRIES, sizeof(*q.like)), 0};
    struct record_steps *s = w->s;
    struct beat b;

    if (find_beat(&b, j, &q)) {
        sequence_of(&q, j, b.process, b.comm);
        w->begin = mem_calloc((size_t)b.count + 1, sizeof(*w->begin));
        s->steps = find_begins(w->begin, j, &b, &q);
        s->comm = b.comm;
        s->period = b.period;
        double *sec = mem_calloc((size_t)s->steps + 1, sizeof(*sec));
        for (int i = 0; i < s->steps; i++)
            sec[i] = (double)(w->begin[i + 1] - w->begin[i]) / 1e9;
        s->sec = stats_median(sec, s->steps);
        stats_median_ci(sec, s->steps, &s->lo, &s->hi);
        free(sec);
    }
    free(q.entry);
    free(q.like);
}

void record_steps_find(struct record_steps *s, const struct record_job *j, const float *overlap)
{
    struct steps_work w = {.s = s, .j = j, .overlap = overlap};

    *s = (struct record_steps){.comm = -1};
    find_steps(&w);
    make_rows(&w);
    fill_rows(&w);
    free(w.begin);
}

void record_steps_free(struct record_steps *s)
{
    free(s->row);
    free(s->row_of);
    memset(s, 0, sizeof(*s));
}

/* --- bytes from rank to rank --- */

struct steps_flow {
    int src, dst;
    double bytes;
};
struct steps_flows {
    struct map at;
    struct steps_flow *flow;
    int flows;
};

static void add_flow(struct steps_flows *f, int src, int dst, double bytes)
{
    int *at = map_at(&f->at, (uint64_t)src << 32 | (uint64_t)dst, NULL, NULL);

    if (*at == MAP_NONE) {
        *at = f->flows;
        MEM_PUSH(f->flow, f->flows) = (struct steps_flow){src, dst, 0};
    }
    f->flow[*at].bytes += bytes;
}

/* Add the bytes of one kind per step. */
static void add_kind(struct steps_flows *f, const struct record_job *j, const struct record_what *k,
                     double count)
{
    const struct record_team *c = &j->team[k->comm];
    const struct op_row *op = &op_table[k->op];
    double bytes = count * op->turns * (double)k->bytes;
    int n = c->size;

    if (record_is_message(k)) {
        add_flow(f, c->member[k->src], c->member[k->dst], count * (double)k->bytes);
        return;
    }
    if (n < 2 || c->missing)
        return;
    for (int i = 0; i < n; i++)
        if (op->links == OP_EXCHANGE)
            for (int d = 1; d < n; d++)
                add_flow(f, c->member[i], c->member[(i + d) % n], bytes / n);
        else
            add_flow(f, c->member[i], c->member[(i + 1) % n],
                     op->share == OP_WHOLE ? bytes : bytes * (n - 1) / n);
}

static int by_pair(const void *a, const void *b)
{
    return stats_by_2ints(a, b);
}

int record_steps_save(const struct record_steps *s, const struct record_job *j, const char *path,
                      struct err *err)
{
    struct steps_flows f = {.flows = 0};
    struct file_out out;

    for (int k = 0; k < j->kinds; k++)
        if (s->row_of[k] >= 0)
            add_kind(&f, j, &j->kind[k], s->row[s->row_of[k]].count);
    if (f.flows)
        qsort(f.flow, (size_t)f.flows, sizeof(*f.flow), by_pair);
    int rc = file_begin(&out, path, err);
    if (rc == 0) {
        fprintf(out.stream, "# bytes of %s, as recorded; rank i is endpoint i of the topology\n",
                s->steps ? "one step" : "all that was recorded");
        fprintf(out.stream, "src\tdst\tbytes\n");
        for (int i = 0; i < f.flows; i++)
            fprintf(out.stream, "%d\t%d\t%.0f\n", f.flow[i].src, f.flow[i].dst, f.flow[i].bytes);
        rc = file_commit(&out, err);
        file_abort(&out);
    }
    map_free(&f.at);
    free(f.flow);
    return rc;
}
