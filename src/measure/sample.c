/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/measure_impl.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "watch/watch.h"

void sample_close(struct sampler *s)
{
    if (s->ctx)
        s->transport->calls->close(s->ctx);
    s->ctx = NULL;
    if (s->group.comm)
        s->world->leave(s->world, &s->group.comm);
    memset(&s->group, 0, sizeof(s->group));
}

void sample_free(struct sampler *s)
{
    sample_close(s);
    free(s->sec);
    free(s->slow);
    s->sec = s->slow = NULL;
    s->room = 0;
}

bool sample_same(const struct sampler *s, const struct plan_group *pg)
{
    return s->ctx && s->group.size == pg->size &&
           !memcmp(s->group.members, pg->members, (size_t)pg->size * sizeof(int));
}

int sample_open(struct sampler *s, const struct round *r, int g, int epoch, size_t max_bytes,
                struct err *err)
{
    const struct plan_group *pg = &r->group[g];
    bool same = !s->world->solo && sample_same(s, pg) && s->max_bytes >= max_bytes;
    struct group group = {.members = pg->members,
                          .size = pg->size,
                          .round = r,
                          .index = g,
                          .epoch = epoch,
                          .turn = s->turn,
                          .turns = s->turns};

    if (same)
        group.comm = s->group.comm;
    else
        sample_close(s);
    for (int i = 0; i < pg->size && !s->world->solo; i++)
        if (pg->members[i] == s->world->rank)
            group.self = i;
    s->group = group;
    if (same)
        return 0;
    s->max_bytes = max_bytes;
    if (s->world->enter(s->world, pg->members, pg->size, r->id, &s->group.comm, err) < 0)
        return -1;
    double failed = s->transport->calls->open(&s->ctx, &s->group, max_bytes, err) < 0;
    if (s->world->maximum(s->group.comm, &failed, 1, err) < 0)
        return -1;
    return failed > 0 ? -1 : 0;
}

enum { RANGE_MIN = 4, FIRST_BATCH = 16, LAST_BATCH = 4096, SAMPLES_MAX = 100000 };

/* Data collected for one point over its batches. */
struct state {
    struct sampler *s;
    struct point_row *row;
    struct point *p; /* point of the row */
    const struct measure_opts *o;
    int n;          /* number of samples so far */
    double spent;   /* s in run(), by the wall clock or sim's formula */
    int slow_count; /* number of samples in which this rank was the slowest */
    int batches, late_count;
    bool good; /* interval was narrow when this rank reported ready */
};

/* Agree whether any member failed; rc is the result of this rank. */
static int any_failed(struct sampler *s, int rc, struct err *err)
{
    double failed = rc < 0;

    if (s->world->maximum(s->group.comm, &failed, 1, err) < 0)
        return -1;
    return failed > 0;
}

static int fail_point(struct state *st, const struct err *why)
{
    st->p->stop = STOP_FAILED;
    st->p->checked = st->p->wrong = false; /* missing data is not wrong data */
    memset(&st->p->sec, 0, sizeof(st->p->sec));
    st->p->n = 0;
    point_note(st->p, "%s", why->text);
    return 0;
}

static void make_room(struct sampler *s, int n)
{
    if (n <= s->room)
        return;
    s->room = n * 2;
    s->sec = mem_realloc(s->sec, (size_t)s->room, sizeof(*s->sec));
    s->slow = mem_realloc(s->slow, (size_t)s->room, sizeof(*s->slow));
}

/* Note the member that arrived last, and the time between first and last arrival, by the members'
 * common clock. */
static int note_arrival(struct state *st, struct err *err)
{
    struct sampler *s = st->s;
    double now = s->world->clock(s->group.comm), v[2] = {now, -now};

    if (isnan(now) || st->batches >= (int)(sizeof(s->skew) / sizeof(*s->skew)))
        return 0;
    if (s->world->maximum(s->group.comm, v, 2, err) < 0)
        return -1;
    s->skew[st->batches++] = v[0] + v[1];
    st->late_count += v[0] <= now;
    return 0;
}

/* Collectives run back to back, and ranks take turns at being late: a rank that waited in this run
 * is ahead in the next.  The slowest time of each run would count such delays twice.  Therefore a
 * run lasts from the moment when the last rank finished the previous run to the moment when the
 * last rank finishes this one; the samples of a batch add up to its time. */
static bool is_chained(const struct sampler *s, enum op op)
{
    return !s->world->solo && !op_is_pair(op) && (s->transport->stream || !op_is_rooted(op));
}

/* Time allowed for a run, s: eight times the last run of this operation; without a last run, the
 * time at 25 MB/s. */
static double slow_run(const struct sampler *s, const struct point *p)
{
    bool known = s->pace > 0 && s->pace_op == p->op;

    return (double)p->bytes * (known ? 8 * s->pace : 1 / 25e6);
}

/* Small messages do not predict large ones. */
static void note_pace(struct sampler *s, const struct point *p, double sec)
{
    if (p->bytes < 64 << 10)
        return;
    s->pace = sec / (double)p->bytes;
    s->pace_op = p->op;
}

/* Announce the next step and its allowed time to the watch.  In a world of one process no rank
 * waits. */
static void expect(const struct sampler *s, double sec)
{
    if (s->world->solo)
        return;
    watch_step();
    watch_expect(sec, 0); /* copies, too, run in a loop of a few instructions */
}

/* Run n more samples; append the slowest times to s->slow.  Returns 1 if a member failed. */
static int batch(struct state *st, int n, struct err *err)
{
    struct sampler *s = st->s;
    struct err why;

    why.text[0] = '\0';
    make_room(s, st->n + n + 1);
    expect(s, slow_run(s, st->p));
    if (note_arrival(st, err) < 0)
        return -1;
    const bool solo = s->world->solo; /* one process: its times are the slowest */
    double *slow = s->slow + st->n, *mine = solo ? slow : s->sec, from = sample_now(s);
    int rc = s->transport->calls->run(s->ctx, st->p->op, st->p->bytes, n, mine, &why);
    s->took.messages += sample_now(s) - from;
    bool chained = is_chained(s, st->p->op);
    for (int i = 1; chained && i < n; i++)
        mine[i] += mine[i - 1];
    mine[n] = rc < 0; /* maximum: true if any member failed */
    if (!solo)
        memcpy(slow, mine, (size_t)(n + 1) * sizeof(*slow));
    if (s->world->maximum(s->group.comm, slow, n + 1, err) < 0)
        return -1;
    double took = sample_now(s) - from;
    if (slow[n] > 0) {
        fail_point(st, &why);
        return 1;
    }
    for (int i = 0; solo && i < n; i++)
        st->spent += slow[i];
    for (int i = 0; !solo && i < n; i++)
        st->slow_count += mine[i] >= slow[i];
    for (int i = n - 1; chained && i > 0; i--)
        slow[i] -= slow[i - 1];
    if (!solo)
        note_pace(s, st->p, took / n);
    st->spent += took; /* wall time is longer than the sum of samples (windows, ping-pong) */
    st->n += n;
    return 0;
}

/* True if the interval of the median has the wanted half-width.  Sorts the samples.  With fewer
 * than six samples the interval is their range, which misses the median with probability 1/2 for
 * two samples and 1/8 for four. */
static bool narrow(const struct state *st)
{
    struct sampler *s = st->s;
    double lo, hi;

    if (st->n < RANGE_MIN)
        return false;
    stats_sort(s->slow, st->n);
    stats_median_ci(s->slow, st->n, &lo, &hi);
    return (hi - lo) / 2 <= st->o->half_width * stats_quantile(s->slow, st->n, 0.5);
}

int sample_ready(struct sampler *s, struct err *err)
{
    bool owes = s->unready;

    s->unready = false;
    return owes ? s->world->ready(s->world, err) : 0;
}

/* A parallel round runs until every group is ready, so that the fabric is loaded while any group
 * still measures.  It lasts at least a quarter of its time, because groups do not start at the same
 * moment.  A failure is reported at the end of the turn. */
static bool all_loaded(struct state *st)
{
    struct sampler *s = st->s;

    if (st->s->unready && st->spent >= st->o->time_cap / 4 && narrow(st)) {
        st->good = true;
        sample_ready(s, NULL);
    }
    return !s->unready && s->world->all_ready(s->world);
}

/* Smallest number of samples; with fewer, a disturbed sample would be the median. */
static int least_samples(const struct state *st)
{
    bool window = st->p->op == OP_PAIR_BW || st->p->op == OP_PAIR_BIBW;

    if (!st->o->quick)
        return 2;
    return window ? 1 + (QUICK_MESSAGES - 1) / OP_PAIR_WINDOW : QUICK_MESSAGES;
}

/* Decision of the leader: number of further samples (> 0), or -1 - enum stop. */
static int decide(struct state *st, int last_batch)
{
    double per = st->n ? st->spent / st->n : 0, left = st->o->time_cap - st->spent;
    bool loaded = st->p->flows > 1 && !st->s->world->solo;
    bool leads = st->s->group.self == 0;
    int fixed = st->o->iters;

    if (fixed)
        return st->n >= fixed               ? -1 - STOP_COUNT
               : fixed - st->n > LAST_BATCH ? LAST_BATCH
                                            : fixed - st->n;
    if (st->n >= least_samples(st) && leads && (loaded ? all_loaded(st) : narrow(st)))
        return -1 - STOP_CI;
    if (st->good && left < per)
        return -1 - STOP_CI;
    if ((st->n >= least_samples(st) && left < per) || st->n >= SAMPLES_MAX)
        return -1 - STOP_TIME;
    int next = last_batch ? last_batch * 2 : FIRST_BATCH;
    if (next > LAST_BATCH)
        next = LAST_BATCH;
    if (per > 0 && next * per > left)
        next = left > 2 * per ? (int)(left / per) : 2;
    if (next < least_samples(st) - st->n)
        next = least_samples(st) - st->n;
    return next;
}

/* Uncounted runs: one, and as many more as fit in a quarter of the time cap.  *per becomes the time
 * of the last run. */
static int warm_up(struct state *st, double *per, struct err *err)
{
    int rc = 0, n = 1;

    for (int more = 1; more >= 0 && n > 0 && rc == 0; more--) {
        rc = batch(st, n, err);
        *per = st->spent / n;
        n = st->o->warmup - 1;
        if (*per > 0 && n * *per > st->o->time_cap / 4)
            n = (int)(st->o->time_cap / 4 / *per);
        if (rc == 0 && more && st->s->world->lead(st->s->group.comm, &n, err) < 0)
            rc = -1;
        st->n = 0;
        st->spent = 0;
    }
    st->slow_count = st->late_count = st->batches = 0;
    return rc;
}

static int verify(struct state *st, struct err *err)
{
    struct sampler *s = st->s;
    struct err why = {0, ""};
    /* allow time for filling and comparing buffers */
    expect(s, slow_run(s, st->p) + (double)st->p->bytes * s->group.size / 50e6);
    int rc = s->transport->calls->check(s->ctx, st->p->op, st->p->bytes, &why),
        bad = any_failed(s, rc, err);

    if (bad < 0)
        return -1;
    st->p->checked = true;
    st->p->wrong = bad;
    if (bad)
        point_note(st->p, "%s", why.text);
    return 0;
}

/* Encode a count with the index of its member, so that maximum() finds count and member. */
static double with_name(const struct sampler *s, int count)
{
    return (double)count * s->group.size + s->group.self;
}

/* Endpoint id encoded in such a maximum. */
static int named(const struct sampler *s, double most)
{
    return s->group.members[(int)fmod(most, s->group.size)];
}

static int finish(struct state *st, struct err *err)
{
    struct sampler *s = st->s;
    struct point_row *row = st->row;
    double most[] = {with_name(s, st->slow_count), with_name(s, st->late_count)};
    struct summary sec;

    stats_summary(&sec, s->slow, st->n);
    point_summary(row, &sec);
    row->skew = st->batches ? stats_median(s->skew, st->batches) : NAN;
    row->slowest = row->late = -1;
    if (s->world->solo)
        return 0;
    if (s->world->maximum(s->group.comm, most, 2, err) < 0)
        return -1;
    row->slowest = named(s, most[0]);
    row->late = st->batches ? named(s, most[1]) : -1;
    return 0;
}

/* --- fault injection for tests of the watch: RAILGAUGE_FAULT="KIND:RANK:POINT" in the environment
 * lets that rank fail 0.2 s into its POINT-th point (from 1), where the others of its group wait
 * --- */

static const struct fault_hook {
    const char *name;
    int signal;   /* signal to raise */
    bool symptom; /* reports "device does not answer" */
} faults[] = {
    {"kill", SIGKILL, false}, {"segv", SIGSEGV, false},
    {"stop", SIGSTOP, false}, {"exit", -1, false}, /* _exit(0) */
    {"spin", 0, false},                            /* never ends */
    {"ill", 0, true},                              /* does not end either */
};

static void strike(const struct fault_hook *k)
{
    usleep(200000);
    watch_flush(); /* the verdict must report the state at death */
    if (k->symptom)
        watch_symptom("device does not answer");
    if (k->signal < 0)
        _exit(0);
    if (k->signal)
        raise(k->signal);
    for (volatile unsigned i = 0; !k->signal; i++)
        ;
}

static int fault(const char *text, int rank, int point, struct err *err)
{
    char kind[8];
    int who, when, used = 0;

    if (!*text)
        return 0;
    if (sscanf(text, "%7[a-z]:%7d:%7d%n", kind, &who, &when, &used) == 3 && !text[used])
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
            if (!strcmp(kind, faults[i].name)) {
                if (who == rank && when == point)
                    strike(&faults[i]);
                return 0;
            }
    return err_config(err,
                      "RAILGAUGE_FAULT=\"%s\": not KIND:RANK:POINT, KIND one of kill, segv, "
                      "exit, stop, spin, ill",
                      text);
}

int sample_point(struct sampler *s, struct point_row *row, const struct measure_opts *o, bool check,
                 struct err *err)
{
    struct state st = {.s = s, .row = row, .p = &row->point, .o = o};
    double per = 0;
    s->took = (struct measure_turn){0};
    if (s->fault && fault(s->fault, s->world->rank, ++s->struck, err) < 0)
        return -1;
    int rc = warm_up(&st, &per, err), n = 0;

    s->took.warmup = s->took.messages;
    if (rc)
        return rc < 0 ? -1 : 0;
    double from = sample_now(s);
    if (check && s->transport->calls->check && verify(&st, err) < 0)
        return -1;
    s->took.once = sample_now(s) - from;
    st.spent = 0;
    for (int last = 0;; last = n) {
        n = decide(&st, last);
        if (!last && n > 2 && !o->iters &&
            per * n > o->time_cap / 2) /* long samples: a short first batch */
            n = per * 4 > o->time_cap ? 2 : 4;
        if (s->world->lead(s->group.comm, &n, err) < 0)
            return -1;
        if (n < 0)
            break;
        rc = batch(&st, n, err);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
    st.p->stop = (enum stop)(-1 - n);
    return finish(&st, err);
}
