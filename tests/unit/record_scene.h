/* record_scene.h - a training job that never ran, recorded: its truth is what a test chose.
 *
 * hosts x gpus ranks, tp inside a host, dp across hosts, one world.  A step is, layer by layer, an
 * all_gather of the weights over dp that runs beside the compute of the layer before (where `overlap`),
 * compute, an all_reduce over tp; the same backward with a reduce_scatter; then one all_reduce of
 * the world.  A collective begins when its last rank comes and ends on all at once, but for noise. */
#ifndef RG_RECORD_SCENE_H
#define RG_RECORD_SCENE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/stats.h"
#include "record/record_job.h"

enum scene_fault {
    SCENE_NOBODY,
    SCENE_RANK,      /* computes longer by `late` */
    SCENE_HOST,      /* all of its ranks do */
    SCENE_ONE_AXIS,  /* a rank comes late to the dp collectives alone, where those have time */
    SCENE_SOMETIMES, /* a rank stops for 40 `late` in one of 10 steps */
};

struct scene {
    int hosts, gpus, layers, steps;
    bool overlap;
    bool exchange; /* an all_to_all of the world a step */
    unsigned long long seed;
    double offset, drift; /* clocks differ by up to so much: s, s/s */
    enum scene_fault fault;
    int culprit;    /* rank, or the first rank of a host */
    double compute; /* s of a layer; 0: 0.7 ms, less than what runs beside it */
    double late;    /* s a layer */
    double noise;   /* s of a start, one standard deviation */
    double
        slow; /* dp collectives of the group of rank `culprit` take so many times as long; 0: none */
};

struct scene_rank {
    double t;      /* when it computes next */
    double stream; /* when its dp stream is free */
    double gathered;
    double offset, drift;
};

struct scene_entry {
    int comm;
    struct record_what kind;
    unsigned number;
    double start, end;
};

struct scene_log {
    struct scene_entry *entry;
    int entries;
};

struct scene_run {
    const struct scene *s;
    struct rng rng;
    struct scene_rank *rank;
    struct scene_log *log;
    unsigned *number; /* by comm and operation */
    int ranks;
};

enum { SCENE_TP, SCENE_DP, SCENE_WORLD };

static inline int scene_comms(const struct scene *s)
{
    return s->hosts + s->gpus + 1;
}

/* The members of communicator c, in the order of ranks; how many. */
static inline int scene_members(const struct scene *s, int c, int *member)
{
    int n = 0;

    for (int r = 0; r < s->hosts * s->gpus; r++)
        if (c < s->hosts ? r / s->gpus == c
                         : c >= s->hosts + s->gpus || r % s->gpus == c - s->hosts)
            member[n++] = r;
    return n;
}

static inline double scene_noise(struct scene_run *x)
{
    return x->s->noise * rng_normal(&x->rng);
}

/* Ranks come when they are ready; stream: on their dp stream, which compute does not wait for. */
static inline void scene_call(struct scene_run *x, int c, enum op op, uint64_t bytes, double takes,
                              bool stream)
{
    int member[4096], n = scene_members(x->s, c, member);
    double start[4096], last = 0;

    for (int i = 0; i < n; i++) {
        struct scene_rank *k = &x->rank[member[i]];
        start[i] = (stream && k->stream > k->t ? k->stream : k->t) + 5e-6 +
                   (x->s->noise > 0 ? fabs(scene_noise(x)) : 0);
        if (x->s->fault == SCENE_ONE_AXIS && member[i] == x->s->culprit && c >= x->s->hosts &&
            c < x->s->hosts + x->s->gpus)
            start[i] += x->s->late;
        last = start[i] > last ? start[i] : last;
    }
    if (x->s->slow > 0 && c == x->s->hosts + x->s->culprit % x->s->gpus)
        takes *= x->s->slow;
    double end = last + takes * (1 + 0.02 * fabs(rng_normal(&x->rng)));
    unsigned number = x->number[c * OP_COUNT + (int)op]++;
    for (int i = 0; i < n; i++) {
        struct scene_rank *k = &x->rank[member[i]];
        double own = end + fabs(scene_noise(x)) / 4;
        struct scene_entry e = {c,
                                {.op = op, .src = -1, .dst = -1, .bytes = bytes},
                                number,
                                start[i] * (1 + k->drift) + k->offset,
                                own * (1 + k->drift) + k->offset};
        struct scene_log *log = &x->log[member[i]];
        if ((log->entries & (log->entries - 1)) == 0)
            log->entry =
                realloc(log->entry, sizeof(e) * (size_t)(log->entries ? 2 * log->entries : 1));
        log->entry[log->entries++] = e;
        if (stream)
            k->stream = own;
        else
            k->t = own;
    }
}

static inline void scene_compute(struct scene_run *x, double takes, int step)
{
    const struct scene *s = x->s;

    for (int r = 0; r < x->ranks; r++) {
        bool here = s->fault == SCENE_HOST ? r / s->gpus == s->culprit / s->gpus : r == s->culprit;
        bool now = s->fault == SCENE_RANK || s->fault == SCENE_HOST;
        x->rank[r].t += takes * (1 + 0.005 * rng_normal(&x->rng)) + (here && now ? s->late : 0);
        (void)step;
    }
}

static inline void scene_dp(struct scene_run *x, enum op op, uint64_t bytes, double takes)
{
    const struct scene *s = x->s;

    for (int g = 0; g < s->gpus; g++)
        scene_call(x, s->hosts + g, op, bytes, takes, s->overlap);
}

static inline void scene_layer(struct scene_run *x, int step, bool backward)
{
    const struct scene *s = x->s;

    scene_dp(x, OP_ALL_GATHER, 64 << 20, 900e-6);
    scene_compute(x, s->compute > 0 ? s->compute : 0.7e-3, step);
    for (int h = 0; h < s->hosts; h++)
        scene_call(x, h, OP_ALL_REDUCE, 16 << 20, 150e-6, false);
    if (backward)
        scene_dp(x, OP_REDUCE_SCATTER, 64 << 20, 950e-6);
}

static inline int scene_by_start(const void *a, const void *b)
{
    const struct scene_entry *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static inline void scene_run(struct scene_run *x, const struct scene *s)
{
    *x = (struct scene_run){.s = s, .ranks = s->hosts * s->gpus};
    rng_seed(&x->rng, s->seed);
    x->rank = calloc((size_t)x->ranks, sizeof(*x->rank));
    x->log = calloc((size_t)x->ranks, sizeof(*x->log));
    x->number = calloc((size_t)scene_comms(s) * OP_COUNT, sizeof(*x->number));
    for (int h = 0; h < s->hosts; h++) {
        double offset = 1e3 + s->offset * (2 * rng_uniform(&x->rng) - 1);
        double drift = s->drift * (2 * rng_uniform(&x->rng) - 1);
        for (int g = 0; g < s->gpus; g++) {
            x->rank[h * s->gpus + g].offset = offset;
            x->rank[h * s->gpus + g].drift = drift;
        }
    }
    for (int step = 0; step < s->steps; step++) {
        if (s->fault == SCENE_SOMETIMES && step % 10 == 3)
            x->rank[s->culprit].t += 40 * s->late;
        for (int l = 0; l < s->layers; l++)
            scene_layer(x, step, false);
        for (int l = 0; l < s->layers; l++)
            scene_layer(x, step, true);
        scene_compute(x, s->compute > 0 ? s->compute : 0.7e-3, step);
        for (int r = 0; r < x->ranks; r++)
            x->rank[r].t = x->rank[r].stream > x->rank[r].t ? x->rank[r].stream : x->rank[r].t;
        if (s->exchange)
            scene_call(x, scene_comms(s) - 1, OP_ALL_TO_ALL, (uint64_t)x->ranks << 12, 80e-6,
                       false);
        scene_call(x, scene_comms(s) - 1, OP_ALL_REDUCE, 4, 60e-6, false);
        scene_compute(x, 1e-3, step);
    }
    for (int r = 0; r < x->ranks; r++)
        qsort(x->log[r].entry, (size_t)x->log[r].entries, sizeof(struct scene_entry),
              scene_by_start);
}

static inline void scene_free(struct scene_run *x)
{
    for (int r = 0; r < x->ranks; r++)
        free(x->log[r].entry);
    free(x->rank);
    free(x->log);
    free(x->number);
}

/* What of it a reader of files would tell. */
static inline int scene_tell(struct record_job *j, const struct scene_run *x, struct err *err)
{
    const struct scene *s = x->s;
    int member[4096], rc = 0;

    record_job_init(j);
    for (int r = 0; r < x->ranks && rc == 0; r++) {
        char host[16], path[32];
        snprintf(host, sizeof(host), "n%02d", r / s->gpus);
        snprintf(path, sizeof(path), "r%d", r);
        struct record_process *p = record_job_process(j, path, host);
        p->device = r % s->gpus;
        p->rank = r;
        int *at = calloc((size_t)scene_comms(s), sizeof(*at));
        for (int c = 0; c < scene_comms(s) && rc == 0; c++) {
            int n = scene_members(s, c, member);
            for (int i = 0; i < n && rc == 0; i++)
                if (member[i] == r)
                    rc = record_job_team(&at[c], j, 1000 + (uint64_t)c, n, i, err);
        }
        for (int i = 0; i < x->log[r].entries && rc == 0; i++) {
            const struct scene_entry *e = &x->log[r].entry[i];
            struct record_what k = e->kind;
            k.comm = at[e->comm];
            record_job_add(j, &k, e->number, (int64_t)(e->start * 1e9), (int64_t)(e->end * 1e9), 0);
        }
        free(at);
    }
    return rc == 0 ? record_job_end(j, err) : -1;
}

#endif
