/* point_impl.h - a row of points.tsv as text, for the log that appends them (points_log.c). */
#ifndef RG_POINT_IMPL_H
#define RG_POINT_IMPL_H

#include "probe/point.h"

enum { POINT_TEXT = 768 }; /* room for one row */

/* Its length, newline included. */
size_t point_row(char buf[POINT_TEXT], const struct point *p);
/* The names of its columns, newline included; the caller frees. */
char *points_header(void);

#endif
