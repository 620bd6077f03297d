/* rows.h - long lists of small integers that repeat from host to host, as short JSON.
 *
 * A list is cut into rows of equal length (the endpoints of one host); consecutive rows that are
 * equal, or that grow by a constant, become one run [rows, value or [values of the first row],
 * step].  100,000 coordinates of 25,000 hosts in 1,389 racks become 1,389 runs of racks and one run
 * of hosts. */
#ifndef RG_ROWS_H
#define RG_ROWS_H

#include <jansson.h>

#include "base/err.h"

/* The row length for a list whose i-th item belongs to owner[i]: items per owner where owners come
 * in blocks of one size, else 1. */
int rows_length(const int *owner, int n);
json_t *rows_pack(const int *v, int n, int row); /* row divides n; new reference */
/* Exactly n values, each in min..max; `where` names the list in messages. */
int rows_unpack(int *v, int n, int row, json_t *list, const char *where, int min, int max,
                struct err *err);

#endif
