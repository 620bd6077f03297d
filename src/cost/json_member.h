/* json_member.h - an object of a file as a table of its members: one row reads a member into a
 * struct, names what is wrong with it, and writes it. */
#ifndef RG_JSON_MEMBER_H
#define RG_JSON_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { MEMBERS_MAX = 32 }; /* of an object */
enum { JSON_WHERE = 256 }; /* places in messages; longer ones are cut */

/* What is made of a value that no row describes, into the struct that the rows are of. */
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
    MEMBER_OBJECT, /* by members[] of the struct there (without `at`: of this one) */
    MEMBER_PART    /* by read() and write(), which returns a new reference */
};

struct json_member {
    const char *key; /* NULL ends a table */
    enum member_kind kind;
    size_t at; /* offsetof() */
    bool optional;
    double absent; /* what an optional number stands for that is not there, and is not written */
    double min, max;
    size_t room;
    const char *const *word;
    int words;
    int (*find)(const char *text); /* -1: no such word */
    const char *what;              /* of words: "felt" is no WHAT */
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

#endif
