/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/plugin/profiler_impl.h"

/* Words for the numbers of v1, as in ncclFuncToString() and similar from 2.24 on (ncclFunc_t and
 * NCCL_ALGO_*, NCCL_PROTO_* of NCCL 2.23: src/include/nccl_common.h; ncclDataType_t: nccl.h). */
static const char *const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                    "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algos[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                    "NVLS_TREE", "PAT"};
static const char *const protos[] = {"LL", "LL128", "SIMPLE"};
static const char *const dtypes[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                     "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                     "ncclFloat64", "ncclBfloat16"};

#define WORD(r, words, i) ring_name(r, (i) < sizeof(words) / sizeof(*(words)) ? (words)[i] : NULL)

/* Fields with the same names in descriptors of several versions. */
#define COLL_WORDS(r, t, c)                                                                        \
    ((t)->op = ring_name(r, (c)->func), (t)->dtype = ring_name(r, (c)->dtype),                     \
     (t)->algo = ring_name(r, (c)->algo), (t)->proto = ring_name(r, (c)->proto))
#define COLL_NUMBERS(t, c)                                                                         \
    ((t)->count = (c)->count, (t)->seq = (c)->seq, (t)->peer = (c)->root,                          \
     (t)->channels = (c)->channels, (t)->warps = (c)->warps)
#define TO_V3(t, c) ((t)->comm_name = (c)->name, (t)->hash = (c)->hash)

static void coll(struct ring *r, int abi, const struct prof_descr *d, struct task *t)
{
    t->kind = RECORD_COLL;
    if (abi == 1) {
        COLL_NUMBERS(t, &d->coll_v1);
        TO_V3(t, &d->coll_v1);
        t->op = WORD(r, funcs, d->coll_v1.func);
        t->dtype = WORD(r, dtypes, d->coll_v1.dtype);
        t->algo = WORD(r, algos, d->coll_v1.algo);
        t->proto = WORD(r, protos, d->coll_v1.proto);
    } else if (abi == 2) {
        COLL_NUMBERS(t, &d->coll_v2);
        TO_V3(t, &d->coll_v2);
        COLL_WORDS(r, t, &d->coll_v2);
    } else if (abi == 3) {
        COLL_NUMBERS(t, &d->coll_v3);
        TO_V3(t, &d->coll_v3);
        COLL_WORDS(r, t, &d->coll_v3);
    } else {
        COLL_NUMBERS(t, &d->coll_v4);
        COLL_WORDS(r, t, &d->coll_v4);
        t->group = abi >= 5 ? d->coll_v4.group : NULL;
        t->tag = abi >= 7 ? d->coll_v4.tag : 0;
        t->flags = abi >= 7 && d->coll_v4.symmetric ? RECORD_SYM : 0;
    }
}

static void p2p(struct ring *r, int abi, const struct prof_descr *d, struct task *t)
{
    t->kind = RECORD_P2P;
    if (abi == 1) {
        TO_V3(t, &d->p2p_v1);
        t->op = WORD(r, funcs, d->p2p_v1.func);
        t->dtype = WORD(r, dtypes, d->p2p_v1.dtype);
        t->count = d->p2p_v1.count;
        t->peer = d->p2p_v1.peer;
    } else if (abi <= 3) {
        TO_V3(t, &d->p2p_v2);
        t->op = ring_name(r, d->p2p_v2.func);
        t->dtype = ring_name(r, d->p2p_v2.dtype);
        t->count = d->p2p_v2.count;
        t->peer = d->p2p_v2.peer;
    } else {
        t->op = ring_name(r, d->p2p_v4.func);
        t->dtype = ring_name(r, d->p2p_v4.dtype);
        t->count = d->p2p_v4.count;
        t->peer = d->p2p_v4.peer;
        t->channels = d->p2p_v4.channels;
        t->group = abi >= 5 ? d->p2p_v4.group : NULL;
        t->tag = abi >= 7 ? d->p2p_v4.tag : 0;
    }
}

static void ce_coll(struct ring *r, int abi, const struct prof_ce_coll *c, struct task *t)
{
    t->kind = RECORD_COLL;
    t->flags = RECORD_CE;
    t->op = ring_name(r, c->func);
    t->dtype = ring_name(r, c->dtype);
    t->count = c->count;
    t->seq = c->seq;
    t->peer = c->root;
    t->tag = abi >= 7 ? c->tag : 0;
}

#define CALL(r, abi, t, c)                                                                         \
    ((t)->kind = RECORD_CALL, (t)->flags = (c)->captured ? RECORD_GRAPH : 0,                       \
     (t)->op = ring_name(r, (c)->func), (t)->dtype = ring_name(r, (c)->dtype),                     \
     (t)->count = (c)->count, (t)->tag = (abi) >= 7 ? (c)->tag : 0)

bool task_read(struct ring *r, int abi, uint64_t type, const struct prof_descr *d, struct task *t)
{
    memset(t, 0, sizeof(*t));
    t->parent = d->parent;
    if (type == PROF_COLL) {
        coll(r, abi, d, t);
    } else if (type == PROF_P2P) {
        p2p(r, abi, d, t);
    } else if (type == PROF_CE_COLL && abi >= 6) {
        ce_coll(r, abi, &d->ce_coll, t);
    } else if (type == PROF_COLL_API && abi >= 5) {
        CALL(r, abi, t, &d->coll_api);
        t->peer = d->coll_api.root;
    } else if (type == PROF_P2P_API && abi >= 5) {
        CALL(r, abi, t, &d->p2p_api);
        t->peer = -1; /* not declared */
    } else if (type == PROF_GROUP_API && abi >= 5) {
        t->kind = RECORD_GROUP_CALL;
        t->flags = d->group_api.captured ? RECORD_GRAPH : 0;
        t->peer = -1;
    } else if (type == PROF_GROUP) {
        t->kind = RECORD_GROUP;
        t->peer = -1;
    }
    return t->kind != 0;
}
