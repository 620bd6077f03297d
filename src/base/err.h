/* err.h - errors: one sentence about the cause, composed where the facts are known.
 *
 * Functions that can fail return 0 or -1 and take a `struct err *` last.  The text is a lower-case
 * sentence with the exact cause and its values; the code is the exit status that the programs
 * return.  err may be NULL: the caller then only learns that the call failed.
 *
 * Example:
 *
 *     #include "base/units.h"
 *     static int take_ranks(int *ranks, const char *text, struct err *err)
 *     {
 *         if (units_int(ranks, text, 1, 1 << 20, err) < 0)
 *             return err_wrap(err, "--ranks");        // "--ranks: abc is not a number"
 *         if (*ranks % 2)
 *             return err_usage(err, "--ranks: %d, must be even", *ranks);
 *         return 0;
 *     } */
#ifndef RG_ERR_H
#define RG_ERR_H

#include <stdarg.h>

/* Exit codes; 64..78 are those of sysexits.h. */
enum {
    EXIT_GOOD = 0,
    EXIT_BELOW = 1,    /* a part is named, a job does not fit, a check found a fault */
    EXIT_UNJUDGED = 2, /* no verdict possible */
    EXIT_USAGE = 64,
    EXIT_DATA = 65,
    EXIT_NOINPUT = 66,
    EXIT_IO = 74,
    EXIT_CUT = 75, /* interrupted; a resumed run continues */
    EXIT_CONFIG = 78,
};

/* Last sentence of a command's --help.  own: the command's own meaning of 1 and 2 (each followed
 * by ", "); more: further codes (each preceded by ", "). */
#define EXIT_CODES(own, more)                                                                      \
    "Exit codes: 0 good, " own "64 usage, 65 bad data, 66 no input, 74 I/O" more "."

struct err {
    int code; /* one of EXIT_* */
    char text[512];
};

/* Fill err and return -1.  err_set() sets EXIT_UNJUDGED; the others set the code in their name. */
int err_set(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_usage(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_data(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_noinput(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_io(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_config(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_code(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text already in err; keeps the code; returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- suggestions for an unknown word ---
 *
 *     struct near near = {.word = name};
 *     for (int i = 0; i < n; i++)
 *         near_try(&near, known[i]);
 *     return err_usage(err, "no model \"%s\"%s", name, near_text(&near));
 *
 * A name is near if it begins with the word, or results from edits of at most a third of its
 * letters: added, omitted, changed or swapped (Damerau 1964, Levenshtein 1966; no place is edited
 * twice).  Case is ignored. */
struct near {
    const char *word;
    char name[64]; /* nearest name so far */
    int far;       /* distance of the nearest name, in tenths of an edit */
    char text[100];
};
void near_try(void *near, const char *name);
/* Callback that receives names one by one, such as near_try(); see op_each(). */
typedef void name_taker(void *to, const char *name);
/* " (did you mean "NAME"?)", or "". */
const char *near_text(struct near *n);

#endif
