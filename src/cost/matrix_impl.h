/* matrix_impl.h - matrix.json: what its readers and writers share. */
#ifndef RG_MATRIX_IMPL_H
#define RG_MATRIX_IMPL_H

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "cost/json_member.h"
#include "cost/matrix.h"

/* "m.json: tiers[2].curves.uni": the place of a value in a file, for messages.  Longer places are
 * cut; returns buf. */
__attribute__((format(printf, 2, 3))) static inline char *where_at(char buf[JSON_WHERE],
                                                                   const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, JSON_WHERE, fmt, ap);
    va_end(ap);
    return buf;
}

/* --- "places", the topology: hosts as host lists, coordinates per level, devices and NICs as runs.
 * Bus ids and the hosts' hardware stay in topology.json. --- */

enum { PLACES_MAX = 1 << 20 }; /* endpoints, hosts, groups of a level, NICs */

json_t *places_pack(const struct topo *t); /* new reference; tiers are not included */
/* t is initialised here; free it also after a failure. */
int places_unpack(struct topo *t, json_t *places, enum matrix_depth depth, const char *where,
                  struct err *err);

/* --- "seen" (matrix.c) --- */

int seen_read(void *matrix, json_t *value, const char *where, struct err *err);
json_t *seen_write(const struct matrix *m, int i); /* new reference */

/* --- rows: long lists of small integers that repeat from host to host, as short JSON.
 *
 * A list is cut into rows of equal length (the endpoints of one host).  Consecutive rows that are equal, or
 * that grow by a constant, become one run [rows, value or [values of the first row], step].  100,000
 * coordinates of 25,000 hosts in 1,389 racks become 1,389 runs of racks and one run of hosts. --- */

json_t *rows_pack(const int *v, int n, int row); /* row divides n; new reference */
/* Read exactly n values, each in min..max; `where` names the list in messages. */
int rows_unpack(int *v, int n, int row, json_t *list, const char *where, int min, int max,
                struct err *err);

#endif
