/* measure_book.h - rank 0's book of a campaign: what the ranks tell of one size becomes rows of the
 * log, the progress line and what a verdict says is kept.  For measure.c.
 *
 * Every rank has one; only where there is a log does it hold anything, and only there are the
 * functions below that do not say otherwise called. */
#ifndef RG_MEASURE_BOOK_H
#define RG_MEASURE_BOOK_H

#include "base/log.h"
#include "probe/plan.h"
#include "probe/point.h"
#include "probe/port_taint.h"
#include "probe/worst.h"

/* What a rank tells rank 0 about one size. */
struct record {
    int state; /* 0: took no part, 1: member, 2: first member, whose numbers count */
    char taint[TAINT_TEXT];
    struct port_said port;
    struct point point;
};

struct book {
    struct points_log *log; /* NULL on other ranks; the caller's */
    const struct topo *topo;
    int ranks;
    struct record *inbox; /* one a rank, to be gathered into; NULL on other ranks */
    struct worst worst;
    struct progress progress;
    double work_done, points; /* of the whole plan */
};

/* On every rank; book_close() frees. */
void book_open(struct book *b, struct points_log *log, const struct topo *topo,
               const struct plan *plan, int ranks);
void book_close(struct book *b);

/* A point of the round into the log. */
void book_keep(struct book *b, const struct round *r, struct point *p);
/* All of the inbox: the first member's record of each group, with the words of the member that saw
 * the trouble, or whose GPU or port suffered. */
void book_merge(struct book *b, const struct round *r, struct port_taint *ports);
/* By the time of the size before it: would a message of `bytes` take longer than max_run seconds?
 */
bool book_too_slow(const struct book *b, const struct round *r, int epoch, size_t bytes,
                   double max_run);
/* A size of the round is measured: the file holds it, the progress line shows it. */
int book_commit(struct book *b, const struct round *r, size_t bytes, struct err *err);
/* What is safe in the file, for the verdict's words; on any rank. */
void book_tell_kept(const struct book *b);

#endif
