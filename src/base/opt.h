/* opt.h - command lines as tables: each row has the name of an option, the kind of its value and
 * its destination.  The same rows produce help, checks, and arguments for a program that this one
 * starts.
 *
 *     static const struct opt options[] = {
 *         {"output", 'o', "FILE", "write here", OPT_INTO(struct args, output)},
 *         {"ranks", 0, "N", "how many", OPT_INT(struct args, ranks, 2, 1 << 20)},
 *         {"fault", 0, "SPEC", "may be given again", OPT_LIST(struct args, fault, faults)},
 *         {"only", 0, "NAME,...", "these alone", OPT_CALL(take_only)},
 *         {0},
 *     };
 *
 * --help prints the command's own options, which are the rows without a group, and one line per group;
 * --help=GROUP prints that group, --help=all everything, --help=tsv the same rows for programs (manual
 * pages).  A row without a name is a headline of its group, in lower case: --help describes the group
 * with it.  Words that are no options have rows too, one per position: `name` describes the word, and
 * `help` is the error if it is missing (NULL: it is optional). */
#ifndef RG_OPT_H
#define RG_OPT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/process.h"

enum opt_kind {
    OPT_IS_FLAG,
    OPT_IS_UNSET, /* flag that sets a bool to false */
    OPT_IS_TEXT,
    OPT_IS_LIST,
    OPT_IS_INT,
    OPT_IS_U64,
    OPT_IS_BYTES,
    OPT_IS_SECONDS,
    OPT_IS_SHARE,
    OPT_IS_REAL,
    OPT_IS_WORD,
    OPT_IS_CALL,
    OPT_IS_NAMED,
    OPT_IS_HELP
};

struct opt {
    const char *name;
    int letter;             /* 'o' for -o; 0: long only */
    const char *arg, *help; /* arg NULL: the option is a flag */
    enum opt_kind kind;
    size_t at, count; /* offset of the value; offset of a list's length */
    double lo, hi;    /* range of numbers */
    /* Allowed words, NULL-terminated; the value is an index. */
    const char *const *words;
    int known;                                  /* number of words, if not NULL-terminated */
    void (*values)(name_taker *take, void *to); /* names allowed as value, for completion */
    int (*call)(void *into, char *value, struct err *err);
    /* One function for many rows; its message is reported unchanged. */
    int (*named)(void *into, const char *name, const char *value, struct err *err);
    bool repeats;      /* word: may repeat, up to the end */
    const char *group; /* word of --help=GROUP; NULL: an own option of the command */
    int flags;         /* as in struct argp_option; an OPTION_ALIAS belongs to the row before */
};

/* Chosen by the member's type: bool is set, a text is kept, size_t is a number of bytes. */
#define OPT_INTO(type, member)                                                                     \
    .kind = _Generic(((type *)0)->member,                                                          \
                bool: OPT_IS_FLAG,                                                                 \
                const char *: OPT_IS_TEXT,                                                         \
                unsigned long long: OPT_IS_U64,                                                    \
                size_t: OPT_IS_BYTES),                                                             \
    .at = offsetof(type, member)
#define OPT_UNSET(type, member) .kind = OPT_IS_UNSET, .at = offsetof(type, member)
#define OPT_LIST(type, member, n)                                                                  \
    .kind = OPT_IS_LIST, .at = offsetof(type, member), .count = offsetof(type, n), .repeats = true
#define OPT_INT(type, member, min, max)                                                            \
    .kind = OPT_IS_INT, .at = offsetof(type, member), .lo = (min), .hi = (max)
#define OPT_REAL(type, member, min, max)                                                           \
    .kind = OPT_IS_REAL, .at = offsetof(type, member), .lo = (min), .hi = (max)
#define OPT_SECONDS(type, member) .kind = OPT_IS_SECONDS, .at = offsetof(type, member)
#define OPT_SHARE(type, member) .kind = OPT_IS_SHARE, .at = offsetof(type, member)
#define OPT_WORD(type, member, list)                                                               \
    .kind = OPT_IS_WORD, .at = offsetof(type, member), .words = (list)
#define OPT_CALL(function) .kind = OPT_IS_CALL, .call = (function)
#define OPT_NAMED(function) .kind = OPT_IS_NAMED, .named = (function)

/* Maximum rows of a table; sets of a line, and again as many from more(). */
enum { OPT_ROWS = 80, OPT_SETS = 10 };

/* Rows shared by several command lines. */
struct opt_set {
    const struct opt *rows;
    size_t at;                       /* offset of their structure in the line's arguments ... */
    void *into;                      /* ... or its address */
    const struct opt *(*make)(void); /* returns the rows, if `rows` is not set */
    int (*check)(void *into, struct err *err); /* after all words, before the line's check */
};

/* Example of --help and of the manual page, which a test runs. */
struct opt_example {
    const char *does, *line; /* sentence without its full stop; command line */
    bool elsewhere; /* needs GPUs, other hosts or minutes: the test only reads its options */
};
#define OPT_EXAMPLE(does, line)                                                                    \
    {                                                                                              \
        does, line, false                                                                          \
    }
#define OPT_ELSEWHERE(does, line)                                                                  \
    {                                                                                              \
        does, line, true                                                                           \
    }

/* Command line.  Lists end with {0}.  The options of log_options (log.h) are added, except sets of
 * which the line has a name itself. */
struct opt_line {
    const struct opt *options, *words; /* words NULL: no words */
    const char *usage;                 /* words of the command line */
    const char *doc;                   /* purpose in one sentence; details behind a \v */
    const struct opt_example *examples;
    const char *exits;                         /* EXIT_CODES() */
    int (*check)(void *args, struct err *err); /* after everything: contradictions */
    struct opt_set set[OPT_SETS];
    const struct opt_set *const *(*more)(void); /* further sets; NULL-terminated */
    bool returns;                               /* OPT_ANSWERED() */
    size_t answered;
};

/* For programs that must not exit inside the parser: --help, --usage and --version set this bool of
 * the arguments.  opt_version is the text of --version. */
#define OPT_ANSWERED(type, member) .returns = true, .answered = offsetof(type, member)
extern const char *opt_version;

enum opt_how {
    OPT_EXITS,   /* --help and bad usage exit, as in argp */
    OPT_RETURNS, /* bad usage is reported and returned */
    OPT_SILENT
};
/* Fill args, which holds the defaults; -1: bad usage. */
int opt_parse(const struct opt_line *l, int argc, char **argv, enum opt_how how, void *args);

/* Call take() for each row that --help=all shows. */
void opt_each(const struct opt_line *l, void (*take)(void *to, const struct opt *row), void *to);
/* Call take() for each option of a valid command line, in order: long name and value (NULL: a
 * flag).  Options of log_options are left out. */
void opt_given(const struct opt_line *l, int argc, char **argv,
               void (*take)(void *to, const char *name, const char *value), void *to);
/* Append the options of one table, in its order, as words "--name=value" for another program. */
void opt_again(const struct opt_line *l, int argc, char **argv, const struct opt *rows,
               struct words *to);

#endif
