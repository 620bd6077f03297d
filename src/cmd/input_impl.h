/* input_impl.h - input of a command: a topology.json, a cost matrix, a campaign directory or a preset,
 * and external files; with the options for them. */
#ifndef RG_INPUT_H
#define RG_INPUT_H

#include "base/opt.h"
#include "matrix/matrix.h"
#include "measure/point.h"
#include "topo/sources/sources.h"
#include "verdict/parts.h"

/* --- options --- */

/* --slurm FILE, --ibnet FILE ... of the table in topo/sources/sources.h, in the given order; only `given`
 * itself is owned. */
struct input_sources {
    struct given_source {
        const struct source_file *file;
        const char *text;
    } * given;
    int count;
};

/* Only the list of sources is owned: input_args_free(). */
struct input_args {
    const char *file, *fabric;
    int racks;
    /* the preset's coordinates are hidden, except host names; for commands that set it */
    bool blind;
    bool json, quiet;
    const char *below; /* lower-layer campaign; NULL: that of the directory, if any */
    struct input_sources sources;
};

/* Options for a command line that has its struct input_args as this member. */
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
        .make = input_source_options, .at = offsetof(type, member)                                 \
    }
/* Options that only some commands have. */
#define INPUT_BELOW(type, member)                                                                  \
    {                                                                                              \
        "below", 0, "DIR|MATRIX",                                                                  \
            "campaign of the layer below, such as verbs below nccl, to tell NIC from software "    \
            "(default: DIR/below, if there is one)",                                               \
            OPT_INTO(type, member)                                                                 \
    }
#define INPUT_JSON(type, member)                                                                   \
    {                                                                                              \
        "json", 0, NULL, "print JSON", OPT_INTO(type, member)                                      \
    }
#define INPUT_QUIET(type, member)                                                                  \
    {                                                                                              \
        "quiet", 'q', NULL, "print nothing; the exit code is the result", OPT_INTO(type, member)   \
    }
void input_args_free(struct input_args *a);
/* Read all sources into t, in order.  The caller calls sources_done(). */
int input_sources_read(const struct input_sources *a, struct topo *t, struct err *err);

/* --- input --- */

enum { INPUT_TOPO = 1, INPUT_MATRIX = 2, INPUT_POINTS = 4 };

/* Kinds of input that a command accepts.  A file that may be either is a matrix if its head says
 * so. */
struct input_ask {
    unsigned file;      /* allowed kinds of a file: TOPO, MATRIX */
    unsigned need, may; /* directory: required contents, optional contents */
};

struct input {
    struct matrix m;
    struct topo t; /* always set: topology.json, else that of the matrix */
    struct points p;
    unsigned has; /* contents read; a preset is MATRIX if accepted, else TOPO */
    bool dir;
};

/* Open the preset, else the file, else nothing.  EXIT_DATA if the contents are of different
 * endpoints.  Call input_free() in any case, after input_init(). */
void input_init(struct input *in);
int input_open(struct input *in, const struct input_args *a, const struct input_ask *ask,
               struct err *err);
void input_free(struct input *in);

/* Lower-layer campaign: --below, else that of the directory.  It refers to `in`, to be kept as
 * long. */
struct input_below {
    struct input in;
    struct below b;
    const struct below *is; /* &b, or NULL */
};
void input_below_init(struct input_below *b);
int input_below_open(struct input_below *b, const struct input_args *a, const struct input *in,
                     struct err *err);
void input_below_free(struct input_below *b);

/* Find an endpoint: "HOST:INDEX", "HOST" (its first one) or an id. */
int input_endpoint(const struct topo *t, const char *text, int *id, struct err *err);

/* Hosts of "n[01-18],login" in that order; list NULL: all of t.  A message (EXIT_USAGE) begins with
 * the option.  The caller frees *host. */
int input_hosts(int **host, int *hosts, const struct topo *t, const char *option, const char *list,
                struct err *err);

#endif
