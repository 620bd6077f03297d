/* measure_impl.h - one point, for measure_plan(): the stop rule on one open group (sample.c). */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "probe/measure.h"
#include "probe/taint.h"

/* s that a group took in a turn: with opening and agreeing, in messages, and of them in those that
 * warm up. */
struct measure_turn {
    double group, messages, warmup;
};

/* An open transport on a group, reused while consecutive rounds have the same members. */
struct sampler {
    struct world *world; /* these two are the caller's */
    const struct transport *transport;
    struct group group;
    void *ctx;        /* the transport's; NULL: closed */
    size_t max_bytes; /* that ctx was opened for */
    double *sec;      /* room for samples of this rank and of the slowest */
    double *slow;
    int room;
    double pace; /* s a byte of the last run, 0: none yet; what a slow one may take comes from it */
    enum op pace_op;
    struct measure_turn took; /* by the last point, but for its opening */
    int struck;               /* points begun */
    bool unready;             /* this turn the other groups wait for this one's first member */
};

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

/* --- where the seconds go (measure_clock.c) --- */

/* By the guess that nothing disturbs, turns of a campaign and what they took.  On rank 0. */
struct measure_clock {
    const struct topo *topo;
    const struct measure_opts *opts;
    struct measure_time time;
    struct measure_turn slowest; /* group of this turn */
    double ahead[2];             /* s of turns, of collectives and of pairs, guessed */
    double expected[2], seen[2]; /* those that are over, guessed and measured */
    unsigned epochs;             /* of the plan */
};

/* At the first turn; o has the time cap filled in and stays. */
void measure_clock_open(struct measure_clock *c, const struct topo *t, const struct measure_opts *o,
                        const struct plan *plan);
/* What a group's first member tells of this turn ... */
static inline void measure_clock_hear(struct measure_clock *c, const struct measure_turn *group)
{
    if (group->group > c->slowest.group)
        c->slowest = *group;
}
/* ... and the turn's end: `bytes` of round r took sec. */
void measure_clock_turn(struct measure_clock *c, const struct round *r, int epoch, size_t bytes,
                        double sec, const struct points *all);

#endif
