/* table.h - rows of typed cells, said once: aligned columns for people, TSV and JSON for programs. */
#ifndef RG_TABLE_H
#define RG_TABLE_H

#include <jansson.h>
#include <stdio.h>

struct table_column {
    const char *key;  /* in JSON; NULL: not there */
    const char *head; /* in text and TSV; NULL: not there */
    /* What a cell is.  "text", "text?", "text!" (which stands out: log_mark()) and, on the right, "figure": const char *; "count": int; "flag": an int
     * that is true or false; "json": json_t *, taken over, not in text; double: "bytes", "seconds",
     * "rate", "exact" (nine digits, or inf), a format such as "%.2f", and "100*%.1f %%" of a share
     * that text has in percent. */
    const char *unit;
};

struct table {
    const struct table_column *column;
    int columns; /* of text */
    char **cell; /* NULL: nothing is known; the first row is the heads */
    int cells;
    json_t *rows; /* array of objects */
};

/* Columns up to {0} live as long as the table. */
void table_open(struct table *t, const struct table_column *column);
/* One row, a cell a column.  NULL, what is no number and a time or rate of 0 are "-" in text and
 * empty in TSV; in JSON a text that is NULL is left out (null of "text?"), and what is no number is null. */
void table_add(struct table *t, ...);

/* Columns two spaces apart, `indent` spaces before, nothing after the last column's text.  UTF-8
 * counts by character. */
void table_print(FILE *out, const struct table *t, int indent);
void table_tsv(FILE *out, const struct table *t);
/* Freed; its rows, new reference. */
json_t *table_rows(struct table *t);
void table_free(struct table *t);

#endif
