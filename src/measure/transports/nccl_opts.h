/* nccl_opts.h - options of the NCCL transport besides sizes and operations. */
#ifndef RG_NCCL_OPTS_H
#define RG_NCCL_OPTS_H

#include <stdbool.h>

#include "base/opt.h"
#include "kernels/nccl_api.h"

enum nccl_register { NCCL_REG_NONE, NCCL_REG_BUFFER, NCCL_REG_SYMMETRIC };

/* Communicator for the messages of a pair.  DEFAULT: AUTO if connecting would take long, else OWN
 * (nccl_pairs_impl.h). */
enum nccl_pair_comms {
    NCCL_PAIRS_DEFAULT,
    NCCL_PAIRS_OWN,
    NCCL_PAIRS_SPLIT,
    NCCL_PAIRS_SHARED,
    NCCL_PAIRS_AUTO
};

struct nccl_opts {
    const char *path;  /* --path: NULL as NCCL chooses, else a row of the table in nccl_path.h */
    const char *algo;  /* --algo ring,tree,...: NULL as NCCL chooses */
    const char *proto; /* --proto ll,ll128,simple */
    bool sweep;        /* --sweep: every algorithm x protocol */
    bool graph;        /* --graph: replay a CUDA graph instead of launching */
    bool same_buffer;  /* --same-buffer: all operations at the same place in the buffers */
    bool in_place;     /* --in-place */
    bool mem_alloc;    /* --nccl-mem: buffers from ncclMemAlloc */
    enum nccl_register registration; /* --register none|buffer|symmetric */
    int dtype;                       /* --datatype, default NCCL_UINT8; see nccl_opts_sums() */
    bool dtype_given;
    int redop;                       /* --redop, default sum */
    bool share_gpu;                  /* --share-gpu */
    int pool;                        /* --pool N: communicators kept open, default 16 */
    enum nccl_pair_comms pair_comms; /* --pair-comms */
    const char *config;              /* --nccl-config NAME=NUMBER,...; NULL: as NCCL chooses */
};

#define NCCL_OPTS_DEFAULTS                                                                         \
    {                                                                                              \
        .dtype = NCCL_UINT8, .redop = NCCL_SUM, .pool = 16                                         \
    }
/* Type of reductions: that of training's gradients by default.  It decides which kernels run: NCCL
 * has symmetric kernels for floating-point types only, and NVLS loads 4 bytes of uint32 at once, 16
 * of float32 and bfloat16 (2.28: src/device/symmetric, multimem in src/device/reduce_kernel.h). */
static inline int nccl_opts_sums(const struct nccl_opts *o)
{
    return o->dtype_given ? o->dtype : NCCL_BFLOAT16;
}
/* The options and their values from the command line. */
extern const struct opt_set nccl_options;
extern struct nccl_opts nccl_opts_asked;

/* The algorithms and protocols of NCCL 2.30 in NCCL's spelling (src/graph/tuning.cc: ncclAlgoStr,
 * ncclProtoStr); each list ends with NULL. */
extern const char *const nccl_algo_name[], *const nccl_proto_name[];

/* Use these options (kept by reference) in transport_nccl from now on, instead of nccl_opts_asked.
 * Sets the NCCL_* variables of path, algo, proto and share_gpu for rank `rank` of this process
 * before the library reads them.  EXIT_CONFIG with both values if the user has set a variable to
 * something else.  one_host: all ranks are on this host, so that ranks which share a GPU may use
 * the loopback.
 *
 * NCCL_ALGO and NCCL_PROTO are read anew for every communicator: in 2.19 to 2.30 initTransportsRank
 * (src/init.cc) calls ncclTopoTuneModel (src/graph/tuning.cc), whose ncclGetEnv (src/misc/param.cc)
 * is getenv without a cache, unlike NCCL_PARAM's.  (src/enqueue.cc reads them later only for its
 * error messages and, with a CTA policy, to see if they are set.)  Later calls with another algo or
 * proto therefore affect the communicators made after them. */
int nccl_opts_apply(const struct nccl_opts *o, int rank, bool one_host, struct err *err);
const struct nccl_opts *nccl_opts_now(void);
/* True if the options allow NVLink. */
bool nccl_opts_on_nvlink(void);
/* Unset the user's variables that keep NVLink in use, or bypass NVLink in another way than
 * --path. */
void nccl_opts_leave_nvlink(void);
/* Check that this NCCL version supports the options.  EXIT_CONFIG if not.
 *
 *   algorithms       up to 2.23 NCCL silently uses Ring if no algorithm of NCCL_ALGO is usable
 *                    (v2.19.3 to v2.23.4: src/graph/tuning.cc, "at least set ring algo available"
 *                    and ringbdw, the backup of src/enqueue.cc, topoGetAlgoInfo; removed in
 *                    v2.24.3, which returns ncclInvalidUsage).  Therefore --sweep and an --algo
 *                    without ring need 2.24.  Every protocol has a ring
 *   --nccl-config    a field that ncclConfig_t of this version lacks */
int nccl_opts_check(const struct nccl_opts *o, int version, struct err *err);
/* Configuration of every communicator: blocking, on the network of --path and --share-gpu
 * (ncclConfig_t.netName "IB", "Socket"), with the fields of --nccl-config.  The library must be
 * loaded. */
void nccl_opts_config(struct nccl_config *c);

/* Options of nccl-tests that railgauge lacks; -b -e -f -n -w -c -d mean the same in both.  Each of
 * the others is accepted with the value that describes what is done anyway, and refused with any
 * other value: the message names the option to use instead.  Facts: NVIDIA nccl-tests 2.19.6,
 * README.md and src/common.cu.  They fill in nothing and are hidden from --help, which has a line
 * about them; the manual has the list. */
extern const struct opt nccl_tests_options[];
/* Meaning of this word after -t or -o in nccl-tests, or NULL: "-t 1" are threads there. */
const char *nccl_tests_meaning(char letter, const char *word);

#endif
