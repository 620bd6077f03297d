/* table.h - aligned columns of text. */
#ifndef RG_TABLE_H
#define RG_TABLE_H

#include <stdio.h>

struct table {
    int columns;
    const char *align; /* one letter a column: 'l' or 'r' */
    char **cell;
    int cells;
};

void table_init(struct table *t, const char *align); /* align must live as long */
/* One row: as many strings as there are columns; NULL is shown as "-". */
void table_row(struct table *t, ...);
/* Columns two spaces apart, `indent` spaces before, nothing after the last column's text.  UTF-8
 * counts by character. */
void table_print(FILE *out, const struct table *t, int indent);
void table_free(struct table *t);

#endif
