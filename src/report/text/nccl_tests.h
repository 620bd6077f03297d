/* nccl_tests.h - print measured collectives as the table of nccl-tests.
 *
 * Layout: NVIDIA nccl-tests 2.19.6, src/util.cu (writeResultHeader, writeBenchmarkLineBody,
 * writeResultFooter): three header lines with '#', rows of 5 + 4 + 4 columns, "# Out of bounds
 * values" and "# Avg bus bandwidth" at the end; its JSON is version 2 of -J.  Times in us, rates in
 * GB/s (1e9 B/s).  The size is the largest buffer of one rank; the count is of 4-byte elements, per
 * rank if each rank owns a block.  A campaign measures one half, out of place or in place; the
 * columns of the other half are N/A, as in nccl-tests if an operation has no such form.  Process
 * ids are not known: 0. */
#ifndef RG_NCCL_TESTS_H
#define RG_NCCL_TESTS_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "measure/plan.h"
#include "measure/point.h"
#include "measure/transports/nccl_opts.h"
#include "topo/topo.h"

/* Facts about the measurement that points lack. */
struct nccl_tests_how {
    int warmup;
    /* NULL, or points of another transport: out of place, sums of uint32, else bytes */
    const struct nccl_opts *nccl;
};

/* Print one table for each group of each collective in p.  plan and topo name the devices and may
 * be NULL.  Sizes that failed are comment lines.  EXIT_DATA: no collective in p. */
int nccl_tests_print(FILE *out, const struct points *p, const struct plan *plan,
                     const struct topo *topo, const struct nccl_tests_how *how, struct err *err);

/* The same as the file that nccl-tests writes with -J, for one operation on its largest group (the
 * first, if several are equal).  op -1: all_reduce if measured, else the first measured.  when:
 * "2026-11-22 16:01:00" or NULL.  The run's environment is left out; unknown values are null.  A
 * new reference; NULL with EXIT_DATA: no such collective in p. */
json_t *nccl_tests_json(const struct points *p, const struct plan *plan, const struct topo *topo,
                        const struct nccl_tests_how *how, int op, const char *when,
                        struct err *err);

/* --- epochs ---
 *
 * Merge the epochs of a campaign's points.
 *
 * One entry per (round, group, size): the median of the epoch medians.  With one epoch the interval
 * is the 95 % interval of its median.  With more epochs it is the range of the epoch medians, which
 * is wider than any single interval if the fabric drifts. */

struct epochs_point {
    const struct point *first; /* point of the first epoch, for op, stage, group and members */
    size_t bytes;
    double sec, lo, hi; /* NAN: no epoch succeeded */
    int samples, epochs;
    int checked, wrong; /* epochs with verified data; epochs with wrong data */
};

/* Sorted by (round, group, bytes).  Returns the count.  The caller frees *out; p must live as
 * long. */
int epochs_merge(struct epochs_point **out, const struct points *p);

#endif
