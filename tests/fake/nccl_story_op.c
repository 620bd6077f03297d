/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL says about an operation: connections at their first use, algorithm and protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "nccl_story.h"

enum { TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT };
enum { LL, LL128, SIMPLE };

/* As NCCL_ALGO takes them, and as the log writes them. */
static const char *const algo_word[ALGOS] = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const algo_text[ALGOS] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const proto_word[PROTOS] = {"LL", "LL128", "Simple"};
static const char *const proto_text[PROTOS] = {"LL", "LL128", "SIMPLE"};
static const char *const dtype_text[NCCL_DTYPES] = {
    "ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

static int find(const char *const *names, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(names[i], word))
            return i;
    return -1;
}

/* "a,b" allows these, "^a,b" all but these; on[] says which.  A word that is unknown is refused from
 * 2.24 on and nothing before (src/graph/tuning.cc of the releases, parseList). */
static int read_elements(const struct ncclComm *c, const char *text, const char *all,
                         const char *const *names, int count, unsigned char *on)
{
    bool not_these = *text == '^';
    char copy[128], *save = NULL;

    memset(on, not_these, (size_t)count);
    snprintf(copy, sizeof(copy), "%s", text + not_these);
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        int i = find(names, count, w);

        if (i >= 0) {
            on[i] = !not_these;
        } else if (c->self.version >= 22400) {
            log_warn("Unrecognized element token \"%s\" when parsing \"%s\"", w, all);
            return NCCL_INVALID_USAGE;
        }
    }
    return NCCL_SUCCESS;
}

/* One entry of the list, "allreduce:tree,ring" or what goes for every function. */
static int read_entry(const struct ncclComm *c, char *entry, bool first, const char *all,
                      const char *const *names, int count, unsigned char *on)
{
    char *colon = strchr(entry, ':');
    bool found = false;
    int rc = NCCL_SUCCESS;

    if (!colon && !first) {
        log_warn("All entries except the first must have a prefix: \"%s\"", all);
        return NCCL_INVALID_USAGE;
    }
    if (colon)
        *colon = '\0';
    for (int f = 0; f < FUNCTIONS && !rc; f++) {
        if (colon && strcasecmp(entry, op_name[f]))
            continue;
        found = true;
        rc = read_elements(c, colon ? colon + 1 : entry, all, names, count, on + f * count);
    }
    if (found)
        return rc;
    log_warn("Unrecognized prefix token \"%s\" when parsing \"%s\"", entry, all);
    return NCCL_INVALID_USAGE;
}

/* A list of entries parted by semicolons, from 2.24 on; before that one without a prefix. */
static int read_list(const struct ncclComm *c, const char *text, const char *const *names,
                     int count, unsigned char *on)
{
    char copy[256], *save = NULL, *entry;
    bool first = true;
    int rc = NCCL_SUCCESS;

    snprintf(copy, sizeof(copy), "%s", text);
    if (c->self.version < 22400) {
        for (int f = 0; f < FUNCTIONS; f++)
            read_elements(c, copy, text, names, count, on + f * count);
        return NCCL_SUCCESS;
    }
    for (entry = strtok_r(copy, ";", &save); entry && !rc; entry = strtok_r(NULL, ";", &save)) {
        rc = read_entry(c, entry, first, text, names, count, on);
        first = false;
    }
    return rc;
}

/* Up to 2.23 what is asked for and cannot be used is no error: without CollNet a choice of others
 * than Ring, Tree and NVLS is passed over, and where a function is left with nothing it takes Ring
 * (v2.23.4: src/graph/tuning.cc, ncclTopoTuneModel; src/enqueue.cc, topoGetAlgoInfo). */
static bool takes_ring(const struct ncclComm *c)
{
    return c->self.version < 22400;
}

/* PAT came with 2.23, for one rank a host; NCCL_PAT_ENABLE decides instead (ncclPatEnable). */
static bool pat_is_there(const struct ncclComm *c)
{
    long asked = story_param("NCCL_PAT_ENABLE", 2);

    return c->self.version >= 22300 && (asked == 2 ? c->profile->most_local == 1 : asked != 0);
}

int story_choices(struct ncclComm *c)
{
    const char *algo = getenv("NCCL_ALGO"), *proto = getenv("NCCL_PROTO");
    int algos = c->self.version < 22300 ? PAT : ALGOS, rc = NCCL_SUCCESS;
    struct profile *p = c->profile;
    unsigned char on[FUNCTIONS * ALGOS];

    snprintf(p->algo_text, sizeof(p->algo_text), "%s", algo ? algo : "");
    snprintf(p->proto_text, sizeof(p->proto_text), "%s", proto ? proto : "");
    memset(p->algo, 0, sizeof(p->algo));
    memset(on, 1, sizeof(on));
    for (int f = 0; f < FUNCTIONS; f++)
        for (int q = 0; q < PROTOS; q++)
            p->proto[f][q] = q == LL128 ? PROTO_WHERE_FAST : 1;
    if (proto) {
        log_info(LOG_ENV, "NCCL_PROTO set by environment to %s", proto);
        rc = read_list(c, proto, proto_word, PROTOS, p->proto[0]);
    }
    if (algo && !rc) {
        log_info(LOG_ENV, "NCCL_ALGO set by environment to %s", algo);
        rc = read_list(c, algo, algo_word, algos, on);
    }
    for (int f = 0; f < FUNCTIONS; f++) {
        unsigned char *mine = p->algo[f];

        memcpy(mine, on + f * algos, (size_t)algos);
        if (takes_ring(c) && !mine[RING] && !mine[TREE] && !(mine[NVLS] && p->nodes == 1) &&
            !(mine[NVLS_TREE] && p->nodes > 1))
            mine[RING] = mine[TREE] = 1;
    }
    return rc;
}

/* NVLS adds up what the switch can: sums of 32 and 64-bit integers, half, bfloat16 and float. */
static bool nvls_can(const struct call *call)
{
    switch (call->dtype) {
    case NCCL_INT32:
    case NCCL_UINT32:
    case NCCL_INT64:
    case NCCL_UINT64:
        return call->redop == NCCL_SUM || call->redop == NCCL_MAX || call->redop == NCCL_MIN;
    case NCCL_FLOAT16:
    case NCCL_BFLOAT16:
        return call->redop != NCCL_PROD && call->redop != NCCL_AVG;
    case NCCL_FLOAT32:
    case NCCL_FLOAT64:
        return call->redop == NCCL_SUM;
    default:
        return call->kind == OP_ALLGATHER;
    }
}

/* The combinations that NCCL 2.28 has kernels for and that this communicator can use. */
static bool possible(const struct ncclComm *c, const struct call *call, int algo, int proto)
{
    const struct profile *p = c->profile;
    bool blocks = call->kind == OP_ALLGATHER || call->kind == OP_REDUCESCATTER;

    if (!p->algo[call->kind][algo] || !p->proto[call->kind][proto])
        return false;
    if (p->proto[call->kind][proto] == PROTO_WHERE_FAST &&
        strcmp(story_path(c, c->rank, c->rank), "NVL"))
        return false;
    switch (algo) {
    case RING:
        return true;
    case TREE:
        return call->kind == OP_ALLREDUCE;
    case NVLS:
        return proto == SIMPLE && p->nvls && p->nodes == 1 &&
               (call->kind == OP_ALLREDUCE || blocks) && nvls_can(call);
    case NVLS_TREE:
        return proto == SIMPLE && p->nvls && p->nodes > 1 && call->kind == OP_ALLREDUCE &&
               nvls_can(call);
    case PAT:
        return proto == SIMPLE && blocks && pat_is_there(c);
    default: /* there is no CollNet here */
        return false;
    }
}

/* What a free choice would be: the profile's rows, else by size. */
static void prefer(const struct ncclComm *c, const struct call *call, size_t bytes, int *algo,
                   int *proto)
{
    const struct story_profile *p = story_profile();

    *proto = bytes <= 32768 ? LL : bytes <= 1 << 20 ? LL128 : SIMPLE;
    *algo = call->kind == OP_ALLREDUCE && bytes <= 1 << 20                  ? TREE
            : call->kind == OP_ALLREDUCE && possible(c, call, NVLS, *proto) ? NVLS
                                                                            : RING;
    for (int i = 0; i < p->algos; i++)
        if (!strcasecmp(p->algo[i].op, op_name[call->kind]) && bytes <= p->algo[i].bytes) {
            int a = find(algo_text, ALGOS, p->algo[i].algo);
            int q = find(proto_text, PROTOS, p->algo[i].proto);

            *algo = a >= 0 ? a : *algo;
            *proto = q >= 0 ? q : *proto;
            return;
        }
}

static int choose(struct ncclComm *c, const struct call *call, size_t bytes, int *algo, int *proto)
{
    const struct profile *p = c->profile;
    char more[320] = "";
    size_t used = 0;

    prefer(c, call, bytes, algo, proto);
    if (possible(c, call, *algo, *proto))
        return NCCL_SUCCESS;
    for (int q = *proto; q < *proto + PROTOS; q++)
        for (int a = *algo; a < *algo + ALGOS; a++)
            if (possible(c, call, a % ALGOS, q % PROTOS)) {
                *algo = a % ALGOS;
                *proto = q % PROTOS;
                return NCCL_SUCCESS;
            }
    if (takes_ring(c)) {
        *algo = RING;
        for (int q = 0; q < PROTOS && !p->proto[call->kind][*proto]; q++)
            *proto = (*proto + 1) % PROTOS;
        return NCCL_SUCCESS;
    }
    if (*p->algo_text)
        used = (size_t)snprintf(more, sizeof(more), " NCCL_ALGO was set to %s.", p->algo_text);
    if (*p->proto_text)
        snprintf(more + used, sizeof(more) - used, " NCCL_PROTO was set to %s.", p->proto_text);
    log_warn("Error : no algorithm/protocol available for function %s with datatype %s.%s",
             op_name[call->kind], dtype_text[call->dtype], more);
    return *more ? NCCL_INVALID_USAGE : NCCL_INTERNAL;
}

/* --- connections --- */
/* Each costs the first call that needs it, and that call alone. */
static void take_time(void)
{
    double sec = story_profile()->connect;
    struct timespec t = {(time_t)sec, (long)((sec - (double)(time_t)sec) * 1e9)};

    if (sec > 0)
        nanosleep(&t, NULL);
}

/* One line as the side `self` writes it; networks have one for each direction. */
static void tell_channel(struct ncclComm *c, int channel, int index, int from, int to)
{
    int from_dev = c->table->seat[from].card.nvml_device;
    int to_dev = c->table->seat[to].card.nvml_device;
    char via[80];

    story_via(c, from, to, via);
    if (!strncmp(via, "NET/", 4))
        log_info(LOG_INIT | LOG_NET, "Channel %02d/%d : %d[%d] -> %d[%d] [%s] via %s%s", channel,
                 index, from, from_dev, to, to_dev, c->rank == from ? "send" : "receive", via,
                 index ? "/Shared" : "");
    else if (c->rank != from)
        return; /* the others are told by the sender only */
    else if (!strncmp(via, "SHM/", 4))
        log_info(LOG_INIT | LOG_SHM, "Channel %02d : %d[%d] -> %d[%d] via %s", channel, from,
                 from_dev, to, to_dev, via);
    else
        log_info(LOG_INIT | LOG_P2P, "Channel %02d/%d : %d[%d] -> %d[%d] via %s", channel, index,
                 from, from_dev, to, to_dev, via);
}

void story_connect_rings(struct ncclComm *c)
{
    struct profile *p = c->profile;
    int n = c->ranks, at = p->at[c->rank];
    int next = p->order[(at + 1) % n], last = p->order[(at + n - 1) % n];
    char via[80];

    if (p->rings_up || n == 1)
        return;
    p->rings_up = true;
    take_time();
    for (int i = 0; i < p->channels; i++) {
        tell_channel(c, i, 0, last, c->rank);
        tell_channel(c, i, 0, c->rank, next);
    }
    story_via(c, c->rank, next, via);
    log_info(LOG_INIT, "Connected all rings, use ring PXN %d GDR %d", 0,
             strstr(via, "GDRDMA") != NULL);
}

void story_connect_trees(struct ncclComm *c)
{
    struct profile *p = c->profile;
    int n = c->ranks, at = p->at[c->rank];

    if (p->trees_up || n == 1)
        return;
    p->trees_up = true;
    take_time();
    for (int i = 0; i < p->channels; i++) {
        if (at + 1 < n) {
            tell_channel(c, i, 0, p->order[at + 1], c->rank);
            tell_channel(c, i, 0, c->rank, p->order[at + 1]);
        }
        if (at > 0) {
            tell_channel(c, i, 0, p->order[at - 1], c->rank);
            tell_channel(c, i, 0, c->rank, p->order[at - 1]);
        }
    }
    log_info(LOG_INIT, "Connected all trees");
}

static void connect_p2p(struct ncclComm *c, int peer, bool send)
{
    unsigned char *there = send ? c->profile->sent : c->profile->received;
    int channels = c->profile->nodes > 1 ? 2 : c->profile->channels;

    if (there[peer] || peer == c->rank)
        return;
    there[peer] = 1;
    take_time();
    for (int i = 0; i < channels; i++)
        tell_channel(c, i, 1, send ? c->rank : peer, send ? peer : c->rank);
}

static void connect_all(struct ncclComm *c, const struct call *call)
{
    bool root = c->rank == call->root;

    for (int r = 0; r < c->ranks; r++) {
        if (call->kind == OP_ALLTOALL || (call->kind == OP_SCATTER_ROOT && root) ||
            (call->kind == OP_GATHER_ROOT && r == call->root))
            connect_p2p(c, r, true);
        if (call->kind == OP_ALLTOALL || (call->kind == OP_GATHER_ROOT && root) ||
            (call->kind == OP_SCATTER_ROOT && r == call->root))
            connect_p2p(c, r, false);
    }
}

/* Bytes as NCCL counts them for the choice: the whole of what is gathered or scattered. */
static size_t choice_bytes(const struct ncclComm *c, const struct call *call)
{
    bool blocks = call->kind == OP_ALLGATHER || call->kind == OP_REDUCESCATTER;

    return ops_bytes(call) * (blocks ? (size_t)c->ranks : 1);
}

/* Windows, and a type and operation that have a symmetric kernel: no reduction of integers
 * (src/sym_kernels.cc of 2.28). */
static bool is_symmetric(const struct ncclComm *c, const struct call *call)
{
    bool adds = call->kind == OP_ALLREDUCE || call->kind == OP_REDUCESCATTER;

    return c->windows && c->self.version >= 22700 && (adds || call->kind == OP_ALLGATHER) &&
           (!adds || (call->dtype >= NCCL_FLOAT16 && call->dtype != NCCL_FLOAT64));
}

/* 2.19 says nothing; words and channels come with 2.24, the name with 2.23, and until then all the
 * bytes of a collective are told (src/enqueue.cc of the releases). */
static void tell_choice(const struct ncclComm *c, const struct call *call, int algo, int proto)
{
    const char *name = c->self.version < 22300 ? "" : op_name[call->kind];

    if (c->rank != 0 || c->self.version < 22000)
        return;
    if (is_symmetric(c, call))
        log_info(LOG_TUNING,
                 "%s [Symmetric]: %ld Bytes -> Kernel %s_LL nchannels %d nthreads %d nWorks %d",
                 name, (long)ops_bytes(call), name, 1, 512, 1);
    else if (c->self.version < 22400)
        log_info(LOG_TUNING, "%s%s%ld Bytes -> Algo %d proto %d time %f", name, *name ? ": " : "",
                 (long)choice_bytes(c, call), algo, proto, 10.0);
    else
        log_info(LOG_TUNING, "%s: %ld Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}", name,
                 (long)ops_bytes(call), algo_text[algo], proto_text[proto], 0,
                 (algo == NVLS ? c->profile->nvls : c->profile->channels) - 1);
}

int story_op(struct ncclComm *c, const struct op *op, gpu_stream s)
{
    const struct call *call = &op->call;
    int algo, proto, rc;

    log_info(LOG_COLL,
             "%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm %p "
             "[nranks=%d] stream %p",
             op_name[call->kind], c->ops++, op->send, op->recv, (size_t)call->count, call->dtype,
             call->redop, call->root, (void *)c, c->ranks, (void *)s);
    if (call->kind == OP_SEND || call->kind == OP_RECV) {
        connect_p2p(c, call->root, call->kind == OP_SEND);
        return NCCL_SUCCESS;
    }
    if (call->kind >= OP_ALLTOALL) {
        connect_all(c, call);
        return NCCL_SUCCESS;
    }
    if (c->ranks == 1 || !call->count)
        return NCCL_SUCCESS;
    rc = choose(c, call, choice_bytes(c, call), &algo, &proto);
    if (rc)
        return rc;
    if (algo == TREE)
        story_connect_trees(c);
    else
        story_connect_rings(c);
    tell_choice(c, call, algo, proto);
    return NCCL_SUCCESS;
}

void story_choice(struct ncclComm *c, const struct call *call, struct story_choice *choice)
{
    int algo = RING, proto = SIMPLE;

    if (c->ranks > 1 && call->kind < FUNCTIONS)
        choose(c, call, choice_bytes(c, call), &algo, &proto);
    *choice =
        (struct story_choice){algo, proto, algo == NVLS ? c->profile->nvls : c->profile->channels,
                              algo_text[algo], proto_text[proto]};
}

bool story_ring(struct ncclComm *c, bool next, int *peer)
{
    const struct profile *p = c->profile;
    int at = p->at[c->rank], n = c->ranks;
    char via[80];

    *peer = p->order[(at + (next ? 1 : n - 1)) % n];
    if (n == 1)
        return false;
    story_via(c, next ? c->rank : *peer, next ? *peer : c->rank, via);
    return !strncmp(via, "NET/", 4);
}

const char *story_dtype(int dtype)
{
    return dtype_text[dtype];
}
