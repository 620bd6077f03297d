/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"

enum { HOST = 256 };

/* All that the other ranks need: numbers, no pointers. */
struct brief {
    struct traffic traffic;
    struct layout layout;
    struct recipe recipe;
    struct replay_step step;
    int order[]; /* of layout.ranks */
};

static size_t brief_size(int ranks)
{
    return sizeof(struct brief) + sizeof(int) * (size_t)ranks;
}

/* Rank 0: does every endpoint of the job live where the world has its rank? */
static int check_hosts(const struct replay_outcome *out, const char *host, const struct world *w,
                       struct err *err)
{
    const struct topo *t = &out->job.matrix.topo;

    for (int i = 0; i < out->job.layout.ranks; i++) {
        int id = out->job.order ? out->job.order[i] : i;
        if (id >= w->size)
            return err_config(err,
                              "rank %d of the job runs on endpoint %d, and only %d ranks were "
                              "started: start one an endpoint",
                              i, id, w->size);
        const char *want = t->host[t->endpoint[id].place.at[LEVEL_HOST]].name;
        if (strcmp(want, host + (size_t)id * HOST))
            return err_config(err,
                              "endpoint %d of the matrix is on %s, and rank %d of the world is on "
                              "%s: measure and replay with the same hosts in the same order",
                              id, want, id, host + (size_t)id * HOST);
    }
    return 0;
}

static int prepare(struct replay_outcome *out, struct replay_opts *o, const char *host,
                   const struct world *w, struct err *err)
{
    if (!o->job.matrix)
        return err_usage(err, "which matrix.json?");
    if (job_open(&out->job, &o->job, err) < 0)
        return -1;
    if (strcmp(out->job.matrix.transport, "mpi"))
        return err_config(err, "%s was measured over %s, and a replay runs over mpi", o->job.matrix,
                          out->job.matrix.transport);
    if (out->job.layout.ranks > out->job.matrix.topo.endpoints)
        return err_usage(err, "the layout needs %d ranks and the matrix has %d endpoints",
                         out->job.layout.ranks, out->job.matrix.topo.endpoints);
    if (check_hosts(out, host, w, err) < 0)
        return -1;
    struct question q = job_question(&out->job, &o->job);
    return replay_case_make(&out->made, &q, &o->size, err);
}

static struct brief *write_brief(const struct replay_outcome *out, const struct replay_opts *o,
                                 size_t *size)
{
    int ranks = out->job.layout.ranks;
    *size = brief_size(ranks);
    struct brief *b = mem_calloc(1, *size);

    b->traffic = out->made.traffic;
    for (int i = 0; i < b->traffic.messages; i++)
        b->traffic.message[i].label = b->traffic.message[i].formula = NULL;
    b->layout = out->job.layout;
    b->recipe = o->job.recipe;
    b->step.rest = out->made.rest;
    b->step.last = out->made.last;
    for (int i = 0; i < ranks; i++)
        b->order[i] = out->job.order ? out->job.order[i] : i;
    return b;
}

int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err)
{
    char mine[HOST] = "", *host = w->rank == 0 ? mem_calloc((size_t)w->size, HOST) : NULL;
    struct brief *brief = NULL;
    void *data = NULL;
    size_t size = 0;

    memset(out, 0, sizeof(*out));
    host_self(mine, sizeof(mine));
    int rc = w->gather(w, mine, HOST, host, err);
    if (rc == 0 && w->rank == 0)
        rc = prepare(out, o, host, w, err);
    free(host);
    if (w->agree(w, rc, err) < 0)
        return -1;
    if (w->rank == 0)
        data = brief = write_brief(out, o, &size);
    if (w->share(w, &data, &size, err) < 0) {
        free(brief);
        return -1;
    }
    brief = data;
    brief->step.traffic = &brief->traffic;
    brief->step.layout = &brief->layout;
    brief->step.recipe = &brief->recipe;
    const struct replay_run run = {&brief->step, brief->order, (enum burn)o->burn, o->warmup,
                                   o->steps};
    rc = replay_mpi_run(&out->result, &run, w, err);
    free(brief);
    return rc;
}

void replay_world_free(struct replay_outcome *out)
{
    replay_result_free(&out->result);
    replay_case_free(&out->made);
    job_free(&out->job);
}
