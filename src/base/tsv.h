/* tsv.h - strict reader of tab-separated tables with a header line.
 *
 * Lines that begin with '#' are comments and are kept in `comment`.  Every error names file and
 * line (EXIT_DATA).  Cells point into the text; the table owns everything until tsv_free(). */
#ifndef RG_TSV_H
#define RG_TSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tsv_row {
    int line; /* line in the file, from 1 */
    char **cell;
};

struct tsv {
    char *path, *text;
    char **name; /* column names */
    int columns;
    struct tsv_row *row;
    int rows;
    char **comment;
    int comments;
    char **cells; /* storage behind row[].cell */
};

/* Refuse control characters other than tabs: they steer terminals, and a NUL hides the rest. */
int tsv_clean(const char *path, int line, const char *text, size_t len, struct err *err);

int tsv_load(struct tsv *t, const char *path, struct err *err);
/* Like tsv_load(), from memory.  Takes ownership of text, always; path is used in messages. */
int tsv_parse(struct tsv *t, const char *path, char *text, struct err *err);
void tsv_free(struct tsv *t);

int tsv_column(const struct tsv *t, const char *name,
               struct err *err);                     /* index, or -1 with a message */
int tsv_find(const struct tsv *t, const char *name); /* index, or -1 */

/* Numeric cells; messages name file, line, column and value. */
int tsv_double(const struct tsv *t, int row, int col, double min, double max, double *out,
               struct err *err);
int tsv_int(const struct tsv *t, int row, int col, int min, int max, int *out, struct err *err);
int tsv_size(const struct tsv *t, int row, int col, size_t *out, struct err *err);

#endif
