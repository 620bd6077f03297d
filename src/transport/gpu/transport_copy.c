/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/gpu/transport_copy_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/kernels.h"
#include "measure/device/gpu_binding.h"
#include "measure/transports/nccl_opts.h"
#include "measure/verify.h"
#include "transport/mpi/world_mpi.h"
#include "watch/watch.h"

extern const struct transport_calls transport_copy;

/* --- memory of a group, each member's mapped by its neighbours --- */

enum { ALIGN = 4096 };
enum { COPY_CHAIN = 2 << 20 }; /* length of the latency chain, bytes */

struct copy_memory {
    struct gpu_buffer own, left, right; /* neighbours in a ring; for two members only `right` */
    size_t room;                        /* bytes of a message */
};

/* Offer of a member to the others, sent as bytes between equal programs. */
struct copy_offer {
    struct gpu_export handle;
    char host[64], why[160];
    int failed;
};

/* Three regions of each buffer: received data, data to send, the chain. */
static unsigned char *arrives(const struct gpu_buffer *b)
{
    return b->at;
}

static unsigned char *sends(const struct copy_memory *m, const struct gpu_buffer *b)
{
    return b->at + m->room;
}

static unsigned char *chain(const struct copy_memory *m, const struct gpu_buffer *b)
{
    return b->at + 2 * m->room;
}

static const struct gpu_buffer *left_of(const struct copy_memory *m)
{
    return m->left.at ? &m->left : &m->right;
}

static void close_memory(struct copy_memory *m)
{
    gpu_free(&m->left);
    gpu_free(&m->right);
    gpu_free(&m->own);
}

static void make_offer(struct copy_offer *o, struct copy_memory *m, enum gpu_memory kind)
{
    struct err why = {0, ""};

    memset(o, 0, sizeof(*o));
    host_self(o->host, sizeof(o->host));
    o->failed = gpu_alloc(&m->own, kind, 2 * m->room + COPY_CHAIN, &why) < 0 ||
                gpu_export(&m->own, &o->handle, &why) < 0;
    snprintf(o->why, sizeof(o->why), "%.159s", why.text);
}

/* Returns 0, or -1 with the message of the first member that failed; the same on all members. */
static int judge_offers(const struct group *g, const struct copy_offer *all, const char *what,
                        struct err *err)
{
    for (int i = 0; i < g->size; i++)
        if (all[i].failed)
            return err_config(err, "%s: rank %d (host %s): %s", what, g->members[i], all[i].host,
                              all[i].why);
    return 0;
}

static int import_neighbours(struct copy_memory *m, const struct group *g,
                             const struct copy_offer *all, struct err *err)
{
    int right = (g->self + 1) % g->size, left = (g->self + g->size - 1) % g->size;

    if (gpu_import(&m->right, &all[right].handle, err) < 0)
        return -1;
    return left == right ? 0 : gpu_import(&m->left, &all[left].handle, err);
}

/* Try one kind of sharing, for all members or none. */
static int share_memory(struct copy_memory *m, const struct group *g, enum gpu_memory kind,
                        const char *what, struct err *err)
{
    struct copy_offer mine, *all = mem_calloc((size_t)g->size, sizeof(*all));
    struct err why = {0, ""};

    make_offer(&mine, m, kind);
    int rc = world_mpi_trade(g->comm, &mine, sizeof(mine), all, err);
    if (rc == 0)
        rc = judge_offers(g, all, what, err);
    if (rc == 0) {
        mine.failed = import_neighbours(m, g, all, &why) < 0;
        snprintf(mine.why, sizeof(mine.why), "%.159s", why.text);
        rc = world_mpi_trade(g->comm, &mine, sizeof(mine), all, err);
        if (rc == 0)
            rc = judge_offers(g, all, what, err);
    }
    if (rc < 0)
        close_memory(m);
    free(all);
    return rc;
}

/* Compare the host names of all members; every member gets the same result. */
static int one_host(const struct group *g, bool *yes, char other[64], struct err *err)
{
    char mine[64] = "", (*all)[64] = mem_calloc((size_t)g->size, sizeof(*all));

    host_self(mine, sizeof(mine));
    int rc = world_mpi_trade(g->comm, mine, sizeof(mine), all, err);
    *yes = true;
    for (int i = 0; i < g->size && rc == 0; i++)
        if (strcmp(all[i], all[0])) {
            *yes = false;
            snprintf(other, 64, "%s", all[i]);
            break;
        }
    free(all);
    return rc;
}

/* Collective over the group; succeeds or fails on all members.  EXIT_CONFIG reports each attempt,
 * the member and the reason.  FABRIC handles are tried first: they are as good within a host, and
 * an MNNVL job would use them. */
static int open_memory(struct copy_memory *m, const struct group *g, size_t bytes, struct err *err)
{
    struct err fabric = {0, ""}, ipc = {0, ""};
    char other[64] = "";
    bool near;

    *m = (struct copy_memory){.room = (bytes + ALIGN - 1) / ALIGN * ALIGN};
    if (one_host(g, &near, other, err) < 0)
        return -1;
    if (share_memory(m, g, GPU_FABRIC, "FABRIC handles", &fabric) == 0)
        return 0;
    if (!near)
        return err_config(err, "no shared memory: CUDA IPC ends at the host (%s is another); %s",
                          other, fabric.text);
    if (share_memory(m, g, GPU_PLAIN, "CUDA IPC", &ipc) == 0)
        return 0;
    return err_config(err, "no shared memory: %.240s; %.240s", ipc.text, fabric.text);
}

/* --- timed operations --- */

enum { MARKS = 257, CHASE_STEPS = 256, CHASE_BYTES = 8 };

static bool loads; /* every rank has the kernel that follows a chain */

struct copy_ctx {
    struct copy_memory memory;
    struct gpu_buffer word; /* results of kernels; page-locked */
    gpu_stream stream;
    struct gpu_clock *clock;
    void *comm;
    int self, size, *member;
    char host[64];
    unsigned checks;
    bool chain;
};

/* Members that copy in each operation, and members that receive. */
static const struct {
    /* everybody: true: all members copy; else only the source, or with read the target */
    bool there, everybody;
    int copies; /* copies per sample */
} ops[OP_COUNT] = {
    [OP_SENDRECV] = {true, true, 1},
    [OP_PAIR_LATENCY] = {true, false, 1},
    [OP_PAIR_BW] = {true, false, OP_PAIR_WINDOW},
    [OP_PAIR_BIBW] = {true, true, OP_PAIR_WINDOW},
};

static bool chases(enum op op, size_t bytes)
{
    return loads && op == OP_PAIR_LATENCY && bytes <= CHASE_BYTES;
}

static int mover(enum op op, size_t bytes)
{
    return chases(op, bytes) || copy_opts_asked.way == COPY_WRITE ? 0 : 1;
}

static bool moves(const struct copy_ctx *c, enum op op, size_t bytes)
{
    return ops[op].everybody || c->self == mover(op, bytes);
}

static bool receives(const struct copy_ctx *c, enum op op)
{
    return ops[op].everybody || c->self == 1;
}

static int put_copy(struct copy_ctx *c, size_t bytes, struct err *err)
{
    const struct copy_memory *m = &c->memory;
    bool write = copy_opts_asked.way == COPY_WRITE;
    void *to = arrives(write ? &m->right : &m->own);
    const void *from = sends(m, write ? &m->own : left_of(m));

    return copy_opts_asked.engine == COPY_SM ? kernel_copy(to, from, bytes, c->stream, err)
                                             : gpu_memcpy(to, from, bytes, c->stream, err);
}

static int put_sample(struct copy_ctx *c, enum op op, size_t bytes, struct err *err)
{
    int rc = 0;

    if (chases(op, bytes))
        return kernel_chase(chain(&c->memory, &c->memory.right), 0, CHASE_STEPS,
                            (uint64_t *)(void *)c->word.at, c->stream, err);
    for (int i = 0; i < ops[op].copies && rc == 0; i++)
        rc = put_copy(c, bytes, err);
    return rc;
}

/* Time n samples back to back, in portions that fit the clock. */
static int time_samples(struct copy_ctx *c, enum op op, size_t bytes, int n, double *sec,
                        struct err *err)
{
    double share = 1.0 / (chases(op, bytes) ? CHASE_STEPS : ops[op].copies);

    for (int done = 0, now; done < n; done += now) {
        now = n - done < MARKS - 1 ? n - done : MARKS - 1;
        int rc = gpu_clock_record(c->clock, 0, c->stream, err);
        for (int i = 0; i < now && rc == 0; i++) {
            rc = put_sample(c, op, bytes, err);
            if (rc == 0)
                rc = gpu_clock_record(c->clock, i + 1, c->stream, err);
        }
        if (rc < 0 || gpu_stream_wait(c->stream, err) < 0 ||
            gpu_clock_read(c->clock, now, sec + done, err) < 0)
            return -1;
        watch_step();
        for (int i = 0; i < now; i++)
            sec[done + i] = sec[done + i] > 0 ? sec[done + i] * share : 1e-9;
    }
    return 0;
}

static int refuse(enum op op, struct err *err)
{
    return err_config(err, "transport copy has no %s: %s", op_name(op),
                      transport_find("copy")->only);
}

/* Write a chain of 8-byte indices into the memory of every member, once per session. */
static int make_chain(struct copy_ctx *c, struct err *err)
{
    if (c->chain)
        return 0;
    if (kernel_chain(chain(&c->memory, &c->memory.own), COPY_CHAIN / 8, c->stream, err) < 0)
        return -1;
    c->chain = true;
    return gpu_stream_wait(c->stream, err);
}

static int copy_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct copy_ctx *c = ctx;
    int rc = ops[op].there ? 0 : refuse(op, err);

    if (rc == 0 && chases(op, bytes))
        rc = make_chain(c, err);
    if (world_mpi_together(c->comm, rc, err)) /* start all members together */
        return -1;
    watch_enter("%s of %zu bytes", op_name(op), bytes);
    if (moves(c, op, bytes))
        rc = time_samples(c, op, bytes, n, sec, err);
    watch_leave();
    if (world_mpi_together(c->comm, rc, err))
        return -1;
    return ops[op].everybody ? 0 : world_mpi_follow(c->comm, mover(op, bytes), sec, n, err);
}

/* --- check --- */

/* Copy host memory to and from the GPU, for programs without kernels. */
static int fill_by_host(struct copy_ctx *c, size_t bytes, int rank, struct err *err)
{
    unsigned char *data = mem_calloc(1, bytes);

    verify_fill(data, bytes, rank, 0, c->checks);
    int rc = gpu_memcpy(sends(&c->memory, &c->memory.own), data, bytes, c->stream, err);
    if (rc == 0)
        rc = gpu_stream_wait(c->stream, err);
    free(data);
    return rc;
}

static int fill(struct copy_ctx *c, size_t bytes, struct err *err)
{
    int rank = c->member[c->self];

    if (gpu_memset(arrives(&c->memory.own), 0xee, bytes, c->stream, err) < 0)
        return -1;
    if (!kernels_there(NULL))
        return fill_by_host(c, bytes, rank, err);
    if (kernel_fill(sends(&c->memory, &c->memory.own), bytes, verify_key(rank, 0, c->checks),
                    c->stream, err) < 0)
        return -1;
    return gpu_stream_wait(c->stream, err);
}

static int find_on_host(struct copy_ctx *c, const struct verify *v, int from, struct err *err)
{
    const struct verify_piece all = {.len = v->bytes, .rank = from};
    unsigned char *data = mem_calloc(1, v->bytes);
    int rc = gpu_memcpy(data, arrives(&c->memory.own), v->bytes, c->stream, err);

    if (rc == 0)
        rc = gpu_stream_wait(c->stream, err);
    if (rc == 0)
        rc = verify_flip(v, data, v->bytes, err);
    if (rc == 0)
        rc = verify_find_piece(v, data, &all, err);
    free(data);
    return rc;
}

/* Check by a kernel.  A difference is verified again on the host, for the message. */
static int find(struct copy_ctx *c, const struct verify *v, int from, struct err *err)
{
    uint64_t wrong;

    if (!kernels_there(NULL) || getenv("RAILGAUGE_FLIP"))
        return find_on_host(c, v, from, err);
    if (kernel_find(arrives(&c->memory.own), v->bytes, verify_key(from, 0, v->seed),
                    (uint64_t *)(void *)c->word.at, c->stream, err) < 0 ||
        gpu_stream_wait(c->stream, err) < 0)
        return -1;
    memcpy(&wrong, c->word.at, sizeof(wrong));
    if (wrong == UINT64_MAX)
        return 0;
    if (find_on_host(c, v, from, err) < 0)
        return -1;
    return err_set(err,
                   "%s of %zu bytes: rank %d (host %s): byte %llu was wrong when the GPU looked "
                   "and is right now",
                   op_name(v->op), v->bytes, v->rank, v->host, (unsigned long long)wrong);
}

static int copy_check(void *ctx, enum op op, size_t bytes, struct err *err)
{
    struct copy_ctx *c = ctx;
    struct verify v = {op, bytes, c->member[c->self], c->host, ++c->checks};
    int left = c->member[(c->self + c->size - 1) % c->size];
    int rc = ops[op].there ? fill(c, bytes, err) : refuse(op, err);

    if (world_mpi_together(c->comm, rc, err))
        return -1;
    if (ops[op].everybody || c->self == (copy_opts_asked.way == COPY_WRITE ? 0 : 1)) {
        watch_enter("check of %s of %zu bytes", op_name(op), bytes);
        rc = put_copy(c, bytes, err);
        if (rc == 0)
            rc = gpu_stream_wait(c->stream, err);
        watch_leave();
    }
    if (world_mpi_together(c->comm, rc, err))
        return -1;
    return receives(c, op) ? find(c, &v, left, err) : 0;
}

/* --- open and close --- */

static void copy_close(void *ctx)
{
    struct copy_ctx *c = ctx;

    if (!c)
        return;
    close_memory(&c->memory);
    gpu_free(&c->word);
    gpu_clock_close(c->clock);
    if (c->stream)
        gpu_stream_close(c->stream);
    free(c->member);
    free(c);
}

static int open_own(struct copy_ctx *c, struct err *err)
{
    const char *why;

    if (!gpu_facts())
        return err_config(err, "no GPU was opened");
    if (copy_opts_asked.engine == COPY_SM && !kernels_there(&why))
        return err_config(err, "--copy-engine sm needs a kernel: %s", why);
    if (gpu_stream_open(&c->stream, err) < 0 || gpu_clock_open(&c->clock, MARKS, err) < 0)
        return -1;
    return gpu_alloc(&c->word, GPU_PINNED, 64, err);
}

static int copy_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    struct copy_ctx *c = mem_calloc(1, sizeof(*c));

    c->comm = g->comm;
    c->self = g->self;
    c->size = g->size;
    c->member = mem_dup(g->members, (size_t)g->size, sizeof(*c->member));
    host_self(c->host, sizeof(c->host));
    if (world_mpi_together(c->comm, open_own(c, err), err) ||
        open_memory(&c->memory, g, max_bytes, err) < 0) {
        copy_close(c);
        return -1;
    }
    *ctx = c;
    return 0;
}

/* --- before a campaign --- */

static void note_memory(const struct fabric_handle *each, int n)
{
    char text[256];

    for (int i = 0; i < n; i++) {
        if (each[i].import == 1 || n == 1)
            continue;
        snprintf(text, sizeof(text), "CUDA IPC within hosts; FABRIC handles: rank %d (host %s): %s",
                 i, each[i].host, each[i].why);
        log_warn("memory is shared by %s", text);
        json_provenance_add("copy_memory", text);
        return;
    }
    json_provenance_add("copy_memory", "FABRIC handles");
}

/* Try FABRIC handles; print and record how memory is shared. */
static int copy_start(const struct probe_args *a, struct world *w, struct err *err)
{
    struct fabric_handle *each = NULL;
    char text[64];

    (void)a;
    if (gpu_binding_take(w, nccl_opts_asked.share_gpu, NULL, err) < 0 ||
        fabric_handle_try(w, &each, err) < 0)
        return -1;
    loads = true;
    for (int i = 0; i < w->size; i++)
        loads = loads && each[i].kernels;
    json_provenance_add("copy_latency",
                        loads ? "of a load, up to 8 bytes" : "of a copy: no kernels");
    if (w->rank == 0)
        note_memory(each, w->size);
    free(each);
    snprintf(text, sizeof(text), "%s, %s", copy_engine_name[copy_opts_asked.engine],
             copy_way_name[copy_opts_asked.way]);
    json_provenance_add("copy", text);
    return 0;
}

const struct transport_calls transport_copy = {
    .open = copy_open,
    .run = copy_run,
    .check = copy_check,
    .close = copy_close,
    .start = copy_start,
};
