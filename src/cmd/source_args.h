/* source_args.h - the options --slurm FILE, --ibnet FILE ... of the table in topo/sources.h, as a
 * child of a command's argp. */
#ifndef RG_SOURCE_ARGS_H
#define RG_SOURCE_ARGS_H

#include <argp.h>

#include "topo/sources.h"

enum { SOURCE_ARGS_MAX = 4096 };

/* What was given, in order; nothing is owned but `given` itself. */
struct source_args {
    struct given_source {
        const struct source_file *file;
        const char *text;
    } * given;
    int count;
};

/* The child's input is a struct source_args. */
struct argp_child source_args_child(int group);
/* Read all of them into t, in order; sources_done() is the caller's. */
int source_args_read(const struct source_args *a, struct topo *t, struct err *err);
void source_args_free(struct source_args *a);

#endif
