/* profiler_abi.h - interface between NCCL and a profiler plugin, in seven versions.
 *
 * Facts from NCCL's src/include/plugin/nccl_profiler.h and profiler/profiler_v1.h to _v7.h: order,
 * type and meaning of the fields.  The library looks for ncclProfiler_vN in the plugin, from the
 * newest version it knows downwards: v1 came with NCCL 2.23, v2 with 2.24, v3 with 2.26, v4 with
 * 2.27, v5 with 2.28, v6 with 2.29, v7 with 2.31 (src/plugin/profiler.cc of the releases; for
 * 2.31.2 and 2.32.3 the symbols that libnccl looks up).
 *
 * A descriptor is a type, a parent, a rank, and a union.  Here the members of the union are named
 * structs with the same layout. */
#ifndef PROFILER_ABI_H
#define PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Types of events: bits of the activation mask. */
enum prof_type {
    PROF_GROUP = 1 << 0,
    PROF_COLL = 1 << 1,
    PROF_P2P = 1 << 2,
    PROF_PROXY_OP = 1 << 3,
    PROF_PROXY_STEP = 1 << 4,
    PROF_PROXY_CTRL = 1 << 5,
    PROF_KERNEL_CH = 1 << 6, /* v3 on */
    PROF_NET_PLUGIN = 1 << 7,
    PROF_GROUP_API = 1 << 8, /* v5 on */
    PROF_COLL_API = 1 << 9,
    PROF_P2P_API = 1 << 10,
    PROF_KERNEL_LAUNCH = 1 << 11,
    PROF_CE_COLL = 1 << 12, /* v6 on */
    PROF_CE_SYNC = 1 << 13,
    PROF_CE_BATCH = 1 << 14,
    PROF_KERNEL_PHASE = 1 << 15 /* v7 on */
};

/* States of an event, the same numbers in all versions. */
enum prof_state {
    PROF_SEND_DONE = 3, /* of a proxy op, up to v3 */
    PROF_RECV_DONE = 7,
    PROF_SEND_GPU_WAIT = 8, /* of a proxy step */
    PROF_SEND_WAIT = 9,
    PROF_RECV_WAIT = 10,
    PROF_RECV_FLUSH_WAIT = 11,
    PROF_RECV_GPU_WAIT = 12,
    PROF_OP_IN_PROGRESS = 19,   /* of a proxy op, v4 on */
    PROF_SEND_PEER_WAIT = 20,   /* v4 on */
    PROF_KERNEL_CH_STOP = 22,   /* v4 on */
    PROF_GROUP_START_STOP = 23, /* v5 on */
    PROF_GROUP_END_START = 24
};

/* --- collectives --- */
struct prof_coll_v1 { /* NCCL's enum numbers, where later versions have words */
    const char *name;
    uint64_t hash, seq;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t dtype;
    uint32_t op;
    size_t traffic;
    uint8_t channels, warps, algo, proto;
    int collnet, nvls;
};
struct prof_coll_v2 {
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *dtype;
    size_t traffic;
    uint8_t channels, warps;
    const char *algo, *proto;
};
struct prof_coll_v3 {
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *dtype;
    uint8_t channels, warps;
    const char *algo, *proto;
};
struct prof_coll_v4 { /* v5 and v6 have one more field at the end, v7 three more */
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *dtype;
    uint8_t channels, warps;
    const char *algo, *proto;
    void *group;         /* v5 on */
    const char *variant; /* v7 on */
    bool symmetric;
    uint64_t tag;
};

/* --- sends and receives --- */
struct prof_p2p_v1 {
    const char *name;
    uint64_t hash;
    uint8_t func;
    void *buff;
    uint8_t dtype;
    size_t count;
    int peer;
};
struct prof_p2p_v2 { /* also v3 */
    const char *name;
    uint64_t hash;
    const char *func;
    void *buff;
    const char *dtype;
    size_t count;
    int peer;
};
struct prof_p2p_v4 {
    const char *func;
    void *buff;
    const char *dtype;
    size_t count;
    int peer;
    uint8_t channels;
    void *group;  /* v5 on */
    uint64_t tag; /* v7 on */
};

/* --- other descriptors, as far as they are used --- */
struct prof_proxy_op {
    pid_t pid;
    uint8_t channel;
    int peer, steps, chunk, send;
};
struct prof_kernel_ch {
    uint8_t channel;
    uint64_t timer; /* v4 on */
};
struct prof_group_api {
    bool captured;
    int depth;
};
struct prof_coll_api {
    const char *func;
    size_t count;
    const char *dtype;
    int root;
    void *stream;
    bool captured;
    uint64_t tag; /* v7 on */
};
struct prof_p2p_api {
    const char *func;
    size_t count;
    const char *dtype;
    void *stream;
    bool captured;
    uint64_t tag; /* v7 on */
};
struct prof_ce_coll { /* v6 on */
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *dtype, *sync;
    bool intra;
    uint32_t batch_size, batches, ce_seq;
    void *stream;
    uint64_t tag; /* v7 on */
};

/* The type is one byte up to v4 and eight from v5 on.  A little-endian load of 8 bytes would read
 * undefined bytes after the one byte. */
struct prof_descr {
    union {
        uint8_t type8;
        uint64_t type64;
    };
    void *parent;
    int rank;
    union {
        struct prof_coll_v1 coll_v1;
        struct prof_coll_v2 coll_v2;
        struct prof_coll_v3 coll_v3;
        struct prof_coll_v4 coll_v4;
        struct prof_p2p_v1 p2p_v1;
        struct prof_p2p_v2 p2p_v2;
        struct prof_p2p_v4 p2p_v4;
        struct prof_proxy_op proxy_op;
        int proxy_step;
        struct prof_kernel_ch kernel_ch;
        struct prof_group_api group_api;
        struct prof_coll_api coll_api;
        struct prof_p2p_api p2p_api;
        struct prof_ce_coll ce_coll;
    };
};

union prof_state_args {
    struct {
        size_t bytes;
        int steps;
    } proxy_op;        /* up to v3 */
    size_t step_bytes; /* v4 on, like all fields below */
    uint64_t timer;
};

_Static_assert(offsetof(struct prof_descr, coll_v1) == 24, "where the union begins");
_Static_assert(offsetof(struct prof_coll_v1, traffic) == 72, "v1");
_Static_assert(sizeof(struct prof_coll_v1) == 96, "v1");
_Static_assert(offsetof(struct prof_coll_v2, proto) == 96, "v2");
_Static_assert(offsetof(struct prof_coll_v3, proto) == 88, "v3");
_Static_assert(offsetof(struct prof_coll_v4, proto) == 72, "v4");
_Static_assert(offsetof(struct prof_coll_v4, tag) == 104, "v7");
_Static_assert(offsetof(struct prof_p2p_v1, peer) == 48, "v1");
_Static_assert(offsetof(struct prof_p2p_v2, peer) == 48, "v2");
_Static_assert(offsetof(struct prof_p2p_v4, channels) == 36, "v4");
_Static_assert(offsetof(struct prof_p2p_v4, tag) == 48, "v7");
_Static_assert(sizeof(struct prof_proxy_op) == 24, "of all versions");
_Static_assert(offsetof(struct prof_coll_api, tag) == 48, "v7");
_Static_assert(offsetof(struct prof_p2p_api, tag) == 40, "v7");
_Static_assert(offsetof(struct prof_ce_coll, tag) == 88, "v7");

/* --- the table of functions --- */
/* level 2: warning, 3: information (ncclDebugLogLevel); flags: ncclDebugLogSubSys. */
typedef void (*prof_log)(int level, unsigned long flags, const char *file, int line,
                         const char *fmt, ...);

typedef int prof_start(void *context, void **handle, struct prof_descr *d);
typedef int prof_stop(void *handle);
typedef int prof_record(void *handle, int state, union prof_state_args *args);
typedef int prof_finalize(void *context);

struct prof_v1 { /* up to v3 */
    const char *name;
    int (*init)(void **context, int *mask);
    prof_start *start;
    prof_stop *stop;
    prof_record *record;
    prof_finalize *finalize;
};
struct prof_v4 {
    const char *name;
    int (*init)(void **context, int *mask, const char *comm_name, uint64_t hash, int nodes,
                int ranks, int rank, prof_log log);
    prof_start *start;
    prof_stop *stop;
    prof_record *record;
    prof_finalize *finalize;
};
struct prof_v5 { /* and later versions */
    const char *name;
    int (*init)(void **context, uint64_t hash, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, prof_log log);
    prof_start *start;
    prof_stop *stop;
    prof_record *record;
    prof_finalize *finalize;
};

#endif
