/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_habits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernels/nccl_api.h"

#define HIDDEN(long, key)                                                                          \
    {                                                                                              \
        long, key, "VALUE", OPTION_HIDDEN, NULL, 70                                                \
    }
static const struct argp_option options[] = {
    HIDDEN("ngpus", 'g'),
    HIDDEN("nthreads", 0x700),
    HIDDEN("stepbytes", 'i'),
    HIDDEN("agg_iters", 'm'),
    HIDDEN("run_cycles", 'N'),
    HIDDEN("parallel_init", 'p'),
    HIDDEN("root", 'r'),
    HIDDEN("blocking", 'z'),
    HIDDEN("stream_null", 'y'),
    HIDDEN("timeout", 'T'),
    HIDDEN("cudagraph", 'G'),
    HIDDEN("report_cputime", 'C'),
    HIDDEN("average", 'a'),
    HIDDEN("local_register", 'R'),
    HIDDEN("cta_policy", 'x'),
    HIDDEN("device_implementation", 'D'),
    HIDDEN("report_timestamps", 'S'),
    HIDDEN("output_file", 'J'),
    HIDDEN("memory", 'M'),
    HIDDEN("unalign", 'u'),
    HIDDEN("per_iter_timing", 'I'),
    HIDDEN("per_iter_skip", 'K'),
    {0},
};

static const struct {
    int key;
    const char *same; /* values that change nothing, each between blanks */
    const char *why;
} habit[] = {
    {'g', " 1 ", "there is one rank a GPU here: mpirun -n N"},
    {0x700, " 1 ", "there is one rank a GPU here: mpirun -n N"},
    {'i', "", "sizes grow by a factor here: -f N"},
    {'m', " 1 ", "each sample is one operation; -n N takes N of them"},
    {'N', " 1 ", "--epochs N measures everything N times, spread over the campaign"},
    {'p', " 0 1 ", ""},
    {'r', " 0 ", "the root is the first rank of each group"},
    {'z', " 0 ",
     "operations are enqueued one after another and timed one by one on the GPU's clock"},
    {'y', " 0 ", "every rank has a stream of its own"},
    {'T', "", "ranks that hang are found and named without it; --budget TIME ends a campaign"},
    {'G', " 0 ", "--graph replays a CUDA graph"},
    {'C', " 0 ", "the time of the calling CPU is not measured"},
    {'a', " 3 ", "a sample is the slowest rank's time: that is -a 3"},
    {'R', " 0 ", "--register buffer is -R 1, --register symmetric --nccl-mem is -R 2"},
    {'x', "", "the CTA policy is the library's: NCCL_CTA_POLICY"},
    {'D', " 0 ", "operations are those of the library"},
    {'S', " 0 ", "points.tsv says when it was measured"},
    {'J', "", "points.tsv is made for programs: -o FILE; show --json prints the matrix"},
    {'M', " 0 ", "memory is not reported"},
    {'u', " 0 ", "buffers are aligned"},
    {'I', " 0 1 ", ""}, /* percentiles are in points.tsv always */
    {'K', " 0 ", "-w N runs are not counted"},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    char want[16];

    for (size_t i = 0; i < sizeof(habit) / sizeof(*habit); i++) {
        if (key != habit[i].key)
            continue;
        snprintf(want, sizeof(want), " %.12s ", arg);
        if (*arg && strstr(habit[i].same, want))
            return 0;
        const struct argp_option *o = options;
        while (o->key != key)
            o++;
        argp_error(state, "--%s %s of nccl-tests: %s", o->name, arg,
                   *habit[i].why ? habit[i].why : "only 0 and 1 are known");
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

const struct argp nccl_habits_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

const char *nccl_habit_of(int key, const char *word)
{
    if (key == 't' && *word && !word[strspn(word, "0123456789")])
        return "-t is --transport here; threads are nccl-tests' -t: one rank a GPU, mpirun -n N";
    if (key == 'o' && (nccl_redop_find(word) >= 0 || !strcmp(word, "all")))
        return "-o is --output here; the reduction is --redop";
    return NULL;
}
