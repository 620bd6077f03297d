/* nccl_fake.h - the inside of the stand-in for libnccl (see fake.h).
 *
 * Ranks of a communicator share one small piece of memory: a memfd of the process that made the
 * unique id, which the others open through /proc, so that nothing is ever left behind in /dev/shm.
 * Each rank has a seat there and each ordered pair a box.  Ranks that wait sleep on one futex, the
 * bell; they wake up when something changes, and look every tenth of a second whether their peers
 * still live. */
#ifndef NCCL_FAKE_H
#define NCCL_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake.h"
#include "kernels/nccl_api.h"

#define EXPORT __attribute__((visibility("default")))
/* What follows must not meet the names of the program that loads this. */
#pragma GCC visibility push(hidden)

/* --- what the driver offers (nccl_cuda.c); loaded once, false without it --- */
struct op;
struct fake_cuda {
    int (*LaunchHostFunc)(gpu_stream s, void (*fn)(void *), void *arg);
    int (*StreamIsCapturing)(gpu_stream s, int *status); /* NULL: the driver cannot say */
    int (*MemAlloc)(unsigned long long *at, size_t bytes);
    int (*MemFree)(unsigned long long at);
    int (*CtxGetDevice)(int *device);
    int (*DeviceGetPCIBusId)(char *text, int len, int device);
    int (*DeviceGetAttribute)(int *value, int attribute, int device);
    bool (*find)(const void *device, char file[64], size_t *offset);
    void *(*host)(const void *device);
    int (*reach)(const void *at, size_t bytes, size_t alignment);
    int (*owner)(const void *at);
    bool (*fault)(const char *kind, int now, double *more);
    int (*rank)(void);
    void (*skip)(double seconds);
};
extern struct fake_cuda cuda;
bool cuda_load(void);

/* --- the shared memory of a communicator (nccl_meet.c) --- */
enum op_kind {
    OP_ALLREDUCE,
    OP_ALLGATHER,
    OP_REDUCESCATTER,
    OP_BROADCAST,
    OP_REDUCE_ROOT,
    OP_ALLTOALL,
    OP_GATHER_ROOT,
    OP_SCATTER_ROOT,
    OP_SEND,
    OP_RECV,
    OP_KINDS
};

struct call { /* what must agree between the ranks of a collective */
    int kind, dtype, redop, root;
    uint64_t count;
};

struct place { /* device memory in a form that other processes can map */
    char file[64];
    uint64_t offset;
};

struct card { /* who a rank is, told to the others at the start */
    int version, job_rank, device, nvml_device;
    uint64_t host_hash, bus; /* bus id as NCCL prints it, 0x1b000 for 0000:1b:00.0 */
    char host[64];
};

struct split { /* what a rank says of itself to one ncclCommSplit() */
    int color, key;
    atomic_uint made; /* the split that `id` is of */
    struct nccl_id id;
};

struct seat {
    atomic_int pid;
    atomic_uint stage;   /* every barrier is "all stages have reached mine" */
    atomic_int error;    /* an enum nccl_result: this rank cannot go on */
    atomic_int hurt;     /* it has seen that another one cannot */
    atomic_int left;     /* it is done with the communicator */
    atomic_uint windows; /* that it has registered */
    atomic_uint splits;  /* that it has come to; the latest two are kept */
    struct split split[2];
    struct card card;
    struct call call;
    struct place send, recv;
};

struct box { /* from one rank to another: what is posted and not yet taken is under way */
    atomic_uint posted, taken;
    uint64_t bytes;
    struct place from;
};

struct table {
    atomic_uint bell;
    atomic_int ranks;
    struct seat seat[]; /* [ranks], then the boxes [ranks][ranks] */
};

struct ncclComm {
    struct ncclComm *next; /* all of the process, open or closed; none is freed before the end */
    struct table *table;
    size_t table_bytes;
    int rank, ranks, *pidfd;
    unsigned splits;
    struct ncclComm *parent; /* of ncclCommSplit(): with its color and key */
    int color, key;
    bool shares; /* the abort flag of what it was split from, or with a part */
    uint64_t hash;
    uint32_t stage;
    struct card self;
    struct nccl_id id;
    bool blocking, closed, finalized, split_share;
    char net_name[32];
    atomic_int async;               /* enum nccl_result */
    atomic_int polls;               /* so often GetAsyncError still says "in progress" */
    atomic_bool abort;              /* whoever waits leaves */
    atomic_bool leaving;            /* ncclCommDestroy() has begun */
    atomic_int queued;              /* works in streams that have not run yet */
    pthread_mutex_t turn;           /* one work of a communicator at a time */
    nccl_window *window_to, window; /* registered, but not told yet */
    unsigned windows;
    struct work *deferred; /* of a nonblocking communicator: put into the stream by the next look */
    struct work *kept;     /* captured in graphs: freed with the communicator's end */
    pthread_t starter;
    bool starting;
    struct profile *profile;
    unsigned long ops;
    void *profiler;        /* context of the profiler plugin */
    uint64_t seq[OP_SEND]; /* collectives so far, as profilers count them */
};

int meet_make(struct nccl_id *id);
/* Take a seat; enum nccl_result.  meet_all() then waits for the others. */
int meet_open(struct ncclComm *c);
int meet_all(struct ncclComm *c);
void meet_close(struct ncclComm *c);
void meet_ring(struct ncclComm *c);
/* Sleep until ready(c, arg) is true: 0; -1 when the communicator was aborted.  Once a peer has
 * died or failed the communicator's state says so, but as with NCCL nobody leaves for that:
 * unless `impatient`. */
int meet_wait(struct ncclComm *c, bool (*ready)(struct ncclComm *, void *), void *arg,
              bool impatient);
/* All ranks reach this line; results as meet_wait(). */
int meet_barrier(struct ncclComm *c, bool impatient);
void meet_fail(struct ncclComm *c, int error); /* tell the others */
/* The same, but this rank knows of it `later` seconds after them. */
void meet_fail_late(struct ncclComm *c, int error, double later);
struct box *meet_box(struct ncclComm *c, int from, int to);
/* Look into the memory of another process; the caller ends it with peek_end(). */
struct peek {
    const unsigned char *at;
    void *map;
    size_t bytes;
};
int peek(struct peek *p, const struct place *from, size_t bytes);
void peek_end(struct peek *p);

/* --- parts of a communicator, and what making and using one costs (nccl_split.c) --- */
struct split_part {
    int rank, ranks, first; /* first: the part's rank 0, in the communicator that is split */
    struct nccl_id id;
};
/* Every rank of c tells its color and key and hears all others'; enum nccl_result. */
int split_meet(struct ncclComm *c, int color, int key, struct split_part *part);
void cost_init(const struct ncclComm *c);
void cost_p2p(const struct ncclComm *c, const struct op *op, int n);

/* Of a nonblocking communicator: something is under way until it was asked `polls` times. */
int comm_ready(struct ncclComm *c);
void comm_defer_window(struct ncclComm *c, nccl_window *to, nccl_window window);
/* Have all ranks registered as many windows as this one? */
bool comm_windows_ready(struct ncclComm *c, void *unused);

/* --- arithmetic (nccl_math.c) --- */
/* into[i] = redop over r of from[r][i]; `from` may contain `into`. */
void math_reduce(void *into, const void *const *from, int ranks, size_t count, int dtype,
                 int redop);

/* --- operations (nccl_ops.c) --- */
struct op {
    struct call call; /* root: the peer of send and recv */
    const void *send;
    void *recv;
    void *api; /* the profiler's handle of the call */
};
struct work { /* what one group puts into one stream for one communicator */
    struct work *next;
    struct ncclComm *comm;
    gpu_stream stream;
    bool captured;
    struct prof_events *events; /* that a profiler was told of */
    int ops;
    struct op op[];
};
struct request { /* what one call asks for */
    struct ncclComm *comm;
    gpu_stream stream;
    struct op op;
};
/* Put it into the stream; takes it over. */
int work_launch(struct work *w);
size_t ops_bytes(const struct call *call);
/* Bytes that this rank's send and receive buffers hold; 0: of no account on this rank. */
void ops_spans(const struct ncclComm *c, const struct op *op, size_t *send, size_t *recv);
extern const char *const op_name[OP_KINDS]; /* "AllReduce" */

/* --- rules (nccl_rules.c); enum nccl_result --- */
/* Say on stderr what NCCL would answer by chance, and end the process. */
void rules_undefined(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* *out is what is given, with what that is too short for not set. */
int rules_config(struct nccl_config *out, const struct nccl_config *given);
int rules_op(const struct ncclComm *c, const struct op *op);
int rules_group(const struct request *all, int count);
/* false: the kernel of this operation dies of an illegal or misaligned address, and with it the
 * context, as everyone will hear at the next call of the driver. */
bool rules_reach(const struct ncclComm *c, const struct op *op);

/* --- the log (nccl_log.c) --- */
enum log_part { /* bits of NCCL_DEBUG_SUBSYS */
                LOG_INIT = 1,
                LOG_COLL = 2,
                LOG_P2P = 4,
                LOG_SHM = 8,
                LOG_NET = 16,
                LOG_GRAPH = 32,
                LOG_TUNING = 64,
                LOG_ENV = 128,
                LOG_ALLOC = 256,
                LOG_CALL = 512,
                LOG_PROXY = 1024,
                LOG_NVLS = 2048,
                LOG_BOOTSTRAP = 4096,
                LOG_REG = 8192,
                LOG_PROFILE = 16384,
                LOG_RAS = 32768
};
void log_info(unsigned parts, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_version(int rank);
const char *log_last(void);
void log_device(int device); /* the number that lines of this thread carry */
int fake_version(void);

/* --- what NCCL would have found and chosen, told in its log (nccl_story*.c) --- */
void story_host(char *host, size_t size, int job_rank); /* of the profile, else the machine's */
/* Enum nccl_result: what the environment asks for and this "machine" lacks is refused. */
int story_start(struct ncclComm *c);
int story_complete(struct ncclComm *c);
int story_op(struct ncclComm *c, const struct op *op, gpu_stream s);
/* One host or clique? */
bool story_near(const struct ncclComm *c, int a, int b);
void story_free(struct ncclComm *c);

struct story_choice {
    int algo, proto, channels; /* numbers as NCCL_ALGO_* and NCCL_PROTO_* are */
    const char *algo_text, *proto_text;
};
/* What carries a collective; the first of them all on one rank. */
void story_choice(struct ncclComm *c, const struct call *call, struct story_choice *choice);
/* Does the way to the next rank of the ring (from the last one) go over the network; who is it? */
bool story_ring(struct ncclComm *c, bool next, int *peer);
const char *story_dtype(int dtype); /* "ncclFloat32" */

/* --- profiler plugins (nccl_profiler.c), told what src/plugin/profiler.cc tells them --- */
void prof_open(struct ncclComm *c);
void prof_close(struct ncclComm *c);
void prof_call(struct ncclComm *c, struct op *op, int depth, bool captured);
void prof_called(struct op *op);
void prof_group_called(void);
void prof_launch(struct work *w);                /* by who launches */
void prof_kernel(struct work *w, int op, int n); /* by the stream, before and after */
void prof_kernel_done(struct work *w, int op, int n);
void prof_free(struct work *w);

#pragma GCC visibility pop
#endif
