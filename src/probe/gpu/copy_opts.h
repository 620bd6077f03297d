/* copy_opts.h - how the copy transport moves bytes. */
#ifndef RG_COPY_OPTS_H
#define RG_COPY_OPTS_H

#include <argp.h>

#include "base/err.h"

enum copy_engine { COPY_CE, COPY_SM }; /* copy engine, multiprocessors */
enum copy_way { COPY_WRITE, COPY_READ };
extern const char *const copy_engine_name[]; /* "ce", "sm", NULL */
extern const char *const copy_way_name[];    /* "write", "read", NULL */

struct copy_opts {
    int engine, way; /* of the enums; default: copy engine, write */
};
/* --copy-engine and --copy-way, as a child of a command's argp; its input is a struct copy_opts. */
extern const struct argp copy_argp;
/* The same as words for the MPI program; the caller frees each and the array. */
char **copy_opts_words(const struct copy_opts *o, int *count);

#endif
