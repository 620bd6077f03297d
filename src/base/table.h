/* table.h - rows of typed cells, as aligned columns of text and as JSON. */
#ifndef RG_TABLE_H
#define RG_TABLE_H

#include <jansson.h>
#include <stdio.h>

struct table_column {
    const char *key;  /* in JSON; NULL: only in text */
    const char *head; /* in text; NULL: not there */
    const char *unit; /* "text": of const char *; "count": of int; "bytes", "seconds", "rate" or a
                         format, "%.2f": of double */
};

struct table {
    const struct table_column *column;
    int columns; /* of text */
    char *align; /* a letter each: 'l' or 'r' */
    char **cell;
    int cells;
    json_t *rows; /* array of objects, as table_add() makes them */
};

/* Columns up to {0} live as long as the table; heads are its first line. */
void table_open(struct table *t, const struct table_column *column);
/* One row, a cell a column.  NULL, what is no number and a time or rate of 0 are "-" in text; in
 * JSON a text that is NULL is left out, and what is no number is null. */
void table_add(struct table *t, ...);
/* Rows of text alone, one letter a column: 'l' or 'r'. */
void table_init(struct table *t, const char *align);
/* One row: as many strings as there are columns; NULL is shown as "-". */
void table_row(struct table *t, ...);

/* Columns two spaces apart, `indent` spaces before, nothing after the last column's text.  UTF-8
 * counts by character. */
void table_print(FILE *out, const struct table *t, int indent);
void table_free(struct table *t);

#endif
