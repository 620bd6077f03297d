/* opt.h - the words of a command line as rows of a table: what each is called, what its value is
 * and where that goes.  The same rows are the help, the checks, and the words for a program that
 * this one starts.
 *
 *     static const struct opt options[] = {
 *         {"output", 'o', "FILE", "write here", OPT_INTO(struct args, output)},
 *         {"ranks", 0, "N", "how many", OPT_INT(struct args, ranks, 2, 1 << 20)},
 *         {"fault", 0, "SPEC", "may be given again", OPT_LIST(struct args, fault, faults)},
 *         {"only", 0, "NAME,...", "these alone", OPT_CALL(take_only)},
 *         {0},
 *     };
 *
 * A row without a name is a headline of its group.  Words that are no options are rows as well, one
 * for each place, where `name` says what stands there and `help` is said when nothing does (NULL: it
 * may be missing). */
#ifndef RG_OPT_H
#define RG_OPT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/process.h"

enum opt_kind {
    OPT_IS_FLAG,
    OPT_IS_UNSET, /* a flag that makes a bool false */
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
    const char *arg, *help; /* arg NULL: a flag */
    enum opt_kind kind;
    size_t at, count; /* of the value, and of a list's length, in what is filled in; both bytes */
    double lo, hi;    /* of numbers */
    const char *const *words;                   /* one of these, as its index; NULL ends them */
    int known;                                  /* how many those are, where no NULL ends them */
    void (*values)(name_taker *take, void *to); /* names that its value may be, for completion */
    int (*call)(void *into, char *value, struct err *err);
    /* The same where one function takes many rows; its message is said as it is. */
    int (*named)(void *into, const char *name, const char *value, struct err *err);
    bool repeats;     /* a word: so do those after it */
    int group, flags; /* as in struct argp_option; an OPTION_ALIAS is one of the row before */
};

/* By the member's type: bool is set, a text kept as it is, size_t a number of bytes. */
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

enum { OPT_ROWS = 80, OPT_SETS = 10 }; /* at most, in a table; of a line, and as many more */

/* Rows that several command lines have. */
struct opt_set {
    const struct opt *rows;
    size_t at;                       /* of what they fill in the line's arguments ... */
    void *into;                      /* ... unless it lies here */
    int group;                       /* where --help shows them, as in struct argp_child */
    const char *title;               /* above them, or NULL */
    const struct opt *(*make)(void); /* instead of rows: these */
    int (*check)(void *into, struct err *err); /* after all words, before the line's own */
};

/* A command line.  Lists end with {0}.  Beside its own rows it has those of log_options (log.h), a set
 * of which is left out where the line has a row of that name itself. */
struct opt_line {
    const struct opt *options, *words;         /* words NULL: there are none */
    const char *usage, *doc;                   /* args_doc and doc of argp */
    int (*check)(void *args, struct err *err); /* after everything: what cannot be */
    struct opt_set set[OPT_SETS];
    const struct opt_set *const *(*more)(void); /* these too; NULL ends them */
};

/* --help, --usage and --version for programs that must not end inside of the parsing: they are
 * answered, and a bool says so.  opt_version is what the last one prints. */
extern const struct opt opt_help[];
extern const char *opt_version;

enum opt_how {
    OPT_EXITS,   /* --help and bad usage end the program, as argp does */
    OPT_RETURNS, /* bad usage is said, and it returns; --help is that of opt_help alone */
    OPT_SILENT
};
/* Fill args, which hold the defaults; -1 after bad usage. */
int opt_parse(const struct opt_line *l, int argc, char **argv, enum opt_how how, void *args);

/* Each row of a line's tables that --help shows, and --help, --usage and --version behind them. */
void opt_each(const struct opt_line *l, void (*take)(void *to, const struct opt *row), void *to);
/* Each option of such a command line, once it was parsed well: its long name and its value (NULL: a
 * flag), in order; those of log_options are not told. */
void opt_given(const struct opt_line *l, int argc, char **argv,
               void (*take)(void *to, const char *name, const char *value), void *to);
/* Those of one table as words for another program, "--name=value" in the table's order, behind what
 * `to` has. */
void opt_again(const struct opt_line *l, int argc, char **argv, const struct opt *rows,
               struct words *to);

#endif
