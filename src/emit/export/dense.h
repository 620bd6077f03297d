/* dense.h - every pair's number in the formats of numeric tools: Matrix Market, NumPy, a long
 * table.
 *
 * Rows are sources, columns destinations, in rank order.  Units are SI (bytes/s, s); the table has
 * the units of people (us, GB/s) in its header.  Without --bytes messages are 64 MiB.
 * The numbers of `railgauge cost`: bandwidth = bytes / time.  A dead pair takes for ever (inf) and
 * has bandwidth 0; a pair that is not known is nan, and refused by Matrix Market. */
#ifndef RG_DENSE_H
#define RG_DENSE_H

#include "emit/export/export.h"

/* Files of 8 GiB for npy, some GiB of text for the others. */
enum { DENSE_NPY_MAX = 32768, DENSE_TEXT_MAX = 8192 };

/* %%MatrixMarket matrix coordinate real general (math.nist.gov/MatrixMarket/formats.html): pairs of
 * bandwidth 0 and the diagonal are left out; names in comments.  EXIT_DATA: unknown pairs, and dead
 * ones unless bandwidth is asked for. */
int dense_matrix_market(FILE *out, FILE *second, const struct matrix *m,
                        const struct export_ask *ask, struct err *err);
/* NumPy .npy version 1.0 (numpy/lib/format.py), '<f8', C order.  Diagonal: 0 s, bandwidth nan. */
int dense_npy(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err);
/* src dst op bytes us GB/s; op is "pair", as `railgauge cost --json` calls it. */
int dense_tsv(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err);

#endif
