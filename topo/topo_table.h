/* topo_table.h - tables of topology.json, {"columns": [...], "rows": [[...], ...]}: one list of columns
 * serves for writing rows and for reading them. */
#ifndef RG_TOPO_TABLE_H
#define RG_TOPO_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum { TABLE_ROWS_MAX = 1 << 20 };

struct topo_table;

/* What a cell holds, by the type of the member. */
enum topo_cell {
    CELL_PARENT, /* int: number of a row of another table; max: of which (topo_row_load()) */
    CELL_PARENT_OR_NULL, /* null: -1 */
    CELL_INDEX,          /* int from 0 */
    CELL_INDEX_OR_NULL,  /* null: -1 */
    CELL_COUNT,          /* int; null: 0 */
    CELL_LONG_OR_NULL,   /* long long from 0; null: -1 */
    CELL_BYTES,          /* long long from 0 */
    CELL_FLAG,           /* bool */
    CELL_MAYBE,          /* int: true 1, false 0, null -1 */
    CELL_NUMBER,         /* double above 0; null: 0 */
    CELL_AMOUNT,         /* the same, written without a point where it is whole */
    CELL_WORD,           /* enum, or int */
    CELL_WORD_OR_NULL,   /* null: -1 */
    CELL_NAME,           /* char [], not empty */
    CELL_TEXT,           /* char []; null: "" */
    CELL_STRING,         /* char *, owned */
    CELL_STRING_OR_NULL, /* null: NULL */
    CELL_HEX,            /* uint64_t as "0x1f" */
    CELL_GUID,           /* uint64_t of 16 digits behind 0x; null: 0 */
    CELL_OTHER           /* written and read by the functions of its column, if any */
};

struct topo_column {
    const char *name;
    enum topo_cell cell;
    size_t at; /* of the member */
    double
        max; /* the first number too large, of CELL_NUMBER the last possible; bytes of a text; words */
    const char *const *words;
    /* CELL_OTHER, of the whole object; out: new reference, NULL: null. */
    json_t *(*out)(const void *object);
    int (*in)(const struct topo_table *b, int col, void *object);
};
#define TOPO_COLUMN(name, cell, of, member, max)                                                   \
    {                                                                                              \
        name, cell, offsetof(of, member), max, NULL, NULL, NULL                                    \
    }
#define TOPO_COLUMN_TEXT(name, of, member)                                                         \
    TOPO_COLUMN(name, CELL_TEXT, of, member, sizeof(((of *)0)->member))
#define TOPO_COLUMN_WORD(name, of, member, words)                                                  \
    {                                                                                              \
        name, CELL_WORD, offsetof(of, member), sizeof(words) / sizeof(*(words)), words, NULL, NULL \
    }
#define TOPO_COLUMN_OTHER(name, out, in)                                                           \
    {                                                                                              \
        name, CELL_OTHER, 0, 0, NULL, out, in                                                      \
    }

/* --- out --- */

/* How values are written. */
#define TOPO_JSON (JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))
json_t *topo_row(const struct topo_column *c, int columns, const void *object); /* new reference */
void topo_row_put(FILE *f, const struct topo_column *c, int columns, const void *object);
/* What null stands for, in all members that a column speaks of. */
void topo_row_null(const struct topo_column *c, int columns, void *object);
/* parents[max of a column]: how many rows the table has that it speaks of. */
int topo_row_load(const struct topo_table *b, const int *parents, void *object);

/* --- in --- */

/* One table while its rows are read; the place is put into words only when something is wrong. */
struct topo_table {
    const char *path, *name;
    const struct topo_column *column;
    int columns;
    json_t *rows, *row;
    size_t at;
    int last; /* see topo_table_rises(); at first -1 */
    struct err *err;
};

/* Checks columns and rows of {"columns": [...], "rows": [[...], ...]}; path and err are kept. */
int topo_table_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                    const struct topo_column *column, int columns, struct err *err);
/* The next row into b->row; 0 when there is none, or when *rc is or becomes -1. */
int topo_table_next(struct topo_table *b, int *rc);
/* The number in this row's first column is larger than in the row before; else cell_bad(what). */
int topo_table_rises(struct topo_table *b, int number, const char *what);
/* "PATH: NAME.rows[17]: COLUMN is VALUE, what"; returns -1. */
int cell_bad(const struct topo_table *b, int col, const char *what);
/* A whole number of 0..max-1; where null is allowed it gives -1. */
int cell_index(const struct topo_table *b, int col, int max, bool null, int *out);
/* *out borrows from the row; null gives NULL. */
int cell_text(const struct topo_table *b, int col, size_t max, bool null, const char **out);
int cell_name(const struct topo_table *b, int col, const char *const *names, int count, int *out);
/* The number of a text among words; -1: it is none of them, or no text. */
int topo_word(const char *const *words, int count, const json_t *text);
json_t *topo_text_json(const char *text); /* null for NULL and ""; new reference */

#endif
