/* sent.h - messages of one step as `predict` counts them, compared with those that a job recorded.
 *
 * Predicted messages of the same operation, group and size form one row.  Recorded messages of the
 * same operation on groups of the same number of ranks and stride are added to it if their size
 * agrees (SENT_ALIKE).  A row that no recorded size matches takes all sizes that are left. */
#ifndef RG_SENT_H
#define RG_SENT_H

#include "record/record_steps.h"
#include "step/traffic.h"
#include <stdlib.h>
#include <string.h>

#define SENT_ALIKE 0.01

enum sent_is { SENT_SAME, SENT_COUNT, SENT_SIZES, SENT_NOT, SENT_MORE };
extern const char *const sent_name[];

struct sent_row {
    enum sent_is is;
    const char *label; /* label of the first predicted message; NULL: none predicted */
    enum op op;
    struct span span;
    double bytes, count;           /* predicted: bytes of one message, messages per step */
    double sent_bytes, sent_count; /* recorded: mean bytes of one message, messages per step */
    int sizes;                     /* number of recorded sizes */
};

struct sent {
    struct sent_row *row;
    int rows;
};

void sent_compare(struct sent *s, const struct traffic *t, const struct record_steps *steps);
static inline void sent_free(struct sent *s)
{
    free(s->row);
    memset(s, 0, sizeof(*s));
}

#endif
