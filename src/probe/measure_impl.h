/* measure_impl.h - one point, for measure_plan(): the stop rule on one open group (sample.c). */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "probe/measure.h"
#include "probe/taint.h"

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
    bool unready; /* this turn the other groups wait for this one's first member */
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

/* A hook for tests of the watch: RAILGAUGE_FAULT="KIND:RANK:POINT" in the environment makes that
 * rank ill 0.2 s into its POINT-th point (from 1), where the others of its group wait. */
int measure_fault(int rank, int point, struct err *err);

#endif
