/* nccl_tests.h - measured collectives as the table that nccl-tests prints.
 *
 * Layout: NVIDIA nccl-tests 2.19.6, src/util.cu (writeResultHeader, writeBenchmarkLineBody,
 * writeResultFooter): three header lines with '#', rows of 5 + 4 + 4 columns, "# Out of bounds
 * values" and "# Avg bus bandwidth" at the end; its JSON is version 2 of -J.  Times in us, rates in GB/s (1e9 B/s); the size is
 * the largest buffer of one rank, the count is of 4-byte elements, per rank where each rank owns a
 * block. A campaign measures one half, out of place or in place; the other one's columns say N/A,
 * the word that nccl-tests uses where an operation has no such form.  Process ids are not known: 0.
 */
#ifndef RG_NCCL_TESTS_H
#define RG_NCCL_TESTS_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/plan.h"
#include "probe/point.h"
#include "topo/topo.h"

/* What the points do not say: how they were measured. */
struct nccl_tests_how {
    int warmup;
    const struct nccl_opts *nccl; /* NULL, or points of another transport: out of place, sums of
                                   * uint32, else bytes */
};

/* One table for each group of each collective in p.  plan and topo name the devices and may be
 * NULL. Sizes that failed are comment lines.  No collective in p: EXIT_DATA. */
int nccl_tests_print(FILE *out, const struct points *p, const struct plan *plan,
                     const struct topo *topo, const struct nccl_tests_how *how, struct err *err);

/* The same as the file that nccl-tests writes with -J: of one operation, that is of the largest of
 * its groups, the first of equal ones.  op -1: all_reduce where it was measured, else the first that
 * was.  when: "2026-11-22 16:01:00" or NULL.  The run's environment is not told, what a campaign does
 * not know is null.  New reference; NULL with EXIT_DATA: no such collective in p. */
json_t *nccl_tests_json(const struct points *p, const struct plan *plan, const struct topo *topo,
                        const struct nccl_tests_how *how, int op, const char *when,
                        struct err *err);

#endif
