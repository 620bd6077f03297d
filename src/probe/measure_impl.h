/* measure_impl.h - one point, for measure_plan(): the stop rule on one open group (sample.c). */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "base/log.h"
#include "probe/measure.h"
#include "probe/taint.h"

/* s that a group took in a turn: with opening and agreeing, in messages, and of them in those that
 * warm up; and in what later epochs do not do again: opening and checking. */
struct measure_turn {
    double group, messages, warmup, once;
};

/* An open transport on a group, reused while consecutive rounds have the same members. */
struct sampler {
    struct world *world; /* these two are the caller's */
    const struct transport *transport;
    struct group group;
    int turn, turns;  /* of the group: the caller's */
    void *ctx;        /* the transport's; NULL: closed */
    size_t max_bytes; /* that ctx was opened for */
    double *sec;      /* room for samples of this rank and of the slowest */
    double *slow;
    int room;
    double skew[64]; /* of a point's batches, s */
    double pace; /* s a byte of the last run, 0: none yet; what a slow one may take comes from it */
    enum op pace_op;
    struct measure_turn took; /* by the last point, but for its opening */
    const char *fault;        /* RAILGAUGE_FAULT (sample.c); NULL: none */
    int struck;               /* points begun */
    bool unready;             /* this turn the other groups wait for this one's first member */
};

/* Of the only one the formula's time counts, not the clock's, which nobody reads then: 0. */
static inline double sample_now(const struct sampler *s)
{
    return s->world->solo ? 0 : log_now();
}

/* Open on group g of round r.  Collective over its members, who fail together. */
int sample_open(struct sampler *s, const struct round *r, int g, int epoch, size_t max_bytes,
                struct err *err);
/* Open, and on exactly these members in this order? */
bool sample_same(const struct sampler *s, const struct plan_group *g);
void sample_close(struct sampler *s); /* the room for samples stays: sample_free() */
void sample_free(struct sampler *s);

/* All that this rank measures in this turn is good enough, or there is nothing: said once. */
int sample_ready(struct sampler *s, struct err *err);

/* Fill a row's times, stop, slowest, skew, late, checked, wrong, note.  Collective over the group.  A
 * transport that fails (or wrong data) leaves its words in the note of the member that saw it; the
 * others' is "". It makes a point with stop = STOP_FAILED; the return value is -1 only when the
 * members could not even agree on that. */
int sample_point(struct sampler *s, struct point_row *row, const struct measure_opts *o, bool check,
                 struct err *err);

/* --- where the seconds go, and what a campaign will take (measure_clock.c) ---
 *
 * Some turns of each kind come first, in their first epoch: every second size of a ladder, or every one
 * where there are few, and some rounds of a matrix.  The others take what lies between them by the
 * logarithm of their size.  Their stop rule has run, so noise
 * is in it. */

struct tried_turn; /* what one of them took */

/* On rank 0. */
struct measure_clock {
    const struct topo *topo;
    const struct measure_opts *opts;
    struct measure_time time;
    struct measure_turn slowest; /* group of this turn */
    bool tries;                  /* these turns are those that come first */
    struct tried_turn *tried;    /* the campaign frees it */
    int count;
};

/* At the first turn; o has the time cap filled in and stays. */
static inline void measure_clock_open(struct measure_clock *k, const struct topo *t,
                                      const struct measure_opts *o)
{
    *k = (struct measure_clock){.topo = t, .opts = o};
    if (o->time) {
        k->time = *o->time;
        k->time.spent[SPENT_START] = log_now() - k->time.began;
    }
}
/* Which rounds are tried, by their place in the plan; the caller frees.  *count is 0 before. */
int *measure_clock_choose(const struct measure_clock *k, const struct plan *plan, int *count);
/* A plan of those n, with every second size and the last one where the plan has many turns.  Its groups
 * are the plan's: the caller frees its rounds alone. */
struct plan measure_clock_some(const struct plan *plan, const int *at, int n);
/* What a group's first member tells of this turn ... */
static inline void measure_clock_hear(struct measure_clock *k, const struct measure_turn *group)
{
    if (group->group > k->slowest.group)
        k->slowest = *group;
}
/* ... and the turn's end: `bytes` of round r took sec. */
void measure_clock_turn(struct measure_clock *k, const struct round *r, size_t bytes, double sec);
/* s that a turn will take, where it checks or not; beyond what was tried, where messages are too long,
 * 0. */
double measure_clock_expect(const struct measure_clock *k, const struct round *r, size_t bytes,
                            bool checks);

#endif
