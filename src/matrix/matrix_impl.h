/* matrix_impl.h - matrix.json: what its readers and writers share. */
#ifndef RG_MATRIX_IMPL_H
#define RG_MATRIX_IMPL_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "matrix/matrix.h"

/* --- an object of a file as a table of its members: one row reads a member into a struct, names what is wrong with
 * it, and writes it (json_member.c) --- */

enum { MEMBERS_MAX = 32 }; /* rows of an object */
enum { JSON_WHERE = 256 }; /* places in messages; longer ones are cut */

/* Reader of a value that no row describes, into the struct of the rows. */
typedef int json_read_fn(void *whole, json_t *value, const char *where, struct err *err);

enum member_kind {
    MEMBER_INT,    /* int or enum */
    MEMBER_COUNT,  /* a whole number in a double */
    MEMBER_NUMBER, /* double within min..max */
    MEMBER_FLAG,   /* bool */
    MEMBER_TEXT,   /* char *, owned */
    MEMBER_LOANED, /* const char *, as long as the JSON lives */
    MEMBER_NAME,   /* char[room], not empty */
    MEMBER_WORD,   /* int or enum: index into word[], by find() where there is one */
    MEMBER_OBJECT, /* read by members[] of the struct there (without `at`: of this one) */
    MEMBER_PART    /* read by read() and write(), which returns a new reference */
};

struct json_member {
    const char *key; /* NULL ends a table */
    enum member_kind kind;
    size_t at; /* offsetof() */
    bool optional;
    double absent; /* value of an optional number that is absent; it is not written */
    double min, max;
    size_t room;
    const char *const *word;
    int words;
    int (*find)(const char *text); /* -1: no such word */
    const char *what;              /* kind of word, for messages: "felt" is no WHAT */
    const struct json_member *members;
    json_read_fn *read;
    json_t *(*write)(const void *whole);
    bool (*when)(const void *whole); /* when it is written; NULL: as said above */
};

/* A row of a struct's member; the words of an array. */
#define JSON_ROW(name, KIND, type, member, ...)                                                    \
    {                                                                                              \
        .key = (name), .kind = MEMBER_##KIND, .at = offsetof(type, member), __VA_ARGS__            \
    }

#define JSON_WORDS(names) .word = (names), .words = sizeof(names) / sizeof(*(names))

/* Other keys are errors, as those of json_take() are.  Texts that were read are the caller's also
 * after an error: *whole began as zeros. */
int json_read(json_t *object, const char *where, const struct json_member *members, void *whole,
              struct err *err);
/* New reference; NULL: a text is not UTF-8. */
json_t *json_write(const struct json_member *members, const void *whole);
/* Each item of a list, its place being "where[2]". */
int json_each(json_t *list, const char *where, json_read_fn *read, void *whole, struct err *err);

/* --- places of values in messages --- */

/* "m.json: tiers[2].curves.uni": the place of a value in a file, for messages.  Longer places are
 * cut; returns buf. */
__attribute__((format(printf, 2, 3))) static inline char *where_at(char buf[JSON_WHERE],
                                                                   const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, JSON_WHERE, fmt, ap);
    va_end(ap);
    return buf;
}

/* --- "places", the topology: hosts as host lists, coordinates per level, devices and NICs as runs.
 * Bus ids and the hosts' hardware stay in topology.json. --- */

enum { PLACES_MAX = 1 << 20 }; /* endpoints, hosts, groups of a level, NICs */

json_t *places_pack(const struct topo *t); /* new reference; tiers are not included */
/* t is initialised here; free it also after a failure. */
int places_unpack(struct topo *t, json_t *places, enum matrix_depth depth, const char *where,
                  struct err *err);

/* --- "seen" (matrix.c) --- */

int seen_read(void *matrix, json_t *value, const char *where, struct err *err);
json_t *seen_write(const struct matrix *m, int i); /* new reference */

/* --- rows: long lists of small integers that repeat from host to host, as short JSON.
 *
 * A list is cut into rows of equal length (the endpoints of one host).  Consecutive rows that are equal, or
 * that grow by a constant, become one run [rows, value or [values of the first row], step].  100,000
 * coordinates of 25,000 hosts in 1,389 racks become 1,389 runs of racks and one run of hosts. --- */

json_t *rows_pack(const int *v, int n, int row); /* row divides n; new reference */
/* A list of such runs: rows of `row` values, each in min..max. */
struct rows {
    json_t *list;
    int row, min, max;
};
/* Read exactly n values; `where` names the list in messages. */
int rows_unpack(int *v, int n, const struct rows *r, const char *where, struct err *err);

#endif
