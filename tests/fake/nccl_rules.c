/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL asks of its arguments: what it refuses, what its kernels die of, and what it leaves
 * undefined.  Facts are of NCCL 2.28.9 where nothing else is said. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_fake.h"

void rules_undefined(const char *fmt, ...)
{
    va_list ap;

    fputs("fake NCCL: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\n", stderr);
    abort();
}

/* --- the configuration (src/init.cc, parseCommConfig) --- */
struct limits {
    size_t at;
    int least, most;
    const char *name;
};
#define FIELD(field, least, most, name)                                                            \
    {                                                                                              \
        offsetof(struct nccl_config, field), least, most, name                                     \
    }
static const struct limits fields[] = {
    FIELD(blocking, 0, 1, "blocking"),
    FIELD(cga_cluster_size, 0, INT_MAX, "cgaClusterSize"),
    FIELD(split_share, 0, 1, "splitShare"),
    FIELD(collnet_enable, 0, 1, "collnetEnable"),
    FIELD(cta_policy, 0, 2, "policy"),
    FIELD(shrink_share, 0, 1, "shrinkShare"),
    FIELD(nvls_ctas, 1, INT_MAX, "nvlsCTAs"),
    FIELD(n_channels_per_net_peer, 1, 64, "nChannelsPerNetPeer"),
    FIELD(nvlink_centric_sched, 0, 1, "nvlinkCentricSched"),
    FIELD(graph_usage_mode, 0, 2, "graphUsageMode"), /* from here on src/init.cc of 2.30.7 */
    FIELD(num_rma_ctx, 0, INT_MAX, "numRmaCtx"),
    FIELD(max_p2p_peers, 1, INT_MAX, "maxP2pPeers"),
    FIELD(graph_stream_ordering, 0, 1, "graphStreamOrdering"),
};

static int field(const struct nccl_config *config, size_t at)
{
    int value;

    memcpy(&value, (const char *)config + at, sizeof(value));
    return value;
}

static void unset(struct nccl_config *config, size_t at)
{
    const int value = NCCL_UNDEF_INT;

    memcpy((char *)config + at, &value, sizeof(value));
}

/* One that is given needs the other: "not set" is the smallest number there is. */
static bool ctas_fit(const struct nccl_config *c)
{
    return (c->min_ctas == NCCL_UNDEF_INT || c->min_ctas > 0) &&
           (c->max_ctas == NCCL_UNDEF_INT || c->max_ctas > 0) && c->min_ctas <= c->max_ctas;
}

int rules_config(struct nccl_config *out, const struct nccl_config *given)
{
    size_t size = 0;

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        unset(out, fields[i].at);
    unset(out, offsetof(struct nccl_config, min_ctas));
    unset(out, offsetof(struct nccl_config, max_ctas));
    unset(out, offsetof(struct nccl_config, traffic_class));
    if (!given)
        return NCCL_SUCCESS;
    memcpy(&size, given,
           sizeof(size)); /* so much of it there is; of what follows nothing is read */
    memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    if (out->magic != 0xcafebeef) {
        log_warn("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
        return NCCL_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        int value = field(out, fields[i].at);

        if (value != NCCL_UNDEF_INT && (value < fields[i].least || value > fields[i].most)) {
            log_warn("Invalid config %s attribute value %d", fields[i].name, value);
            return NCCL_INVALID_ARGUMENT;
        }
    }
    if (!ctas_fit(out)) {
        log_warn("Invalid config min/max channels attribute value %d/%d", out->min_ctas,
                 out->max_ctas);
        return NCCL_INVALID_ARGUMENT;
    }
    return NCCL_SUCCESS;
}

/* --- an operation's arguments (src/misc/argcheck.cc, ArgsCheck; src/enqueue.cc, taskAppend) --- */
static bool reduces(const struct call *call)
{
    return call->kind == OP_ALLREDUCE || call->kind == OP_REDUCESCATTER ||
           call->kind == OP_REDUCE_ROOT;
}

static int check_numbers(const struct ncclComm *c, const struct call *call)
{
    const char *name = op_name[call->kind];
    int major = 9;

    if (call->root < 0 || call->root >= c->ranks) {
        log_warn("%s : invalid root %d (root should be in the 0..%d range)", name, call->root,
                 c->ranks);
        return NCCL_INVALID_ARGUMENT;
    }
    if (call->dtype < 0 || call->dtype >= (c->self.version < 22400 ? 10 : NCCL_DTYPES)) {
        log_warn("%s : invalid type %d", name, call->dtype);
        return NCCL_INVALID_ARGUMENT;
    }
    if (call->redop < 0 || call->redop >= NCCL_REDOPS) {
        log_warn("%s : invalid reduction operation %d", name, call->redop);
        return NCCL_INVALID_ARGUMENT;
    }
    if (cuda.DeviceGetAttribute) /* 75: the first number of the compute capability */
        cuda.DeviceGetAttribute(&major, 75, c->self.device);
    if (reduces(call) && call->dtype >= NCCL_FLOAT8E4M3 && major < 9) {
        log_warn("FP8 reduction support begins with sm90 capable devices.");
        return NCCL_INVALID_ARGUMENT;
    }
    return NCCL_SUCCESS;
}

/* NCCL_CHECK_POINTERS=1 only: else nobody looks before a kernel does (CudaPtrCheck). */
static int check_pointer(const struct ncclComm *c, const void *at, const char *which,
                         const char *name)
{
    int owner = cuda.owner(at);

    if (owner == FAKE_STRANGER) {
        log_warn("%s : %s %p is not a valid pointer", name, which, at);
        return NCCL_INVALID_ARGUMENT;
    }
    if (owner >= 0 && owner != c->self.device) {
        log_warn("%s : %s allocated on device %d mismatchs with NCCL device %d", name, which, owner,
                 c->self.device);
        return NCCL_INVALID_ARGUMENT;
    }
    return NCCL_SUCCESS;
}

static int check_pointers(const struct ncclComm *c, const struct op *op)
{
    const char *text = getenv("NCCL_CHECK_POINTERS"), *name = op_name[op->call.kind];
    bool root = c->rank == op->call.root;
    int rc = NCCL_SUCCESS;

    if (!text || strtol(text, NULL, 0) == 0)
        return NCCL_SUCCESS;
    if (op->call.kind >= OP_SEND)
        return op->call.count
                   ? check_pointer(c, op->call.kind == OP_SEND ? op->send : op->recv, "buff", name)
                   : NCCL_SUCCESS;
    if (op->call.kind != OP_BROADCAST || root)
        rc = check_pointer(c, op->send, "sendbuff", name);
    if (!rc && (op->call.kind != OP_REDUCE_ROOT || root))
        rc = check_pointer(c, op->recv, "recvbuff", name);
    return rc;
}

/* The one offset at which the buffers may be the same memory: that of the send buffer in the
 * receive buffer (src/nccl.h.in says it at each function); false: there is none (AlltoAll). */
static bool in_place(const struct ncclComm *c, const struct op *op)
{
    const unsigned char *send = op->send, *recv = op->recv;
    size_t bytes = ops_bytes(&op->call);

    switch (op->call.kind) {
    case OP_ALLGATHER:
        return send == recv + (size_t)c->rank * bytes;
    case OP_GATHER_ROOT:
        return send == recv + (size_t)op->call.root * bytes;
    case OP_REDUCESCATTER:
        return recv == send + (size_t)c->rank * bytes;
    case OP_SCATTER_ROOT:
        return recv == send + (size_t)op->call.root * bytes;
    case OP_ALLTOALL:
        return false;
    default:
        return send == recv;
    }
}

static bool meet_in_memory(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const unsigned char *x = a, *y = b;

    return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

static void check_overlap(const struct ncclComm *c, const struct op *op)
{
    size_t send, recv;

    ops_spans(c, op, &send, &recv);
    if (meet_in_memory(op->send, send, op->recv, recv) && !in_place(c, op))
        rules_undefined(
            "%s on rank %d: %zu bytes at %p overlap %zu at %p, and not as it is defined "
            "in place",
            op_name[op->call.kind], c->rank, send, op->send, recv, op->recv);
}

int rules_op(const struct ncclComm *c, const struct op *op)
{
    int rc = check_numbers(c, &op->call);

    if (!rc)
        rc = check_pointers(c, op);
    if (!rc && op->call.kind < OP_SEND)
        check_overlap(c, op);
    return rc;
}

/* --- a group --- */
static bool is(const struct request *r, const struct request *of, enum op_kind kind)
{
    return r->comm == of->comm && r->op.call.kind == (int)kind;
}

/* To itself a rank sends and receives in one group (src/enqueue.cc, scheduleP2pTasksToPlan). */
static int check_self(const struct request *all, int count, const struct request *r)
{
    int sends = 0, receives = 0;

    for (int i = 0; i < count; i++) {
        sends += is(&all[i], r, OP_SEND) && all[i].op.call.root == r->comm->rank;
        receives += is(&all[i], r, OP_RECV) && all[i].op.call.root == r->comm->rank;
    }
    if (sends == receives)
        return NCCL_SUCCESS;
    log_warn("Trying to %s to self without a matching %s", sends > receives ? "send" : "recv",
             sends > receives ? "recv" : "send");
    return NCCL_INVALID_USAGE;
}

/* All that one group gives a communicator is captured by one graph, or nothing of it
 * (src/enqueue.cc, ncclPlannerSetCapturingGraph). */
static int check_captured(const struct request *all, int count, const struct request *r)
{
    int mine = 0, other = 0;

    for (int i = 0; i < count && cuda.StreamIsCapturing; i++) {
        if (all[i].comm != r->comm || cuda.StreamIsCapturing(r->stream, &mine) ||
            cuda.StreamIsCapturing(all[i].stream, &other) || !mine == !other)
            continue;
        log_warn(
            "Streams given to a communicator within a NCCL group must either be all uncaptured "
            "or all captured by the same graph.");
        return NCCL_INVALID_USAGE;
    }
    return NCCL_SUCCESS;
}

/* What is sent while it is received over. */
static void check_traffic(const struct request *all, int count, const struct request *send)
{
    for (int i = 0; i < count; i++) {
        const struct op *a = &send->op, *b = &all[i].op;

        if (is(&all[i], send, OP_RECV) && a->send != b->recv &&
            meet_in_memory(a->send, ops_bytes(&a->call), b->recv, ops_bytes(&b->call)))
            rules_undefined("a group of rank %d sends %p to %d and receives over it at %p from %d",
                            send->comm->rank, a->send, a->call.root, b->recv, b->call.root);
    }
}

int rules_group(const struct request *all, int count)
{
    int rc = NCCL_SUCCESS;

    for (int i = 0; i < count && !rc; i++) {
        bool traffic = all[i].op.call.kind >= OP_SEND;

        rc = check_captured(all, count, &all[i]);
        if (!rc && traffic && all[i].op.call.root == all[i].comm->rank)
            rc = check_self(all, count, &all[i]);
        if (!rc && all[i].op.call.kind == OP_SEND)
            check_traffic(all, count, &all[i]);
    }
    return rc;
}

/* --- in the stream: what a kernel reads and writes.  Reductions load whole elements; the rest is
 * moved as bytes (src/enqueue.cc, collTaskAppend: AllGather and Broadcast are of ncclInt8). --- */
bool rules_reach(const struct ncclComm *c, const struct op *op)
{
    size_t send, recv;
    size_t alignment = reduces(&op->call) ? ops_bytes(&op->call) / op->call.count : 1;

    ops_spans(c, op, &send, &recv);
    return (!send || !cuda.reach(op->send, send, alignment)) &&
           (!recv || !cuda.reach(op->recv, recv, alignment));
}
