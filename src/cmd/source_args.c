/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/source_args.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum { FIRST = 0x700, OPTIONS_MAX = 32 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct source_args *a = state->input;

    if (key < FIRST || key >= FIRST + source_files)
        return ARGP_ERR_UNKNOWN;
    if (a->count == SOURCE_ARGS_MAX)
        argp_error(state, "more than %d files", SOURCE_ARGS_MAX);
    MEM_PUSH(a->given, a->count) = (struct given_source){&source_file[key - FIRST], arg};
    return 0;
}

struct argp_child source_args_child(int group)
{
    static struct argp_option options[OPTIONS_MAX + 1];
    static struct argp argp = {.options = options, .parser = parse};

    assert(source_files <= OPTIONS_MAX);
    for (int i = 0; i < source_files; i++)
        options[i] = (struct argp_option){source_file[i].name, FIRST + i, source_file[i].arg, 0,
                                          source_file[i].help, 0};
    return (struct argp_child){&argp, 0, "What others say of the machine:", group};
}

int source_args_read(const struct source_args *a, struct topo *t, struct err *err)
{
    bool seen[OPTIONS_MAX] = {false};

    for (int i = 0; i < a->count; i++) {
        const struct given_source *g = &a->given[i];
        bool *before = &seen[g->file - source_file];
        if (sources_read(t, g->file, g->text, *before, err) < 0)
            return -1;
        *before = true;
    }
    return 0;
}

void source_args_free(struct source_args *a)
{
    free(a->given);
}
