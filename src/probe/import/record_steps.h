/* record_steps.h - the traffic of a recorded job, step by step: what its ranks really sent.
 *
 * A step is what repeats.  Each communicator's calls are in the same order every time, so its own
 * sequence of operations and sizes has a period; the longest in time of the communicators that
 * matter (RECORD_STEPS_SHARE of a process' time) is the step, or a longer one of another
 * communicator of which that is a whole part, up to RECORD_STEPS_PARTS: micro batches.  Steps are
 * cut where the longest pause lies. */
#ifndef RG_RECORD_STEPS_H
#define RG_RECORD_STEPS_H

#include "probe/import/record_job.h"

#define RECORD_STEPS_SHARE 0.02
enum { RECORD_STEPS_PARTS = 64 };

/* What is called alike on the groups of an axis, or sent between ranks so far apart. */
struct record_row {
    int axis; /* -1: messages from rank to rank + stride */
    int size, stride;
    bool inside; /* on one host */
    enum op op;
    uint64_t bytes;
    int algorithm, protocol, channels;
    int groups, calls;
    double count;   /* of one group in a step; without steps: in all */
    double sec;     /* of a step and group: from the last start to the last end */
    double waiting; /* of a step and rank: from its own start to the last */
    double proxies; /* of a step and rank: its proxies' waits for peer and network, summed over what
                       they have in flight; 0: not recorded */
    double overlap; /* share of sec beside other communicators; NAN: messages */
};

struct record_steps {
    int steps;          /* whole ones; 0: nothing repeats, counts are of all that was recorded */
    int comm;           /* whose calls tell them apart */
    int period;         /* of them in a step */
    double sec, lo, hi; /* of one: median and its 95 % interval */
    struct record_row *row; /* by time */
    int rows;
    int *row_of; /* of each kind; -1: none */
};

/* After record_clock_align(); overlap: record_points_overlap(). */
void record_steps_find(struct record_steps *s, const struct record_job *j, const float *overlap);
void record_steps_free(struct record_steps *s);
/* Bytes of a step from rank to rank, as railgauge place --traffic reads them: rings go to the next
 * rank, exchanges to each. */
int record_steps_save(const struct record_steps *s, const struct record_job *j, const char *path,
                      struct err *err);

#endif
