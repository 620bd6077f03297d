/* measure_impl.h - what the files behind measure_plan() share: sample.c measures one point, retest.c
 * chooses what is measured again. */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "probe/measure.h"
#include "probe/taint.h"

/* --- sample.c: the stop rule on one open group --- */

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
};

/* Open on group g of round r.  Collective over its members, who fail together. */
int sample_open(struct sampler *s, const struct round *r, int g, int epoch, size_t max_bytes,
                struct err *err);
/* Open, and on exactly these members in this order? */
bool sample_same(const struct sampler *s, const struct plan_group *g);
void sample_close(struct sampler *s); /* the room for samples stays: sample_free() */
void sample_free(struct sampler *s);

/* Fill p->sec, stop, slowest, skew, late, checked, wrong, note.  Collective over the group.  A
 * transport that fails (or wrong data) leaves its words in the note of the member that saw it; the
 * others' is "". It makes a point with stop = STOP_FAILED; the return value is -1 only when the
 * members could not even agree on that. */
int sample_point(struct sampler *s, struct point *p, const struct measure_opts *o, bool check,
                 struct err *err);

/* --- retest.c --- */

enum { RETEST_PER_ENDPOINT = 6, RETEST_PARTNERS = 3, RETEST_MAX = 256 };

/* Which pairs of the parallel stages are measured again: out gets rounds of one pair each, stage
 * RETEST, every epoch; none when nothing stands out.
 *
 * An outlier of a parallel round can be a bad link or the neighbours' traffic; only the same pair
 * alone tells which.  Chosen are pairs slower than their (op, size, tier) class by
 * max(10 %, 5 * 1.4826 * MAD), and RETEST_PARTNERS pairs of an endpoint whose bandwidths are low in
 * the middle, worst first, at most RETEST_PER_ENDPOINT for one endpoint, and one healthy pair of
 * each class so that "alone" can be compared with "in parallel". */
void retest_plan(struct plan *out, const struct topo *t, const struct points *p);

#endif
