/* record_steps.h - traffic of a recorded job per training step: what its ranks really sent.
 *
 * Steps are found by repetition.  The calls of each communicator have the same order in every step,
 * so the sequence of its operations and sizes has a period.  The step is the longest period, in
 * time, of the communicators that matter (RECORD_STEPS_SHARE of a process' time), or a longer
 * period of another communicator that is a multiple of it, up to RECORD_STEPS_PARTS: micro
 * batches.  Steps are cut at the longest pause. */
#ifndef RG_RECORD_STEPS_H
#define RG_RECORD_STEPS_H

#include "record/record_job.h"

#define RECORD_STEPS_SHARE 0.02
enum { RECORD_STEPS_PARTS = 64 };

/* Equal calls on the groups of an axis, or messages between ranks at the same distance. */
struct record_row {
    int axis; /* -1: messages from rank to rank + stride */
    int size, stride;
    bool inside; /* the group is on one host */
    enum op op;
    uint64_t bytes;
    int algorithm, protocol, channels;
    int groups, calls;
    double count;   /* calls per group and step; without steps: total */
    double sec;     /* s per step and group, from the last start to the last end */
    double waiting; /* s per step and rank, from its own start to the last */
    /* s per step and rank: waits of its proxies for peer and network, summed over all in flight; 0:
     * not recorded */
    double proxies;
    double overlap; /* share of sec under load of other communicators; NAN: messages */
};

struct record_steps {
    int steps;              /* complete steps; 0: no repetition, counts are totals */
    int comm;               /* communicator whose calls define the steps */
    int period;             /* number of these calls per step */
    double sec, lo, hi;     /* time of a step, s: median and its 95 % interval */
    struct record_row *row; /* sorted by time */
    int rows;
    int *row_of; /* row of each kind; -1: none */
};

/* Call after record_clock_align().  overlap: from record_points_overlap(). */
void record_steps_find(struct record_steps *s, const struct record_job *j, const float *overlap);
void record_steps_free(struct record_steps *s);
/* Write the bytes per step from rank to rank, as read by railgauge place --traffic: rings send to
 * the next rank, exchanges to all. */
int record_steps_save(const struct record_steps *s, const struct record_job *j, const char *path,
                      struct err *err);

#endif
