/* recording_columns.h - the columns of the table that nccl-tests prints: which holds what, and a
 * row read by them.  For recording_text.c. */
#ifndef RG_RECORDING_COLUMNS_H
#define RG_RECORDING_COLUMNS_H

#include "probe/import/recording.h"

/* What a column holds; from COLUMN_TIME on they come twice, out of place first. */
enum column {
    COLUMN_SIZE,
    COLUMN_COUNT,
    COLUMN_TYPE,
    COLUMN_REDOP,
    COLUMN_ROOT,
    COLUMN_TIME,
    COLUMN_ALGBW,
    COLUMN_BUSBW,
    COLUMN_WRONG,
    COLUMN_LEAST,
    COLUMN_MOST,
    COLUMNS
};

struct columns {
    int at[2][COLUMNS]; /* of each kind in each half, -1: none */
    int words;          /* of a row */
};

/* From "size count type ..." on this line of r; text is cut up. */
int columns_read(struct columns *c, const struct recording *r, int line, char *text,
                 struct err *err);
/* A line below the names into *row, whose `line` is set; its times are means of `iters`.  1: it is
 * a row; 0: it does not begin with two whole numbers, -1: it does and is wrong.  text is cut up. */
int columns_row(const struct columns *c, struct recording_row *row, const struct recording *r,
                int iters, char *text, struct err *err);
/* Words of a line into at most `max` of word[]; how many there are. */
int columns_split(char *text, char **word, int max);

#endif
