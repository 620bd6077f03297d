/* nccl_api.h - libnccl.so.2, loaded at run time.
 *
 * Declarations of our own for nccl.h (facts of its ABI, NCCL 2.19 to 2.32): names without the
 * "nccl" prefix; sizes and values are checked against the real header by tests/unit/nccl_abi.c
 * where that is installed.  One program works with every library; a function that a library lacks
 * is a NULL pointer here.  CUDA streams are gpu_stream. */
#ifndef RG_NCCL_API_H
#define RG_NCCL_API_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kernels/gpu.h"

enum nccl_result {
    NCCL_SUCCESS,
    NCCL_UNHANDLED_CUDA,
    NCCL_SYSTEM,
    NCCL_INTERNAL,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE, /* another rank failed, this one only sees the consequence */
    NCCL_IN_PROGRESS
};
enum nccl_dtype {
    NCCL_INT8,
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16,
    NCCL_FLOAT8E4M3, /* since 2.24 */
    NCCL_FLOAT8E5M2,
    NCCL_DTYPES
};
enum nccl_redop { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_REDOPS };

typedef struct ncclComm *nccl_comm; /* the library's handle types */
typedef struct ncclWindow_vidmem *nccl_window;
struct nccl_id {
    char bytes[128];
};

/* ncclConfig_t grew only at its end.  `size` tells the library how much of it exists, so
 * nccl_config() sets the size of the library's version. */
struct nccl_config {
    size_t size;
    unsigned int magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
    int traffic_class;     /* since 2.26 */
    const char *comm_name; /* since 2.27 */
    int collnet_enable, cta_policy, shrink_share, nvls_ctas;
    int n_channels_per_net_peer, nvlink_centric_sched; /* since 2.28 */
    int graph_usage_mode, num_rma_ctx;                 /* since 2.29 */
    int max_p2p_peers;                                 /* since 2.30 */
    int graph_stream_ordering;                         /* since 2.30.5; padding in 2.30.3 */
    int launch_order_implicit, num_rma_sig, rma_eager_init, host_cft_mode; /* since 2.31 */
    int nvls_host_mode;                                                    /* since 2.32 */
};
enum { NCCL_UNDEF_INT = INT_MIN, NCCL_NO_COLOR = -1 };

/* Numeric configuration fields that a user may set, spelled as in nccl.h; ends with name NULL. */
struct nccl_config_field {
    const char *name;
    size_t at;
    int since; /* first version with the field */
};
extern const struct nccl_config_field nccl_config_field[];
const struct nccl_config_field *nccl_config_find(const char *name); /* NULL: no such field */

/* Functions: name in the library after "nccl", first version with it (nccl.h of the tagged
 * releases; 0: all), return type, parameters.  The version that a library reports decides: a newer
 * symbol is not used even if it exists, because previews export functions that may still change.
 * Window flag 1: symmetric. */
// clang-format off
#define NCCL_CALLS(CALL)                                                                           \
    CALL(GetUniqueId, 0, int, (struct nccl_id *id))                                                \
    CALL(CommInitRankConfig, 0, int, (nccl_comm *c, int n, struct nccl_id id, int rank,            \
         struct nccl_config *config))                                                              \
    CALL(CommSplit, 0, int, (nccl_comm of, int color, int key, nccl_comm *c,                       \
         struct nccl_config *config))                                                              \
    CALL(CommFinalize, 0, int, (nccl_comm c))                                                      \
    CALL(CommDestroy, 0, int, (nccl_comm c))                                                       \
    CALL(CommAbort, 0, int, (nccl_comm c))                                                         \
    CALL(CommGetAsyncError, 0, int, (nccl_comm c, int *result))                                    \
    CALL(GetErrorString, 0, const char *, (int result))                                            \
    CALL(GetLastError, 0, const char *, (nccl_comm c))                                             \
    CALL(AllReduce, 0, int, (const void *send, void *recv, size_t count, int dtype, int redop,     \
         nccl_comm c, gpu_stream s))                                                               \
    CALL(AllGather, 0, int, (const void *send, void *recv, size_t count, int dtype, nccl_comm c,   \
         gpu_stream s))                                                                            \
    CALL(ReduceScatter, 0, int, (const void *send, void *recv, size_t count, int dtype,            \
         int redop, nccl_comm c, gpu_stream s))                                                    \
    CALL(Broadcast, 0, int, (const void *send, void *recv, size_t count, int dtype, int root,      \
         nccl_comm c, gpu_stream s))                                                               \
    CALL(Reduce, 0, int, (const void *send, void *recv, size_t count, int dtype, int redop,        \
         int root, nccl_comm c, gpu_stream s))                                                     \
    CALL(Send, 0, int, (const void *send, size_t count, int dtype, int peer, nccl_comm c,          \
         gpu_stream s))                                                                            \
    CALL(Recv, 0, int, (void *recv, size_t count, int dtype, int peer, nccl_comm c, gpu_stream s)) \
    CALL(GroupStart, 0, int, (void))                                                               \
    CALL(GroupEnd, 0, int, (void))                                                                 \
    CALL(MemAlloc, 21900, int, (void **at, size_t bytes))                                          \
    CALL(MemFree, 21900, int, (void *at))                                                          \
    CALL(CommRegister, 21900, int, (nccl_comm c, void *at, size_t bytes, void **handle))           \
    CALL(CommDeregister, 21900, int, (nccl_comm c, void *handle))                                  \
    CALL(CommWindowRegister, 22700, int, (nccl_comm c, void *at, size_t bytes, nccl_window *w,     \
         int flags))                                                                               \
    CALL(CommWindowDeregister, 22700, int, (nccl_comm c, nccl_window w))                           \
    CALL(AlltoAll, 22800, int, (const void *send, void *recv, size_t count, int dtype,             \
         nccl_comm c, gpu_stream s))                                                               \
    CALL(Gather, 22800, int, (const void *send, void *recv, size_t count, int dtype, int root,     \
         nccl_comm c, gpu_stream s))                                                               \
    CALL(Scatter, 22800, int, (const void *send, void *recv, size_t count, int dtype, int root,    \
         nccl_comm c, gpu_stream s))
// clang-format on

struct nccl_api {
    int version; /* 22809; 0: not loaded */
    char path[512];
    const char *by; /* place where it was found, see library_find() */
    int (*GetVersion)(int *version);
#define NCCL_MEMBER(name, since, type, arguments) type(*name) arguments;
    NCCL_CALLS(NCCL_MEMBER) /* NULL if the library is older */
};
extern struct nccl_api nccl;

/* Load libnccl.so.2 (libraries.h) once.  EXIT_CONFIG with the loader's message and the places
 * tried, or if it is older than 2.19. */
int nccl_load(struct err *err);
/* Set all fields to "not set", and size, magic and version to those of the loaded library. */
void nccl_config(struct nccl_config *c);
/* "2.28.9" */
char *nccl_version_text(int version, char buf[24]);

extern const char *const nccl_dtype_name[NCCL_DTYPES]; /* "int8" ... "bfloat16", "float8e4m3" */
extern const char *const nccl_redop_name[NCCL_REDOPS]; /* "sum", "prod", "max", "min", "avg" */
size_t nccl_dtype_size(int dtype);
/* Find a type by the name in nccl-tests, or "half", "bf16", "f8e4m3" ...; -1: unknown. */
int nccl_dtype_find(const char *name);
int nccl_redop_find(const char *name); /* -1: unknown */

#endif
