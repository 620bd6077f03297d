/* measure_impl.h - internals of measure_plan(): the stop rule for a point on an open group
 * (sample.c), and the time of turns (measure_clock.c). */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "base/log.h"
#include "measure/measure.h"
#include "measure/taint.h"

/* Seconds that a group spent in a turn.  group: all, with opening and agreement; messages: in
 * messages; warmup: part of messages; once: opening and checking, which later epochs do not
 * repeat. */
struct measure_turn {
    double group, messages, warmup, once;
};

/* An open transport on a group, reused while consecutive rounds have the same members. */
struct sampler {
    struct world *world; /* world and transport are owned by the caller */
    const struct transport *transport;
    struct group group;
    int turn, turns;  /* of the group; set by the caller */
    void *ctx;        /* context of the transport; NULL: closed */
    size_t max_bytes; /* size for which ctx was opened */
    double *sec;      /* room for samples of this rank and of the slowest rank */
    double *slow;
    int room;
    double skew[64]; /* of the batches of one point, s */
    double pace; /* s per byte of the last run, 0: none yet; sets the time allowed for a slow run */
    enum op pace_op;
    struct measure_turn took; /* by the last point, without its opening */
    const char *fault;        /* RAILGAUGE_FAULT (sample.c); NULL: none */
    int struck;               /* number of points started */
    bool unready;             /* other groups of this turn wait for this group's first member */
};

/* Current time, s; 0 in a world of one process, where the time comes from a formula and the clock
 * is never used. */
static inline double sample_now(const struct sampler *s)
{
    return s->world->solo ? 0 : log_now();
}

/* Open the transport on group g of round r.  Collective over the members; succeeds or fails on
 * all. */
int sample_open(struct sampler *s, const struct round *r, int g, int epoch, size_t max_bytes,
                struct err *err);
/* True if open on exactly these members in this order. */
bool sample_same(const struct sampler *s, const struct plan_group *g);
void sample_close(struct sampler *s); /* keeps the room for samples; see sample_free() */
void sample_free(struct sampler *s);

/* Report, once per turn, that this rank's points of the turn are precise enough, or that the rank
 * has no points. */
int sample_ready(struct sampler *s, struct err *err);

/* Measure a point: fill times, stop, slowest, skew, late, checked, wrong and note of a row.
 * Collective over the group.  If the transport fails or data is wrong, the message is in the note
 * of the member that saw it; the notes of the other members are "".  A failed point has stop =
 * STOP_FAILED; the return value is -1 only if the members could not even agree on that. */
int sample_point(struct sampler *s, struct point_row *row, const struct measure_opts *o, bool check,
                 struct err *err);

/* --- accounting of time, and the estimate of a campaign (measure_clock.c) ---
 *
 * Trial turns of each kind come first: every second size of a ladder (every size if there are few)
 * and some rounds of the matrix, in the first epoch that lacks something.  Other turns are
 * interpolated by the logarithm of the size.  Trial turns run with the stop rule, so their times
 * include noise. */

struct tried_turn; /* time of one trial turn */

/* Used on rank 0. */
struct measure_clock {
    const struct topo *topo;
    const struct measure_opts *opts;
    struct measure_time time;
    struct measure_turn slowest; /* slowest group of this turn */
    bool tries;                  /* the current turns are the trial turns */
    struct tried_turn *tried;    /* owned by the campaign */
    int count;
};

/* Call at the first turn.  o must have its time cap filled in and outlive k. */
static inline void measure_clock_open(struct measure_clock *k, const struct topo *t,
                                      const struct measure_opts *o)
{
    *k = (struct measure_clock){.topo = t, .opts = o};
    if (o->time) {
        k->time = *o->time;
        k->time.spent[SPENT_START] = log_now() - k->time.began;
    }
}
/* Choose the rounds to try, as positions in the plan; `epoch` is the first that lacks something.
 * *count must be 0.  The caller frees. */
int *measure_clock_choose(const struct measure_clock *k, const struct plan *plan, int epoch,
                          int *count);
/* Return a plan of n rounds.  If the plan has many turns, only every second size and the last are
 * kept.  The groups belong to `plan`: free only the rounds. */
struct plan measure_clock_some(const struct plan *plan, const int *at, int n);
/* Add what the first member of a group reports of this turn. */
static inline void measure_clock_hear(struct measure_clock *k, const struct measure_turn *group)
{
    if (group->group > k->slowest.group)
        k->slowest = *group;
}
/* End a turn: `bytes` of round r took sec. */
void measure_clock_turn(struct measure_clock *k, const struct round *r, size_t bytes, double sec);
/* Expected seconds of a turn, with or without checks.  0 for sizes beyond those tried, where
 * messages are too long. */
double measure_clock_expect(const struct measure_clock *k, const struct round *r, size_t bytes,
                            bool checks);

#endif
