/* SPDX-License-Identifier: BSD-3-Clause */
/* What runs in the stream: every rank tells where its buffers are, then reads what it needs from
 * the others' and waits until nobody reads its own any more. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl_fake.h"

const char *const op_name[OP_KINDS] = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
    "AlltoAll",  "Gather",    "Scatter",       "Send",      "Recv",
};
static const size_t dtype_size[NCCL_DTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

size_t ops_bytes(const struct call *call)
{
    return call->count * dtype_size[call->dtype];
}

void ops_spans(const struct ncclComm *c, const struct op *op, size_t *send, size_t *recv)
{
    size_t n = (size_t)c->ranks, bytes = ops_bytes(&op->call);
    bool root = c->rank == op->call.root;

    *send = *recv = bytes;
    switch (op->call.kind) {
    case OP_ALLGATHER:
        *recv = n * bytes;
        break;
    case OP_REDUCESCATTER:
        *send = n * bytes;
        break;
    case OP_ALLTOALL:
        *send = *recv = n * bytes;
        break;
    case OP_GATHER_ROOT:
        *recv = root ? n * bytes : 0;
        break;
    case OP_SCATTER_ROOT:
        *send = root ? n * bytes : 0;
        break;
    case OP_REDUCE_ROOT:
        *recv = root ? bytes : 0;
        break;
    case OP_BROADCAST:
        *send = root ? bytes : 0;
        break;
    case OP_SEND:
        *recv = 0;
        break;
    case OP_RECV:
        *send = 0;
        break;
    }
}

/* --- the memory of the others --- */
struct view {
    struct peek peek;
    const unsigned char *at;
};

static int find_place(struct place *p, const void *at)
{
    size_t offset = 0;

    memset(p, 0, sizeof(*p));
    if (at && !cuda.find(at, p->file, &offset))
        return -1;
    p->offset = offset;
    return 0;
}

/* [from, from + bytes) of rank r's send or receive buffer. */
static int look(struct ncclComm *c, const struct op *op, int r, bool recv, size_t from,
                size_t bytes, struct view *v)
{
    struct seat *seat = &c->table->seat[r];
    struct place p = recv ? seat->recv : seat->send;

    *v = (struct view){0};
    if (!bytes)
        return 0;
    if (r == c->rank) {
        v->at = (recv ? (const unsigned char *)op->recv : op->send) + from;
        return 0;
    }
    p.offset += from;
    if (peek(&v->peek, &p, bytes)) {
        log_warn("Cuda failure 'invalid resource handle': memory of rank %d (%s)", r, p.file);
        return -1;
    }
    v->at = v->peek.at;
    return 0;
}

static int copy_from(struct ncclComm *c, const struct op *op, int r, bool recv, size_t from,
                     void *to, size_t bytes)
{
    struct view v;

    if (look(c, op, r, recv, from, bytes, &v))
        return -1;
    if (bytes && v.at != to)
        memmove(to, v.at, bytes);
    peek_end(&v.peek);
    return 0;
}

/* Elements [first, first + count) of all send buffers into `to`. */
static int reduce_part(struct ncclComm *c, const struct op *op, size_t first, size_t count,
                       void *to)
{
    struct view *v = calloc((size_t)c->ranks, sizeof(*v));
    const void **from = calloc((size_t)c->ranks, sizeof(*from));
    size_t size = dtype_size[op->call.dtype];
    int rc = v && from ? 0 : -1;

    for (int r = 0; !rc && r < c->ranks; r++) {
        rc = look(c, op, r, false, first * size, count * size, &v[r]);
        from[r] = v[r].at;
    }
    if (!rc && count)
        math_reduce(to, from, c->ranks, count, op->call.dtype, op->call.redop);
    for (int r = 0; v && r < c->ranks; r++)
        peek_end(&v[r].peek);
    free(v);
    free(from);
    return rc;
}

/* --- the collectives, with addresses of the host; between the barrier that makes all buffers known
 * and the one that says that nobody reads any more.  In place is safe: what a rank writes, only
 * that rank reads. --- */
static int all_reduce(struct ncclComm *c, const struct op *op)
{
    size_t n = op->call.count, size = dtype_size[op->call.dtype], ranks = (size_t)c->ranks;
    size_t share = n / ranks, mine = (size_t)c->rank * share;
    unsigned char *recv = op->recv;

#define SHARE(r) ((r) == ranks - 1 ? n - (r)*share : share)
    if (reduce_part(c, op, mine, SHARE((size_t)c->rank), recv + mine * size) ||
        meet_barrier(c, false))
        return -1;
    for (size_t r = 0; r < ranks; r++)
        if (copy_from(c, op, (int)r, true, r * share * size, recv + r * share * size,
                      SHARE(r) * size))
            return -1;
    return 0;
}

static int reduce_scatter(struct ncclComm *c, const struct op *op)
{
    return reduce_part(c, op, (size_t)c->rank * op->call.count, op->call.count, op->recv);
}

static int reduce(struct ncclComm *c, const struct op *op)
{
    return c->rank == op->call.root ? reduce_part(c, op, 0, op->call.count, op->recv) : 0;
}

static int broadcast(struct ncclComm *c, const struct op *op)
{
    return copy_from(c, op, op->call.root, false, 0, op->recv, ops_bytes(&op->call));
}

/* One block from every rank, `step` bytes apart in its buffer from rank to rank of the readers. */
static int collect(struct ncclComm *c, const struct op *op, size_t from)
{
    size_t bytes = ops_bytes(&op->call);

    for (int r = 0; r < c->ranks; r++)
        if (copy_from(c, op, r, false, from, (unsigned char *)op->recv + (size_t)r * bytes, bytes))
            return -1;
    return 0;
}

static int all_gather(struct ncclComm *c, const struct op *op)
{
    return collect(c, op, 0);
}

static int all_to_all(struct ncclComm *c, const struct op *op)
{
    return collect(c, op, (size_t)c->rank * ops_bytes(&op->call));
}

static int gather(struct ncclComm *c, const struct op *op)
{
    return c->rank == op->call.root ? collect(c, op, 0) : 0;
}

static int scatter(struct ncclComm *c, const struct op *op)
{
    size_t bytes = ops_bytes(&op->call);

    return copy_from(c, op, op->call.root, false, (size_t)c->rank * bytes, op->recv, bytes);
}

static int (*const collective[OP_SEND])(struct ncclComm *, const struct op *) = {
    all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter,
};

static bool never(struct ncclComm *c, void *arg)
{
    (void)c;
    (void)arg;
    return false;
}

/* Kernels that wait for what nobody sends; the stand-in says why on stderr, NCCL says nothing. */
static int hang(struct ncclComm *c, const char *why)
{
    fprintf(stderr, "fake NCCL: rank %d hangs: %s\n", c->rank, why);
    meet_wait(c, never, NULL, false);
    return NCCL_SUCCESS;
}

static bool same_call(struct ncclComm *c, const struct op *op, char why[256])
{
    for (int r = 0; r < c->ranks; r++) {
        const struct call *other = &c->table->seat[r].call;

        if (memcmp(other, &op->call, sizeof(*other))) {
            snprintf(why, 256, "it is in %s of %zu elements, rank %d in %s of %zu",
                     op_name[op->call.kind], (size_t)op->call.count, r, op_name[other->kind],
                     (size_t)other->count);
            return false;
        }
    }
    return true;
}

static int run_collective(struct ncclComm *c, const struct op *op)
{
    struct seat *seat = &c->table->seat[c->rank];
    struct op here = {op->call, NULL, NULL, NULL};
    char why[256];

    if (!rules_reach(c, op))
        return NCCL_SUCCESS;
    here.send = cuda.host(op->send);
    here.recv = cuda.host(op->recv);
    seat->call = op->call;
    if (find_place(&seat->send, op->send) || find_place(&seat->recv, op->recv))
        return NCCL_UNHANDLED_CUDA;
    if (meet_barrier(c, false))
        return NCCL_SUCCESS;
    if (!same_call(c, op, why))
        return hang(c, why);
    if (collective[op->call.kind](c, &here))
        return atomic_load(&c->abort) ? NCCL_SUCCESS : NCCL_UNHANDLED_CUDA;
    meet_barrier(c, false);
    return NCCL_SUCCESS;
}

/* --- sends and receives of a group: whichever can go on goes on --- */
enum step { TO_POST, POSTED, DONE };

struct traffic {
    const struct op *op;
    int n, left;
    unsigned char *step;
    int failed;
    char odd[160]; /* a send and a receive that are not of one size */
};

static bool send_step(struct ncclComm *c, const struct op *op, unsigned char *step,
                      struct traffic *t)
{
    struct box *box = meet_box(c, c->rank, op->call.root);
    unsigned posted = atomic_load(&box->posted), taken = atomic_load(&box->taken);

    if (*step == TO_POST && posted == taken) {
        if (find_place(&box->from, op->send))
            t->failed = NCCL_UNHANDLED_CUDA;
        box->bytes = ops_bytes(&op->call);
        atomic_store(&box->posted, posted + 1);
        meet_ring(c);
        *step = POSTED;
        return true;
    }
    if (*step == POSTED && posted == taken) {
        *step = DONE;
        return true;
    }
    return false;
}

static bool recv_step(struct ncclComm *c, const struct op *op, unsigned char *step,
                      struct traffic *t)
{
    struct box *box = meet_box(c, op->call.root, c->rank);
    size_t bytes = ops_bytes(&op->call);
    struct peek p = {0};

    if (atomic_load(&box->posted) == atomic_load(&box->taken))
        return false;
    if (box->bytes != bytes) {
        snprintf(t->odd, sizeof(t->odd), "it receives %zu bytes of rank %d, which sends %zu", bytes,
                 op->call.root, (size_t)box->bytes);
        return false;
    }
    if (bytes && peek(&p, &box->from, bytes)) {
        t->failed = NCCL_UNHANDLED_CUDA;
    } else if (bytes) {
        memmove(cuda.host(op->recv), p.at, bytes);
        peek_end(&p);
    }
    atomic_fetch_add(&box->taken, 1);
    meet_ring(c);
    *step = DONE;
    return true;
}

/* Is there an earlier one of the same kind and peer that is not through yet? */
static bool behind(const struct traffic *t, int i)
{
    for (int j = 0; j < i; j++)
        if (t->step[j] != DONE && t->op[j].call.kind == t->op[i].call.kind &&
            t->op[j].call.root == t->op[i].call.root)
            return true;
    return false;
}

static bool traffic_ready(struct ncclComm *c, void *arg)
{
    struct traffic *t = arg;
    bool moved = true;

    while (moved && t->left && !t->failed) {
        moved = false;
        for (int i = 0; i < t->n; i++) {
            if (t->step[i] == DONE || behind(t, i))
                continue;
            moved |= (t->op[i].call.kind == OP_SEND ? send_step : recv_step)(c, &t->op[i],
                                                                             &t->step[i], t);
            t->left -= t->step[i] == DONE;
        }
    }
    return !t->left || t->failed || *t->odd;
}

static int run_traffic(struct ncclComm *c, const struct op *op, int n)
{
    struct traffic t = {.op = op, .n = n, .left = n, .step = calloc((size_t)n, 1)};
    int rc = t.step ? NCCL_SUCCESS : NCCL_SYSTEM;

    for (int i = 0; i < n; i++)
        if (!rules_reach(c, &op[i]))
            goto done; /* one kernel does all of a group: it is dead */
    if (t.step && !meet_wait(c, traffic_ready, &t, false))
        rc = *t.odd && !t.failed ? hang(c, t.odd) : t.failed;
    if (!rc)
        cost_p2p(c, op, n);
done:
    free(t.step);
    return rc;
}

/* --- faults --- */
static int runs; /* operations that this process has begun; one stream at a time counts */

static void fault_before(struct ncclComm *c, int now)
{
    double more = 0;

    if (cuda.fault("die", now, &more))
        kill(getpid(), SIGKILL);
    if (cuda.fault("slow", now, &more)) {
        struct timespec t = {(time_t)more, (long)((more - (double)(time_t)more) * 1e9)};
        nanosleep(&t, NULL);
    }
    if (cuda.fault("async", now, &more) && !atomic_load(&c->async)) {
        log_warn("Call to ibv_poll_cq failed: injected fault");
        meet_fail_late(c, NCCL_SYSTEM, more);
    }
}

static void fault_after(struct ncclComm *c, const struct op *op, int n, int now)
{
    double more = 0;

    if (!cuda.fault("corrupt", now, &more))
        return;
    for (int i = n - 1; i >= 0; i--) {
        size_t bytes, send;

        ops_spans(c, &op[i], &send, &bytes);
        if (bytes) {
            ((unsigned char *)cuda.host(op[i].recv))[bytes / 2] ^= 0x10;
            return;
        }
    }
}

static bool is_p2p(const struct op *op)
{
    return op->call.kind >= OP_SEND;
}

/* A run of collectives one by one, or all of the group's sends and receives together. */
static int run_some(struct ncclComm *c, const struct op *op, int n)
{
    int now = __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED), rc;

    fault_before(c, now);
    if (atomic_load(&c->async)) {
        meet_wait(c, never, NULL, false); /* a broken communicator moves nothing until its abort */
        return NCCL_SUCCESS;
    }
    rc = is_p2p(op) ? run_traffic(c, op, n) : run_collective(c, op);
    if (!rc && !atomic_load(&c->abort))
        fault_after(c, op, n, now);
    return rc;
}

static void run(void *arg)
{
    struct work *w = arg;
    struct ncclComm *c = w->comm;
    bool captured = w->captured;
    int rc = NCCL_SUCCESS;

    pthread_mutex_lock(&c->turn);
    for (int i = 0, n; i < w->ops && !rc && !c->closed && !atomic_load(&c->abort); i += n) {
        for (n = 1; is_p2p(&w->op[i]) && i + n < w->ops && is_p2p(&w->op[i + n]); n++)
            ;
        prof_kernel(w, i, n);
        rc = run_some(c, &w->op[i], n);
        if (!c->closed && !atomic_load(&c->abort) && !atomic_load(&c->async))
            prof_kernel_done(w, i, n);
    }
    if (rc && c->table)
        meet_fail(c, rc);
    pthread_mutex_unlock(&c->turn);
    if (!captured) {
        prof_free(w);
        free(w);
        atomic_fetch_sub(&c->queued, 1);
    }
}

int work_launch(struct work *w)
{
    struct ncclComm *c = w->comm;
    int status = 0;

    if (cuda.StreamIsCapturing && cuda.StreamIsCapturing(w->stream, &status))
        status = 0;
    w->captured = status != 0;
    if (w->captured) {
        w->next = c->kept;
        c->kept = w;
    } else {
        atomic_fetch_add(&c->queued, 1);
    }
    if (!w->captured)
        prof_launch(w);
    if (!cuda.LaunchHostFunc(w->stream, run, w))
        return NCCL_SUCCESS;
    if (!w->captured) {
        atomic_fetch_sub(&c->queued, 1);
        prof_free(w);
        free(w);
    }
    return NCCL_UNHANDLED_CUDA;
}
