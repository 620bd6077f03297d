/* fit_compute.h - compute.tsv -> what the cost matrix says about devices on their own.
 *
 * A device is slow in a class of figures (products, memory, host link, latency) when the median of
 * its figures, each as a share of the median over devices, is more than 5 % (latency: 25 %) low and
 * lies outside of what the other devices scatter by (4 times their MAD, in standard deviations); of
 * two devices the faster one is the measure.  Slow devices become findings "slow_gpu" and stay out
 * of the medians; what all devices lack of the hardware's limit becomes a finding "below_limit".
 * Pure function of its inputs. */
#ifndef RG_FIT_COMPUTE_H
#define RG_FIT_COMPUTE_H

#include "cost/matrix.h"
#include "probe/gpu/device.h"

/* f: the preset whose peaks the shares refer to, or NULL.  A row of an endpoint that the matrix
 * does not have is refused (EXIT_DATA). */
int fit_compute(struct matrix *m, const struct device_table *t, const struct fabric *f,
                struct err *err);

#endif
