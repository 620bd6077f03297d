/* table.h - rows of typed cells, output as aligned columns, TSV or JSON; and wrapped paragraphs. */
#ifndef RG_TABLE_H
#define RG_TABLE_H

#include <jansson.h>
#include <stdio.h>

struct table_column {
    const char *key;  /* key in JSON; NULL: not in JSON */
    const char *head; /* head in text and TSV; NULL: not there */
    /* Type of the cells.
     * "text", "text?", "text!"  const char *; "text!" stands out (log_mark())
     * "figure"                  const char *, right-aligned
     * "count"                   int
     * "flag"                    int, true or false
     * "json"                    json_t *, ownership is taken, not in text
     * "bytes", "seconds", "rate", "exact" (nine digits, or inf), a format such as "%.2f"
     *                           double
     * "100*%.1f %%"             double, a share; in percent in text */
    const char *unit;
};

struct table {
    const struct table_column *column;
    int columns; /* columns in text */
    char **cell; /* NULL: unknown; the first row holds the heads */
    int cells;
    json_t *rows; /* array of objects */
};

/* The columns, up to {0}, must live as long as the table. */
void table_open(struct table *t, const struct table_column *column);
/* Add a row, one argument per column.  NULL, NAN, INFINITY (except "exact"), and a time or rate of
 * 0 are "-" in text and empty in TSV.  In JSON a NULL text is left out ("text?": null), and a
 * number that is not finite is null. */
void table_add(struct table *t, ...);

/* Width of the terminal behind a stream, else $COLUMNS, else 80. */
int table_width(FILE *out);
/* Print a paragraph, broken at blanks into lines of at most table_width(); all but the first begin
 * with `indent` blanks.  Widths count UTF-8 characters. */
void table_wrap(FILE *out, int indent, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* table_wrap() of each line of a text; further lines of a paragraph begin below its second column, which
 * two blanks or more separate from the first.  The text is modified. */
void table_wrap_lines(FILE *out, char *text);
/* table_wrap() of a line whose first `mark` characters stand out (log_mark()) if it needs one line. */
void table_wrap_marked(FILE *out, int indent, size_t mark, const char *line);
/* Print columns two spaces apart, after `indent` spaces, without blanks at the end of a line.
 * Columns unknown in all rows are left out; heads and texts are broken at blanks until a line is at
 * most table_width() wide.  Counts have commas: 2,307. */
void table_print(FILE *out, const struct table *t, int indent);
void table_tsv(FILE *out, const struct table *t);
/* Return the rows as a new reference and free the table. */
json_t *table_rows(struct table *t);
void table_free(struct table *t);

#endif
