/* sent.h - the messages that predict counts on beside those that a job recorded, of one step.
 *
 * Predicted messages of the same operation, group and size are one.  Recorded ones of that operation
 * on groups of as many ranks at the same distance belong to it: of the same size (SENT_ALIKE), else
 * all that no predicted size takes. */
#ifndef RG_SENT_H
#define RG_SENT_H

#include "probe/import/record_steps.h"
#include "step/traffic.h"

#define SENT_ALIKE 0.01

enum sent_is { SENT_SAME, SENT_COUNT, SENT_SIZES, SENT_NOT, SENT_MORE };
extern const char *const sent_name[];

struct sent_row {
    enum sent_is is;
    const char *label; /* of the first predicted message; NULL: none is */
    enum op op;
    struct span span;
    double bytes, count;           /* predicted: S of one, how many a step */
    double sent_bytes, sent_count; /* recorded: mean S of one */
    int sizes;                     /* that were recorded */
};

struct sent {
    struct sent_row *row;
    int rows;
};

void sent_compare(struct sent *s, const struct traffic *t, const struct record_steps *steps);
void sent_free(struct sent *s);

#endif
