/* campaigns.h - the directories of campaigns that are looked at together: what compare, plot and the
 * page ask of history. */
#ifndef RG_CAMPAIGNS_H
#define RG_CAMPAIGNS_H

#include "cmd/input.h"
#include "verdict/figure.h"

struct campaigns {
    struct campaign *campaign; /* as given; point into what follows */
    int count;
    struct opened_campaign *opened;
};

/* Matrix and points of each, its topology (else that of the matrix), its plan where it fits the points,
 * and when its points were begun.  What is no campaign's directory is EXIT_DATA where `measured`; else
 * it may also be a matrix or the name of a preset, and points NULL.  campaigns_free() in any case. */
int campaigns_open(struct campaigns *c, const char *const *dir, int dirs, bool measured,
                   struct err *err);
void campaigns_free(struct campaigns *c);

#endif
