/* retest_impl.h - single pairs that are measured again (retest_pairs.c), for schedule_retest(). */
#ifndef RG_RETEST_IMPL_H
#define RG_RETEST_IMPL_H

#include "noise/noise.h"
#include "probe/plan.h"

/* How pairs are measured again. */
struct retest_how {
    enum stage stage;
    unsigned epochs;
    size_t bytes;
    int most; /* pairs that stood out */
};

/* Append rounds of one pair each: pairs that the judge suspects, then those that lie furthest below what
 * their two ends explain, and for each tier among them one pair that is as usual. */
void retest_pairs(struct plan *out, const struct noise_input *in, const struct noise *noise,
                  const struct retest_how *how);
/* Append a round with one group: a sends to b. */
void retest_add(struct plan *out, enum stage stage, enum op op, size_t bytes, unsigned epochs,
                const int (*pair)[2], int pairs);

#endif
