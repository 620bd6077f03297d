/* input.h - the machine that a command looks at: a topology.json, a cost matrix, the directory of a
 * campaign or a preset, and files of others beside it; and the options that say so. */
#ifndef RG_INPUT_H
#define RG_INPUT_H

#include "base/opt.h"
#include "cost/matrix.h"
#include "probe/point.h"
#include "topo/sources.h"
#include "verdict/below.h"

/* --- options --- */

/* --slurm FILE, --ibnet FILE ... of the table in topo/sources.h, in the order given; nothing is owned
 * but `given` itself. */
struct input_sources {
    struct given_source {
        const struct source_file *file;
        const char *text;
    } * given;
    int count;
};

/* Nothing is owned but the list of sources: input_args_free(). */
struct input_args {
    const char *file, *fabric;
    int racks;
    bool blind; /* of the preset host names only; for commands that set it themselves */
    bool json, quiet;
    const char *below; /* a campaign that lies below; NULL: that of the directory, if it has one */
    struct input_sources sources;
};

/* Those options for a command line whose struct input_args is this member of its arguments. */
extern const struct opt input_preset_options[];
const struct opt *input_source_options(void);
int input_preset_check(void *into, struct err *err);
/* --fabric NAME, --racks N */
#define INPUT_PRESET(type, member)                                                                 \
    {                                                                                              \
        .rows = input_preset_options, .at = offsetof(type, member), .check = input_preset_check    \
    }
#define INPUT_SOURCES(type, member)                                                                \
    {                                                                                              \
        .make = input_source_options, .at = offsetof(type, member),                                \
        .title = "What others say of the machine:", .group = 1                                     \
    }
/* Rows of a command's own. */
#define INPUT_BELOW(type, member)                                                                  \
    {                                                                                              \
        "below", 0, "DIR|MATRIX",                                                                  \
            "a campaign of what lies below, such as verbs below nccl: is it the NIC?  "            \
            "(default: DIR/below, where that is one)",                                             \
            OPT_INTO(type, member)                                                                 \
    }
#define INPUT_JSON(type, member)                                                                   \
    {                                                                                              \
        "json", 0, NULL, "print JSON", OPT_INTO(type, member)                                      \
    }
#define INPUT_QUIET(type, member)                                                                  \
    {                                                                                              \
        "quiet", 'q', NULL, "print nothing: the exit code says it", OPT_INTO(type, member)         \
    }
void input_args_free(struct input_args *a);
/* Read all of them into t, in order; sources_done() is the caller's. */
int input_sources_read(const struct input_sources *a, struct topo *t, struct err *err);

/* --- what is read --- */

enum { INPUT_TOPO = 1, INPUT_MATRIX = 2, INPUT_POINTS = 4 };

/* What a command can work on.  A file that may be either is a matrix when its head says so. */
struct input_ask {
    unsigned file;      /* kinds that a file may be: TOPO, MATRIX */
    unsigned need, may; /* of a directory: what must be there, what is read where it is */
};

struct input {
    struct matrix m;
    struct topo t; /* in any case: topology.json, else that of the matrix */
    struct points p;
    unsigned has; /* what was read; a preset is MATRIX where that was asked for, else TOPO */
    bool dir;
};

/* The preset, else the file, else nothing at all.  Parts that are not of the same endpoints are
 * EXIT_DATA.  input_free() in any case, after input_init(). */
void input_init(struct input *in);
int input_open(struct input *in, const struct input_args *a, const struct input_ask *ask,
               struct err *err);
void input_free(struct input *in);

/* --below, else the directory's own: beside `in`, which lives as long.  NULL where there is none. */
struct input_below {
    struct input in;
    struct below b;
    const struct below *is; /* &b, or NULL */
};
void input_below_init(struct input_below *b);
int input_below_open(struct input_below *b, const struct input_args *a, const struct input *in,
                     struct err *err);
void input_below_free(struct input_below *b);

/* The endpoint "HOST:INDEX", "HOST" (its first one) or its id. */
int input_endpoint(const struct topo *t, const char *text, int *id, struct err *err);

/* The hosts of "n[01-18],login" in that order, all of t without a list (NULL).  A message
 * (EXIT_USAGE) begins with the option.  The caller frees *host. */
int input_hosts(int **host, int *hosts, const struct topo *t, const char *option, const char *list,
                struct err *err);

#endif
