/* topo_table_impl.h - tables of topology.json, {"columns": [...], "rows": [[...], ...]}.  One list of
 * columns serves both to write and to read rows. */
#ifndef RG_TOPO_TABLE_H
#define RG_TOPO_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum { TABLE_ROWS_MAX = 1 << 20 };

struct topo_table;

/* Content of a cell, with the type of its member. */
enum topo_cell {
    /* int: row number in another table; max selects the table (topo_row_load()). */
    CELL_PARENT,
    CELL_PARENT_OR_NULL, /* the same; null: -1 */
    CELL_INDEX,          /* int from 0 */
    CELL_INDEX_OR_NULL,  /* the same; null: -1 */
    CELL_COUNT,          /* int; null: 0 */
    CELL_LONG_OR_NULL,   /* long long from 0; null: -1 */
    CELL_BYTES,          /* long long from 0 */
    CELL_FLAG,           /* bool */
    CELL_MAYBE,          /* int: true 1, false 0, null -1 */
    CELL_NUMBER,         /* double above 0; null: 0 */
    CELL_AMOUNT,         /* the same, written without a decimal point if whole */
    CELL_WORD,           /* enum, or int */
    CELL_WORD_OR_NULL,   /* the same; null: -1 */
    CELL_NAME,           /* char [], not empty */
    CELL_TEXT,           /* char []; null: "" */
    CELL_STRING,         /* char *, owned */
    CELL_STRING_OR_NULL, /* the same; null: NULL */
    CELL_HEX,            /* uint64_t as "0x1f" */
    CELL_GUID,           /* uint64_t, 16 digits after 0x; null: 0 */
    CELL_OTHER           /* written and read by the column's functions, if any */
};

struct topo_column {
    const char *name;
    enum topo_cell cell;
    size_t at; /* offset of the member */
    /* First number too large (CELL_NUMBER: largest allowed); size of a text; number of words. */
    double max;
    const char *const *words;
    /* CELL_OTHER only; object is the whole row.  out() returns a new reference; NULL: null. */
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

/* Format of written values. */
#define TOPO_JSON (JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))
json_t *topo_row(const struct topo_column *c, int columns, const void *object); /* new reference */
void topo_row_put(FILE *f, const struct topo_column *c, int columns, const void *object);
/* Set every member of these columns to the value that null stands for. */
void topo_row_null(const struct topo_column *c, int columns, void *object);
/* Read the row into object.  parents[max of a column]: number of rows in the table it refers to. */
int topo_row_load(const struct topo_table *b, const int *parents, void *object);

/* --- in --- */

/* Table while its rows are read.  Messages are composed only when an error occurs. */
struct topo_table {
    const char *path, *name;
    const struct topo_column *column;
    int columns;
    json_t *rows, *row;
    size_t at;
    int last; /* see topo_table_rises(); initially -1 */
    struct err *err;
};

/* Check columns and rows of {"columns": [...], "rows": [...]}.  path and err must outlive b. */
int topo_table_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                    const struct topo_column *column, int columns, struct err *err);
/* Advance b->row to the next row.  Returns 0 after the last, or if *rc is or becomes -1. */
int topo_table_next(struct topo_table *b, int *rc);
/* Check that number, from the first column, exceeds that of the row before; else cell_bad(what). */
int topo_table_rises(struct topo_table *b, int number, const char *what);
/* Report "PATH: NAME.rows[17]: COLUMN is VALUE, what"; returns -1. */
int cell_bad(const struct topo_table *b, int col, const char *what);
/* Whole number of 0..max-1; null, if allowed, gives -1. */
int cell_index(const struct topo_table *b, int col, int max, bool null, int *out);
/* *out borrows from the row; null gives NULL. */
int cell_text(const struct topo_table *b, int col, size_t max, bool null, const char **out);
int cell_name(const struct topo_table *b, int col, const char *const *names, int count, int *out);
/* Index of a text among words; -1: not one of them, or not a text. */
int topo_word(const char *const *words, int count, const json_t *text);
json_t *topo_text_json(const char *text); /* new reference; NULL and "" give null */

#endif
