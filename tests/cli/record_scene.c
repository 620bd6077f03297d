/* SPDX-License-Identifier: BSD-3-Clause */
/* record_scene.c - the records of a job that never ran, as librailgauge-nccl.so would leave them:
 * record_scene DIR KEY=VALUE..., the keys being the members of struct scene, `gpu` (1: times of the
 * GPU's timers, which differ), and `capacity` of a ring. */
#include <inttypes.h>
#include <sys/stat.h>

#include "tests/unit/record_file.h"
#include "tests/unit/record_scene.h"

struct writing {
    const struct scene_run *x;
    int rank, gpu, ce; /* ce: copy engines run the collectives */
    uint64_t capacity;
    struct record_file *f;
    int comm[3];
};

static const char *const op_word[] = {[OP_ALL_GATHER] = "AllGather",
                                      [OP_REDUCE_SCATTER] = "ReduceScatter",
                                      [OP_ALL_TO_ALL] = "AlltoAll",
                                      [OP_ALL_REDUCE] = "AllReduce"};

static void set_times(struct record *r, const struct writing *w, const struct scene_entry *e)
{
    double timer = 77e9 * (1 + w->rank) + 1e6 * w->rank; /* ns: a GPU's timer began when it liked */

    r->start_ns = (uint64_t)(e->start * 1e9) - 20000;
    r->stop_ns = r->start_ns + 4000;
    r->channels = r->channels_started = r->channels_stopped = 4;
    if (w->gpu) {
        r->gpu_start = (uint64_t)(e->start * 1e9 + timer);
        r->gpu_stop = (uint64_t)(e->end * 1e9 + timer);
    }
    /* The host sees it when its proxy thread looks. */
    r->first_ns = (uint64_t)(e->start * 1e9) + (w->gpu ? 30000 + (unsigned)rand() % 20000 : 0);
    r->last_ns = (uint64_t)(e->end * 1e9) + (w->gpu ? 30000 + (unsigned)rand() % 20000 : 0);
}

static void write_exchange(struct writing *w, const struct scene_entry *e, int comm)
{
    int n = w->x->ranks;
    uint64_t group = w->f->head.next + 1;
    struct record *r = record_file_add(w->f, RECORD_GROUP, comm, "", "");

    r->start_ns = (uint64_t)(e->start * 1e9) - 30000;
    for (int i = 0; i < 2 * n; i++) {
        if (i / 2 == w->rank)
            continue;
        r = record_file_add(w->f, RECORD_P2P, comm, i % 2 ? "Recv" : "Send", "ncclInt8");
        r->bytes = r->count = e->kind.bytes / (unsigned)n;
        r->peer = i / 2;
        r->parent = group;
        set_times(r, w, e);
    }
}

static void write_entry(struct writing *w, const struct scene_entry *e)
{
    const struct scene *s = w->x->s;
    int slot = e->comm < s->hosts             ? SCENE_TP
               : e->comm < s->hosts + s->gpus ? SCENE_DP
                                              : SCENE_WORLD;
    int ranks = slot == SCENE_TP ? s->gpus : slot == SCENE_DP ? s->hosts : w->x->ranks;
    bool share = e->kind.op == OP_ALL_GATHER || e->kind.op == OP_REDUCE_SCATTER;

    if (e->kind.op == OP_ALL_TO_ALL) {
        write_exchange(w, e, w->comm[slot]);
        return;
    }
    struct record *r =
        record_file_add(w->f, RECORD_COLL, w->comm[slot], op_word[e->kind.op], "ncclInt8");
    r->bytes = r->count = e->kind.bytes / (unsigned)(share ? ranks : 1);
    r->nccl_seq = e->number;
    r->algo = record_file_name(w->f, "RING");
    r->proto = record_file_name(w->f, e->kind.bytes < 1 << 20 ? "LL" : "SIMPLE");
    r->peer = 0;
    r->proxy_started = r->proxy_stopped = share;
    r->send_net_ns = share ? 100000 : 0; /* of those across hosts */
    r->recv_net_ns = share ? 200000 : 0;
    set_times(r, w, e);
    if (w->ce) {
        r->flags = RECORD_CE;
        r->channels = r->channels_started = r->channels_stopped = 0;
        r->proxy_started = r->proxy_stopped = 0;
        r->first_ns = r->last_ns = r->gpu_start = r->gpu_stop = 0;
    }
}

static int write_rank(struct writing *w, const char *dir)
{
    const struct scene *s = w->x->s;
    char path[4096];
    int host = w->rank / s->gpus, gpu = w->rank % s->gpus;

    w->f = record_file_new(w->capacity);
    w->f->head.pid = 4000 + (unsigned)w->rank;
    w->f->head.job_rank = w->rank;
    w->f->head.closed_ns = 1;
    snprintf(w->f->head.host, sizeof(w->f->head.host), "n%02d", host);
    snprintf(w->f->head.job, sizeof(w->f->head.job), "4711");
    w->comm[SCENE_TP] = record_file_comm(w->f, 1000 + (uint64_t)host, gpu, s->gpus, 1, "");
    w->comm[SCENE_DP] = record_file_comm(w->f, 2000 + (uint64_t)gpu, host, s->hosts, s->hosts, "");
    w->comm[SCENE_WORLD] = record_file_comm(w->f, 3000, w->rank, w->x->ranks, s->hosts, "");
    for (int i = 0; i < w->x->log[w->rank].entries; i++)
        write_entry(w, &w->x->log[w->rank].entry[i]);
    snprintf(path, sizeof(path), "%s/n%02d-%d.rgnccl", dir, host, 4000 + w->rank);
    return record_file_write(w->f, path);
}

int main(int argc, char **argv)
{
    struct scene s = {.hosts = 4,
                      .gpus = 4,
                      .layers = 6,
                      .steps = 20,
                      .overlap = true,
                      .seed = 1,
                      .offset = 2e-3,
                      .drift = 10e-6,
                      .late = 200e-6,
                      .noise = 3e-6};
    struct scene_run x;
    struct writing w = {.x = &x, .capacity = 4096};
    double value, jump = 0; /* s: the clocks of odd ranks are set so far on for every other call */

    for (int i = 2; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq)
            return 64;
        *eq = '\0';
        value = strtod(eq + 1, NULL);
        const char *k = argv[i];
        if (!strcmp(k, "hosts"))
            s.hosts = (int)value;
        else if (!strcmp(k, "gpus"))
            s.gpus = (int)value;
        else if (!strcmp(k, "layers"))
            s.layers = (int)value;
        else if (!strcmp(k, "steps"))
            s.steps = (int)value;
        else if (!strcmp(k, "overlap"))
            s.overlap = value > 0;
        else if (!strcmp(k, "exchange"))
            s.exchange = value > 0;
        else if (!strcmp(k, "ce"))
            w.ce = value > 0;
        else if (!strcmp(k, "seed"))
            s.seed = (unsigned long long)value;
        else if (!strcmp(k, "offset"))
            s.offset = value;
        else if (!strcmp(k, "drift"))
            s.drift = value;
        else if (!strcmp(k, "fault"))
            s.fault = (enum scene_fault)value;
        else if (!strcmp(k, "culprit"))
            s.culprit = (int)value;
        else if (!strcmp(k, "late"))
            s.late = value;
        else if (!strcmp(k, "compute"))
            s.compute = value;
        else if (!strcmp(k, "noise"))
            s.noise = value;
        else if (!strcmp(k, "slow"))
            s.slow = value;
        else if (!strcmp(k, "jump"))
            jump = value;
        else if (!strcmp(k, "gpu"))
            w.gpu = (int)value;
        else if (!strcmp(k, "capacity"))
            w.capacity = (uint64_t)value;
        else
            return 64;
    }
    if (argc < 2)
        return 64;
    mkdir(argv[1], 0777);
    scene_run(&x, &s);
    for (int r = 1; r < x.ranks; r += 2)
        for (int i = 1; i < x.log[r].entries; i += 2) {
            x.log[r].entry[i].start += jump;
            x.log[r].entry[i].end += jump;
        }
    for (w.rank = 0; w.rank < x.ranks; w.rank++)
        if (write_rank(&w, argv[1]) < 0)
            return 74;
    scene_free(&x);
    return 0;
}
