/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/chain_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* How to go on, where there is something to go on with and it was not said. */
static int add_way(const struct chain *c, struct err *err)
{
    char *topology = file_join(c->dir, "topology.json");
    size_t used = strlen(err->text);

    if (!strstr(err->text, "--resume") && access(topology, F_OK) == 0)
        snprintf(err->text + used, sizeof(err->text) - used, "; --resume -o %s continues", c->dir);
    free(topology);
    return -1;
}

int chain_mpi(struct chain *c, const char *const *args, const char *what, struct err *err)
{
    int code;

    c->launch.dir = c->dir;
    c->launch.hang_after = c->probe.measure.hang_after;
    if (launch_run(&c->launch, args, &code, err) < 0)
        return add_way(c, err);
    if (code == EXIT_CUT)
        return err_code(err, EXIT_CUT, "%s was cut short; --resume -o %s continues", what, c->dir);
    return code ? err_code(err, code, "%s ended with exit code %d", what, code) : 0;
}

/* Words that belong to the list. */
struct words {
    char **word;
    int count;
};

static void take_words(struct words *w, char **more, int count)
{
    for (int i = 0; i < count; i++)
        MEM_PUSH(w->word, w->count) = more[i];
    free(more);
}

/* All options that the MPI program may be given with this transport; "auto" may become mpi or nccl.
 */
static struct words option_words(const struct chain *c)
{
    bool mpi = !strcmp(c->transport, "mpi"), copy = !strcmp(c->transport, "copy");
    bool gpus = copy || !strcmp(c->transport, "nccl");
    struct words w = {NULL, 0};
    int n;

    char **probe = probe_opts_words(&c->probe, &n);
    take_words(&w, probe, n);
    char **host = gpus ? NULL : mpi_opts_words(&c->mpi, &n);
    take_words(&w, host, host ? n : 0);
    char **lib = mpi ? NULL : nccl_opts_words(&c->nccl, &n);
    take_words(&w, lib, lib ? n : 0);
    char **ways = copy ? copy_opts_words(&c->copy, &n) : NULL;
    take_words(&w, ways, ways ? n : 0);
    return w;
}

static void free_words(struct words *w)
{
    for (int i = 0; i < w->count; i++)
        free(w->word[i]);
    free(w->word);
}

/* `what` NULL: it is only printed. */
static int start_probe(struct chain *c, const char *const *fixed, void *stream, const char *what,
                       struct err *err)
{
    struct words w = option_words(c);
    const char **args = mem_calloc((size_t)w.count + 16, sizeof(*args));
    int n = 0, rc = 0;

    for (int i = 0; fixed[i]; i++)
        args[n++] = fixed[i];
    for (int i = 0; i < w.count; i++)
        args[n++] = w.word[i];
    if (stream) {
        rc = launch_print(&c->launch, args, stream, err);
        fflush(stream);
    }
    if (rc == 0 && what)
        rc = chain_mpi(c, args, what, err);
    free_words(&w);
    free(args);
    return rc;
}

int chain_mpi_probe(struct chain *c, const char *const *fixed, void *stream, const char *what,
                    struct err *err)
{
    return start_probe(c, fixed, stream, what, err);
}

int chain_mpi_print(struct chain *c, const char *const *fixed, void *stream, struct err *err)
{
    return start_probe(c, fixed, stream, NULL, err);
}

int chain_mpi_compute(struct chain *c, const char *path, const char *last, struct err *err)
{
    char *model = mem_printf("%s,%s", c->model ? c->model : DEVICE_MODELS, DEVICE_MODELS);
    const char *args[16] = {"probe", "--compute", "--model", model, "-o", path};
    char cap[40], half[40];
    int n = 6, words;
    char **word = device_opts_words(&c->device, &words);

    snprintf(half, sizeof(half), "--half-width=%.9f", c->probe.measure.half_width);
    args[n++] = half;
    snprintf(cap, sizeof(cap), "--time-cap=%.9f", c->probe.measure.time_cap);
    if (c->probe.measure.time_cap > 0)
        args[n++] = cap;
    if (c->nccl.share_gpu)
        args[n++] = "--share-gpu";
    for (int i = 0; i < words; i++)
        args[n++] = word[i];
    args[n] = last;
    int rc = chain_mpi(c, args, "probe --compute", err);
    for (int i = 0; i < words; i++)
        free(word[i]);
    free(word);
    free(model);
    return rc;
}
