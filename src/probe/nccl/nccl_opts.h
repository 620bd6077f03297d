/* nccl_opts.h - how the NCCL transport runs: what a user may choose beside sizes and operations. */
#ifndef RG_NCCL_OPTS_H
#define RG_NCCL_OPTS_H

#include <stdbool.h>

#include "base/opt.h"
#include "kernels/nccl_api.h"

enum nccl_register { NCCL_REG_NONE, NCCL_REG_BUFFER, NCCL_REG_SYMMETRIC };

/* Whose communicator the messages of a pair are on; DEFAULT: AUTO where connecting would take long,
 * else OWN (nccl_pairs.h). */
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
    bool same_buffer;  /* --same-buffer: all operations on one place of the buffers */
    bool in_place;     /* --in-place */
    bool mem_alloc;    /* --nccl-mem: buffers from ncclMemAlloc */
    enum nccl_register registration; /* --register none|buffer|symmetric */
    int dtype;                       /* --datatype, default NCCL_UINT8; reductions NCCL_UINT32 */
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
/* The options, and what they said. */
extern const struct opt_set nccl_options;
extern struct nccl_opts nccl_opts_asked;

/* The algorithms and protocols of NCCL 2.30 in its own spelling (src/graph/tuning.cc: ncclAlgoStr,
 * ncclProtoStr); NULL ends each list. */
extern const char *const nccl_algo_name[], *const nccl_proto_name[];

/* What transport_nccl uses from now on (kept by reference) instead of nccl_opts_asked.  Sets the
 * NCCL_* variables of path, algo, proto and share_gpu for rank `rank` of this process before the
 * library looks at them; a variable that the user has set to something else is an error that
 * names both (EXIT_CONFIG). NCCL_ALGO and NCCL_PROTO are read anew for every communicator: in
 * 2.19 to 2.30 initTransportsRank (src/init.cc) calls ncclTopoTuneModel (src/graph/tuning.cc),
 * whose ncclGetEnv (src/misc/param.cc) is getenv without a cache, unlike NCCL_PARAM's.
 * (src/enqueue.cc asks later only for its words of refusal and, with a CTA policy, whether they
 * are set.)  So later calls with another algo or proto count for the communicators made after
 * them.  one_host: all ranks are here, so that ranks which share a GPU may talk over the
 * loopback. */
int nccl_opts_apply(const struct nccl_opts *o, int rank, bool one_host, struct err *err);
const struct nccl_opts *nccl_opts_now(void);
/* Does what is asked leave NVLink to be used? */
bool nccl_opts_on_nvlink(void);
/* Variables of the user that keep NVLink, or that leave it another way than --path does, go. */
void nccl_opts_leave_nvlink(void);
/* Does NCCL of this version do what is asked, or refuse it?  Up to 2.23 it takes Ring and says
 * nothing where no algorithm of NCCL_ALGO can be used (v2.19.3 to v2.23.4: src/graph/tuning.cc,
 * "at least set ring algo available" and ringbdw, the backup of src/enqueue.cc, topoGetAlgoInfo; it
 * is gone in v2.24.3, which returns ncclInvalidUsage), so that --sweep and an --algo without ring
 * need 2.24: EXIT_CONFIG.  Every protocol has a ring.  And a field of --nccl-config that its
 * ncclConfig_t has not. */
int nccl_opts_check(const struct nccl_opts *o, int version, struct err *err);
/* What every communicator is made with: a blocking one, on the network of --path and --share-gpu
 * (ncclConfig_t.netName "IB", "Socket"), and what --nccl-config says; the library is loaded. */
void nccl_opts_config(struct nccl_config *c);

/* The options of nccl-tests that railgauge has not: -b -e -f -n -w -c -d mean the same there and
 * here.  Each of the others is accepted with the value that says what is done here anyway, and
 * refused with any other: the message names the option to use instead.  Facts: NVIDIA nccl-tests
 * 2.19.6, README.md and src/common.cu.  They fill in nothing and are hidden from --help, which
 * has a line on it: the manual has the list. */
extern const struct opt nccl_tests_options[];
/* What nccl-tests' user means by this word after -t or -o, or NULL: "-t 1" are threads there. */
const char *nccl_tests_meaning(char letter, const char *word);

#endif
