/* campaigns_impl.h - several campaign directories, opened together: input of compare, plot and the page
 * for a history. */
#ifndef RG_CAMPAIGNS_H
#define RG_CAMPAIGNS_H

#include "cmd/input_impl.h"
#include "verdict/history.h"

struct campaigns {
    struct campaign *campaign; /* in the given order; point into the rest */
    int count;
    struct opened_campaign *opened;
};

/* Open each directory: matrix and points, topology (else that of the matrix), plan if it fits the
 * points, and the start time of the points.  A path that is not a campaign directory is EXIT_DATA
 * if `measured`; else it may also be a matrix or the name of a preset, with points NULL.  Call
 * campaigns_free() in any case. */
int campaigns_open(struct campaigns *c, const char *const *dir, int dirs, bool measured,
                   struct err *err);
void campaigns_free(struct campaigns *c);

#endif
