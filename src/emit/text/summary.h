/* summary.h - one screen about a campaign: tiers, what stands out, collectives, predicted steps,
 * files. */
#ifndef RG_SUMMARY_H
#define RG_SUMMARY_H

#include <stdio.h>

#include "cost/matrix.h"

/* One predicted step, as a line of the summary; compute_source says what the compute rate rests on.
 */
struct summary_step {
    const char *model, *layout;
    double sec, lo, hi;
    double exposed;           /* share of the step that is communication nobody hides */
    double tokens_per_device; /* per second: layouts differ in batch, this compares them */
    const char *compute_source;
    bool fits; /* into the memory of a device */
};

void summary_print(FILE *out, const char *dir, const struct matrix *m,
                   const struct summary_step *step, int steps, const char *const *files,
                   int nfiles);

#endif
