/* point_io.h - the text of a row, shared by point.c (reading) and points_log.c (appending). */
#ifndef RG_POINT_IO_H
#define RG_POINT_IO_H

#include "probe/point.h"

enum { POINT_TEXT = 768 }; /* room for one row */
void point_write_header(FILE *out);
int point_format(char *buf, size_t room, const struct point *p); /* length, newline included */

#endif
