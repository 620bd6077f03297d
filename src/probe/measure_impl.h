/* measure_impl.h - what the files behind measure_plan() share: sample.c measures one point, retest.c
 * chooses what is measured again, campaign_log.c writes down what the ranks tell. */
#ifndef RG_MEASURE_IMPL_H
#define RG_MEASURE_IMPL_H

#include "base/log.h"
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

/* --- campaign_log.c: what the ranks tell rank 0 of one size becomes rows of points.tsv --- */

/* What a rank tells rank 0 about one size. */
struct campaign_record {
    int state; /* 0: took no part, 1: member, 2: first member, whose numbers count */
    char taint[TAINT_TEXT];
    struct taint_port_said port;
    struct point point;
};

/* The worst pair so far, for the progress line: slowest against the running median of its class,
 * which moves up or down by a fixed share with each value: good enough to glance at. */
struct worst_pair {
    double typical[TIER_MAX][OP_COUNT];
    size_t bytes[TIER_MAX][OP_COUNT];
    double share;  /* of the typical bandwidth, 1 at the start */
    char text[64]; /* "17>89 0.60x", "" while nothing stands out */
};

/* Every rank has one; only where there is a log does it hold anything, and only there are the
 * functions below that do not say otherwise called. */
struct campaign_log {
    struct points_log *points; /* NULL on other ranks; the caller's */
    const struct topo *topo;
    int ranks;
    struct campaign_record *inbox; /* one a rank, to be gathered into; NULL on other ranks */
    struct worst_pair worst;
    struct progress progress;
    double work_done, work; /* points; of the whole plan */
};

/* On every rank; campaign_log_close() frees. */
void campaign_log_open(struct campaign_log *l, struct points_log *points, const struct topo *topo,
                       const struct plan *plan, int ranks);
void campaign_log_close(struct campaign_log *l);

/* A point of the round into the log. */
void campaign_log_add(struct campaign_log *l, const struct round *r, struct point *p);
/* All of the inbox: the first member's record of each group, with the words of the member that saw
 * the trouble, or whose GPU or port suffered. */
void campaign_log_merge(struct campaign_log *l, const struct round *r, struct taint_port *ports);
/* By the time of the size before it: would a message of `bytes` take longer than max_run seconds?
 */
bool campaign_log_too_slow(const struct campaign_log *l, const struct round *r, int epoch,
                           size_t bytes, double max_run);
/* A size of the round is measured: the file holds it, the progress line shows it. */
int campaign_log_commit(struct campaign_log *l, const struct round *r, size_t bytes,
                        struct err *err);
/* What is safe in the file, for the verdict's words; on any rank. */
void campaign_log_tell_kept(const struct campaign_log *l);

#endif
