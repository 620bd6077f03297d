/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/job/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "record/record_job.h"

const char *const late_kind_name[] = {"no", "sometimes", "usually"};

/* --- time that each process waited for others before each of its entries --- */

struct late_work {
    const struct record_job *j;
    double *waited; /* per entry: wait in all earlier entries of its process, s */
    int *before;    /* per entry: previous entry of the same communicator; -1: none */
    double unsure;
    int *host;                          /* by process */
    struct late_part *best, *host_best; /* per process and per host: part with the largest loss */
    int *axes_judged, *axes_late;       /* by process */
    struct late *out;
};

static void wait_times(struct late_work *w)
{
    const struct record_job *j = w->j;
    int *last = mem_ints(j->teams, -1);
    /* last start; 0: call incomplete */
    int64_t *call = mem_calloc((size_t)j->calls + 1, sizeof(*call));

    for (int c = 0; c < j->calls; c++) {
        struct record_span s;
        record_call_span(&s, j, c);
        call[c] = s.whole ? s.last : 0;
    }
    for (int p = 0; p < j->processes; p++) {
        const struct record_process *q = &j->process[p];
        double sum = 0;
        for (int i = q->first; i < q->first + q->entries; i++) {
            const struct record_entry *e = &j->entry[i];
            int comm = j->kind[e->kind].comm;
            w->waited[i] = sum;
            w->before[i] = last[comm];
            last[comm] = i;
            if (e->call >= 0 && call[e->call])
                sum += (double)(call[e->call] - e->start) / 1e9;
        }
        w->out->waited += sum / j->processes;
        for (int i = q->first; i < q->first + q->entries; i++)
            last[j->kind[j->entry[i].kind].comm] = -1;
    }
    free(last);
    free(call);
}

/* --- one communicator --- */

struct late_member {
    float *own; /* own() by call */
    int last;
    double lost, host_lost;
    double median, lo, hi;
    int often;               /* calls beyond the threshold */
    double behind, from, to; /* median and interval over those calls, or over all */
};

struct late_comm {
    const struct record_team *comm;
    int calls, n;
    struct late_member *m;
    double *start, *worked, *buf; /* per member: values of one call, s */
    double *long_buf;             /* by call */
    double *spread;               /* standard deviation of the starts, by call */
    double typical;               /* median of spread */
};

/* Find the last member and how much earlier the call would begin without it or its host. */
static void count_last(struct late_comm *c, const struct late_work *w)
{
    int latest = 0;
    double next = -INFINITY, next_host = -INFINITY;

    for (int i = 1; i < c->n; i++)
        latest = c->start[i] > c->start[latest] ? i : latest;
    for (int i = 0; i < c->n; i++) {
        bool here = w->host[c->comm->member[i]] == w->host[c->comm->member[latest]];
        if (i != latest && c->start[i] > next)
            next = c->start[i];
        if (!here && c->start[i] > next_host)
            next_host = c->start[i];
    }
    struct late_member *m = &c->m[latest];
    double own = (double)m->own[c->calls];
    m->last++;
    if (own > 0) {
        m->lost += fmin(own, c->start[latest] - next);
        m->host_lost += isinf(next_host) ? 0 : fmin(own, fmax(0, c->start[latest] - next_host));
    }
}

static void take_call(struct late_comm *c, const struct late_work *w, int call)
{
    const struct record_job *j = w->j;
    int64_t origin = record_call_entry(j, call, 0)->start;

    for (int i = 0; i < c->n; i++) {
        int e = j->part[j->call[call].first + i], before = w->before[e];
        c->start[i] = (double)(j->entry[e].start - origin) / 1e9;
        /* Waiting inside the previous call of this communicator does not count: start after it. */
        double since = before < 0 ? w->waited[e] : w->waited[e] - w->waited[before + 1];
        c->worked[i] = c->start[i] - since;
    }
    memcpy(c->buf, c->start, sizeof(*c->buf) * (size_t)c->n);
    double start = stats_middle(c->buf, c->n);
    for (int i = 0; i < c->n; i++)
        c->buf[i] = fabs(c->buf[i] - start);
    c->spread[c->calls] = 1.4826 * stats_middle(c->buf, c->n);
    memcpy(c->buf, c->worked, sizeof(*c->buf) * (size_t)c->n);
    double worked = stats_middle(c->buf, c->n);
    for (int i = 0; i < c->n; i++)
        c->m[i].own[c->calls] = (float)fmin(c->start[i] - start, c->worked[i] - worked);
    count_last(c, w);
    c->calls++;
}

/* State how late a member is in all calls, not only in those beyond the threshold. */
static void late_by_median(struct late_member *m)
{
    m->behind = m->median;
    m->from = m->lo;
    m->to = m->hi;
}

/* Compute the statistics of each member after all calls were taken. */
static void summarise(struct late_comm *c, const struct late_work *w)
{
    memcpy(c->long_buf, c->spread, sizeof(*c->long_buf) * (size_t)c->calls);
    c->typical = stats_middle(c->long_buf, c->calls);
    double beyond = fmax(fmax(LATE_FAR * c->typical, 3 * w->unsure), 2 * LATE_LEAST);
    for (int i = 0; i < c->n; i++) {
        struct late_member *m = &c->m[i];
        for (int k = 0; k < c->calls; k++)
            if ((double)m->own[k] > beyond)
                c->long_buf[m->often++] = (double)m->own[k];
        if (m->often) {
            m->behind = stats_median(c->long_buf, m->often);
            stats_median_ci(c->long_buf, m->often, &m->from, &m->to);
        }
        for (int k = 0; k < c->calls; k++)
            c->long_buf[k] = (double)m->own[k];
        m->median = stats_median(c->long_buf, c->calls);
        stats_median_ci(c->long_buf, c->calls, &m->lo, &m->hi);
        if (2 * m->often > c->calls || !m->often)
            late_by_median(m);
    }
}

/* Returns the median of the members' medians; *spread: their spread. */
static double level(const struct late_comm *c, double *spread)
{
    for (int i = 0; i < c->n; i++)
        c->buf[i] = c->m[i].median;
    double median = stats_median(c->buf, c->n);
    *spread = stats_sigma(c->buf, c->n);
    return median;
}

static enum late_kind judge(const struct late_comm *c, const struct late_work *w, int i,
                            double usual, double spread)
{
    struct late_member *m = &c->m[i];
    double others = 0, margin = fmax(LATE_SIGMAS * spread, c->typical / 2);

    margin = fmax(fmax(margin, 3 * w->unsure), LATE_LEAST);
    if (c->calls >= LATE_CALLS && m->lo - usual > margin) {
        late_by_median(m); /* not by the few calls that lie far beyond */
        return LATE_USUAL;
    }
    for (int k = 0; k < c->n; k++)
        c->buf[k] = c->m[k].often;
    others = stats_middle(c->buf, c->n);
    if (m->often < LATE_CALLS || m->often <= others + LATE_SIGMAS * sqrt(others + 1))
        return LATE_NOT;
    return m->often >= LATE_USUAL_SHARE * c->calls ? LATE_USUAL : LATE_SOMETIMES;
}

static void keep_worst(struct late_part *at, const struct late_part *p)
{
    if (at->kind == LATE_NOT || p->lost > at->lost)
        *at = *p;
}

/* Record the late members of this communicator. */
static void blame(struct late_comm *c, struct late_work *w)
{
    double spread, usual = level(c, &spread);

    for (int i = 0; i < c->n; i++) {
        enum late_kind kind = judge(c, w, i, usual, spread);
        const struct late_member *m = &c->m[i];
        int process = c->comm->member[i];
        struct late_part p = {.kind = kind,
                              .process = process,
                              .axis = c->comm->axis,
                              .calls = c->calls,
                              .last = m->last,
                              .often = m->often,
                              .behind = m->behind,
                              .lo = m->from,
                              .hi = m->to,
                              .lost = m->lost,
                              .partners = c->n - 1};
        w->axes_judged[process]++;
        if (p.kind == LATE_NOT)
            continue;
        w->axes_late[process]++;
        keep_worst(&w->best[process], &p);
        p.lost = m->host_lost;
        p.host = true;
        keep_worst(&w->host_best[process], &p);
    }
}

static void judge_comm(struct late_work *w, const struct record_team *comm, const int *call,
                       int calls)
{
    size_t n = (size_t)comm->size;
    struct late_comm c = {.comm = comm, .n = comm->size};

    if (comm->size <= LATE_PARTNERS || comm->missing || !calls)
        return;
    c.m = mem_calloc(n, sizeof(*c.m));
    c.start = mem_calloc(n, sizeof(*c.start));
    c.worked = mem_calloc(n, sizeof(*c.worked));
    c.buf = mem_calloc(n, sizeof(*c.buf));
    c.spread = mem_calloc((size_t)calls, sizeof(*c.spread));
    c.long_buf = mem_calloc((size_t)calls, sizeof(*c.long_buf));
    for (size_t i = 0; i < n; i++)
        c.m[i].own = mem_calloc((size_t)calls, sizeof(float));
    for (int i = 0; i < calls; i++)
        take_call(&c, w, call[i]);
    summarise(&c, w);
    blame(&c, w);
    for (size_t i = 0; i < n; i++)
        free(c.m[i].own);
    free(c.m);
    free(c.start);
    free(c.worked);
    free(c.buf);
    free(c.spread);
    free(c.long_buf);
}

/* Members of a call are in process order, so the communicator's members must be as well. */
static int by_int(const void *a, const void *b)
{
    return stats_by_int(a, b);
}

static void judge_comms(struct late_work *w)
{
    const struct record_job *j = w->j;
    int *comm = mem_calloc((size_t)j->calls + 1, sizeof(*comm));
    struct lists of;

    for (int i = 0; i < j->calls; i++) {
        struct record_span s;
        record_call_span(&s, j, i);
        const struct record_what *k = s.whole ? &j->kind[j->call[i].kind] : NULL;
        comm[i] = k && record_joins(k) ? k->comm : -1;
    }
    lists_make(&of, comm, NULL, j->calls, j->teams);
    for (int i = 0; i < j->teams; i++) {
        struct record_team sorted = j->team[i];
        sorted.member = mem_dup(sorted.member, (size_t)sorted.size, sizeof(*sorted.member));
        qsort(sorted.member, (size_t)sorted.size, sizeof(*sorted.member), by_int);
        judge_comm(w, &sorted, &of.at[of.start[i]], of.start[i + 1] - of.start[i]);
        free(sorted.member);
    }
    lists_free(&of);
    free(comm);
}

/* --- the whole job --- */

static double recorded_seconds(const struct record_job *j)
{
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (int i = 0; i < j->entries; i++) {
        first = j->entry[i].start < first ? j->entry[i].start : first;
        last = j->entry[i].end > last ? j->entry[i].end : last;
    }
    return last > first ? (double)(last - first) / 1e9 : 0;
}

static void add_part(struct late_work *w, struct late_part p)
{
    p.share = w->out->seconds > 0 ? p.lost / w->out->seconds : 0;
    if (p.share >= (p.kind == LATE_USUAL ? LATE_SHARE : LATE_SHARE_SOMETIMES))
        MEM_PUSH(w->out->part, w->out->parts) = p;
}

/* True if all processes of a host, two at least, are late in the same way.  They are one part. */
static bool host_is_late(const struct late_work *w, const int *process, int n)
{
    bool late = n > 1;

    for (int i = 0; i < n; i++)
        late &= w->host_best[process[i]].kind != LATE_NOT &&
                w->host_best[process[i]].kind == w->host_best[process[0]].kind &&
                w->host_best[process[i]].lost > 0;
    return late;
}

static void add_host(struct late_work *w, const int *process, int n)
{
    struct late_part most = w->host_best[process[0]];

    if (host_is_late(w, process, n)) {
        for (int i = 1; i < n; i++)
            if (w->host_best[process[i]].lost > most.lost)
                most = w->host_best[process[i]];
        most.process = process[0];
        add_part(w, most);
        return;
    }
    for (int i = 0; i < n; i++) {
        struct late_part p = w->best[process[i]];
        p.only = w->axes_late[process[i]] == 1 && w->axes_judged[process[i]] > 1;
        if (p.kind != LATE_NOT)
            add_part(w, p);
    }
}

static int by_lost(const void *a, const void *b)
{
    const struct late_part *x = a, *y = b;

    return (x->lost < y->lost) - (x->lost > y->lost);
}

static void find_parts(struct late_work *w)
{
    const struct record_job *j = w->j;
    struct lists of;

    lists_make(&of, w->host, NULL, j->processes, j->hosts.count);
    for (int h = 0; h < j->hosts.count; h++)
        add_host(w, &of.at[of.start[h]], of.start[h + 1] - of.start[h]);
    lists_free(&of);
    for (int p = 0; p < j->processes; p++)
        w->out->judged += w->axes_judged[p] > 0;
    if (w->out->parts)
        qsort(w->out->part, (size_t)w->out->parts, sizeof(*w->out->part), by_lost);
}

void late_find(struct late *l, const struct record_job *j)
{
    size_t n = (size_t)j->processes + 1, entries = (size_t)j->entries + 1;
    struct late_work w = {.j = j, .out = l, .unsure = record_clock_unsure(j)};

    *l = (struct late){.seconds = recorded_seconds(j)};
    w.waited = mem_calloc(entries, sizeof(*w.waited));
    w.before = mem_calloc(entries, sizeof(*w.before));
    w.host = mem_calloc(n, sizeof(*w.host));
    w.best = mem_calloc(n, sizeof(*w.best));
    w.host_best = mem_calloc(n, sizeof(*w.host_best));
    w.axes_judged = mem_calloc(n, sizeof(*w.axes_judged));
    w.axes_late = mem_calloc(n, sizeof(*w.axes_late));
    for (int p = 0; p < j->processes; p++)
        w.host[p] = names_find(&j->hosts, j->process[p].host);
    wait_times(&w);
    judge_comms(&w);
    find_parts(&w);
    free(w.waited);
    free(w.before);
    free(w.host);
    free(w.best);
    free(w.host_best);
    free(w.axes_judged);
    free(w.axes_late);
}

char *late_name(const struct late_part *p, const struct record_job *j)
{
    const struct record_process *q = &j->process[p->process];

    if (p->host)
        return mem_printf("host %s", q->host);
    return q->device < 0 ? mem_printf("rank %d on %s", q->rank, q->host)
                         : mem_printf("rank %d on %s (device %d)", q->rank, q->host, q->device);
}
