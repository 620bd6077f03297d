/* opt.h - the words of a command line as rows of a table: what each is called, what its value is
 * and where that goes.
 *
 *     static const struct opt options[] = {
 *         {"output", 'o', "FILE", "write here", OPT_INTO(struct args, output)},
 *         {"ranks", 0, "N", "how many", OPT_INT(struct args, ranks, 2, 1 << 20)},
 *         {"fault", 0, "SPEC", "may be given again", OPT_LIST(struct args, fault, faults)},
 *         {"only", 0, "NAME,...", "these alone", OPT_CALL(take_only)},
 *         {0},
 *     };
 *
 * Words that are no options are rows as well, one for each place, where `name` says what stands
 * there and `help` is said when nothing does (NULL: it may be missing). */
#ifndef RG_OPT_H
#define RG_OPT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum opt_kind {
    OPT_IS_FLAG,
    OPT_IS_TEXT,
    OPT_IS_LIST,
    OPT_IS_INT,
    OPT_IS_BYTES,
    OPT_IS_SECONDS,
    OPT_IS_SHARE,
    OPT_IS_REAL,
    OPT_IS_CALL
};

struct opt {
    const char *name;
    int letter;             /* 'o' for -o; 0: long only */
    const char *arg, *help; /* arg NULL: a flag */
    enum opt_kind kind;
    size_t at, count; /* of the value, and of a list's length, in what is filled in; both bytes */
    double lo, hi;    /* of numbers */
    int (*call)(void *into, char *value, struct err *err);
    bool repeats;     /* a word: so do those after it */
    int group, flags; /* as in struct argp_option; an OPTION_ALIAS is one of the row before */
};

/* By the member's type: bool is set, a text kept as it is, size_t a number of bytes. */
#define OPT_INTO(type, member)                                                                     \
    .kind = _Generic(((type *)0)->member,                                                          \
                bool: OPT_IS_FLAG,                                                                 \
                const char *: OPT_IS_TEXT,                                                         \
                size_t: OPT_IS_BYTES),                                                             \
    .at = offsetof(type, member)
#define OPT_LIST(type, member, n)                                                                  \
    .kind = OPT_IS_LIST, .at = offsetof(type, member), .count = offsetof(type, n), .repeats = true
#define OPT_INT(type, member, min, max)                                                            \
    .kind = OPT_IS_INT, .at = offsetof(type, member), .lo = (min), .hi = (max)
#define OPT_REAL(type, member, min, max)                                                           \
    .kind = OPT_IS_REAL, .at = offsetof(type, member), .lo = (min), .hi = (max)
#define OPT_SECONDS(type, member) .kind = OPT_IS_SECONDS, .at = offsetof(type, member)
#define OPT_SHARE(type, member) .kind = OPT_IS_SHARE, .at = offsetof(type, member)
#define OPT_CALL(function) .kind = OPT_IS_CALL, .call = (function)

enum { OPT_ROWS = 40 };

/* No words at all. */
extern const struct opt opt_none[];

/* The options of rows (at most OPT_ROWS) for argp, ended. */
void opt_argp(struct argp_option out[OPT_ROWS + 1], const struct opt *rows);
/* A parser's answer to a key: the value of one of these rows goes into `into`, else
 * ARGP_ERR_UNKNOWN.  A value that cannot be ends as argp_error() does. */
error_t opt_parse(const struct opt *rows, void *into, int key, char *arg, struct argp_state *state);
/* The same for ARGP_KEY_ARG and ARGP_KEY_END: words that are no options. */
error_t opt_words(const struct opt *rows, void *into, int key, char *arg, struct argp_state *state);

/* argp_error() with "--name: " of the option with this key before the text; returns only under
 * ARGP_NO_EXIT. */
void opt_error(struct argp_state *state, const struct argp_option *options, int key,
               const struct err *err);

#endif
