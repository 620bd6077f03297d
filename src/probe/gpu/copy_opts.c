/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/copy_opts.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

enum { ENGINE = 0x680, WAY };

const char *const copy_engine_name[] = {"ce", "sm", NULL};
const char *const copy_way_name[] = {"write", "read", NULL};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Copies between GPUs (--transport copy):", 45},
    {"copy-engine", ENGINE, "WHO", 0, "ce: the copy engine (default), sm: a kernel", 45},
    {"copy-way", WAY, "WAY", 0,
     "write: the sender's GPU writes into the receiver's memory (default); read: the receiver's "
     "reads",
     45},
    {0},
};

static int find(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], word))
            return i;
    return -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct copy_opts *o = state->input;
    struct err err = {0, ""};
    int *at = key == ENGINE ? &o->engine : &o->way;
    const char *const *names = key == ENGINE ? copy_engine_name : copy_way_name;

    if (key != ENGINE && key != WAY)
        return ARGP_ERR_UNKNOWN;
    *at = find(names, arg);
    if (*at >= 0)
        return 0;
    err_usage(&err, "\"%s\" is neither %s nor %s", arg, names[0], names[1]);
    opt_error(state, options, key, &err);
    return EINVAL;
}

const struct argp copy_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

char **copy_opts_words(const struct copy_opts *o, int *count)
{
    char **w = NULL;

    *count = 0;
    MEM_PUSH(w, *count) = mem_printf("--copy-engine=%s", copy_engine_name[o->engine]);
    MEM_PUSH(w, *count) = mem_printf("--copy-way=%s", copy_way_name[o->way]);
    return w;
}
