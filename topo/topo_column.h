/* topo_column.h - a table of topology.json by one list of its columns, for writing its rows and for
 * reading them. */
#ifndef RG_TOPO_COLUMN_H
#define RG_TOPO_COLUMN_H

#include <jansson.h>
#include <stddef.h>

struct err;
struct topo_table;

enum { TOPO_COLUMNS_MAX = 40 }; /* of a table */

/* What a cell holds, by the type of the member. */
enum topo_cell {
    CELL_PARENT,         /* int: index of a row of another table */
    CELL_PARENT_OR_NULL, /* null: -1 */
    CELL_INDEX,          /* int from 0 */
    CELL_INDEX_OR_NULL,  /* null: -1 */
    CELL_COUNT,          /* int; null: 0 */
    CELL_BYTES,          /* long long from 0 */
    CELL_LONG_OR_NULL,   /* long long from 0; null: -1 */
    CELL_FLAG,           /* bool */
    CELL_MAYBE,          /* int: true 1, false 0, null -1 */
    CELL_NUMBER,         /* double above 0; null: 0 */
    CELL_WORD,           /* enum, or int */
    CELL_WORD_OR_NULL,   /* null: -1 */
    CELL_TEXT,           /* char []; null: "" */
    CELL_HEX,            /* uint64_t as "0x1f" */
    CELL_GUID,           /* uint64_t of 16 digits behind 0x; null: 0 */
    CELL_OTHER           /* the caller's: written as null, not read */
};

struct topo_column {
    const char *name;
    enum topo_cell cell;
    size_t at; /* of the member */
    double
        max; /* the first number too large, of CELL_NUMBER the last possible; bytes of a text; words */
    const char *const *words;
};
#define TOPO_COLUMN(name, cell, of, member, max)                                                   \
    {                                                                                              \
        name, cell, offsetof(of, member), max, NULL                                                \
    }
#define TOPO_COLUMN_TEXT(name, of, member)                                                         \
    {                                                                                              \
        name, CELL_TEXT, offsetof(of, member), sizeof(((of *)0)->member), NULL                     \
    }
#define TOPO_COLUMN_WORD(name, of, member, words)                                                  \
    {                                                                                              \
        name, CELL_WORD, offsetof(of, member), sizeof(words) / sizeof(*(words)), words             \
    }

json_t *topo_row(const struct topo_column *c, int columns, const void *object); /* new reference */
/* parents: how many rows the other table has. */
int topo_row_load(const struct topo_table *b, const struct topo_column *c, int columns, int parents,
                  void *object);
void topo_column_names(const char **name, const struct topo_column *c, int columns);
/* As topo_table_open(). */
int topo_columns_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                      const struct topo_column *c, int columns, struct err *err);
/* {"columns": [...], "rows": []}; *rows is borrowed. */
json_t *topo_table_json(const struct topo_column *c, int columns, json_t **rows);

#endif
