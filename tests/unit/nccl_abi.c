/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the facts in nccl_api.h those of the nccl.h that is installed here?  The compiler decides
 * while it builds this file; without the header there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#if defined(__has_include)
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif
#endif

/* The tag of the handle's structure before 2.28. */
#if defined(NCCL_VERSION_CODE) && NCCL_VERSION_CODE < 22800
#define ncclWindow_vidmem ncclWindow
#endif
#include "kernels/nccl_api.h"

#ifdef NCCL_VERSION_CODE

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(NCCL_SUCCESS, ncclSuccess);
SAME(NCCL_UNHANDLED_CUDA, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM, ncclSystemError);
SAME(NCCL_INTERNAL, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT8, ncclInt8);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_UINT32, ncclUint32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_UINT64, ncclUint64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
#if NCCL_VERSION_CODE >= 22400 /* C has no bfloat16 in older headers */
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_FLOAT8E4M3, ncclFloat8e4m3);
SAME(NCCL_FLOAT8E5M2, ncclFloat8e5m2);
SAME(NCCL_DTYPES, ncclNumTypes);
#endif
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_PROD, ncclProd);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(NCCL_AVG, ncclAvg);
SAME(NCCL_REDOPS, ncclNumOps);
SAME(NCCL_UNDEF_INT, NCCL_CONFIG_UNDEF_INT);
SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));

#define PLACE(ours, theirs)                                                                        \
    SAME(offsetof(struct nccl_config, ours), offsetof(ncclConfig_t, theirs));                      \
    SAME(sizeof(((struct nccl_config *)0)->ours), sizeof(((ncclConfig_t *)0)->theirs))
PLACE(size, size);
PLACE(magic, magic);
PLACE(version, version);
PLACE(blocking, blocking);
PLACE(cga_cluster_size, cgaClusterSize);
PLACE(min_ctas, minCTAs);
PLACE(max_ctas, maxCTAs);
PLACE(net_name, netName);
PLACE(split_share, splitShare);
#if NCCL_VERSION_CODE >= 22600
PLACE(traffic_class, trafficClass);
#endif
#if NCCL_VERSION_CODE >= 22700
PLACE(comm_name, commName);
PLACE(collnet_enable, collnetEnable);
PLACE(cta_policy, CTAPolicy);
PLACE(shrink_share, shrinkShare);
PLACE(nvls_ctas, nvlsCTAs);
#endif
#if NCCL_VERSION_CODE >= 22800
PLACE(n_channels_per_net_peer, nChannelsPerNetPeer);
PLACE(nvlink_centric_sched, nvlinkCentricSched);
#endif
#if NCCL_VERSION_CODE >= 22900
PLACE(graph_usage_mode, graphUsageMode);
PLACE(num_rma_ctx, numRmaCtx);
#endif
#if NCCL_VERSION_CODE >= 23000
PLACE(max_p2p_peers, maxP2pPeers);
#endif
#if NCCL_VERSION_CODE >= 23005
PLACE(graph_stream_ordering, graphStreamOrdering);
#endif
#if NCCL_VERSION_CODE >= 23100
PLACE(launch_order_implicit, launchOrderImplicit);
PLACE(num_rma_sig, numRmaSig);
PLACE(rma_eager_init, rmaEagerInit);
PLACE(host_cft_mode, hostCftMode);
#endif
#if NCCL_VERSION_CODE >= 23200
PLACE(nvls_host_mode, nvlsHostMode);
#endif
SAME(NCCL_NO_COLOR, NCCL_SPLIT_NOCOLOR);

/* The initializer says what "not set" is and which size belongs to this version. */
static void the_config_is_the_initializer_of_the_header(void **state)
{
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    struct nccl_config ours;
    int was = nccl.version;

    (void)state;
    nccl.version = NCCL_VERSION_CODE;
    nccl_config(&ours);
    nccl.version = was;
    assert_int_equal(ours.magic, theirs.magic);
    assert_true(ours.size <= theirs.size);
    assert_ptr_equal(ours.net_name, theirs.netName);
    for (const struct nccl_config_field *f = nccl_config_field; f->name; f++)
        if (f->since <= NCCL_VERSION_CODE)
            assert_memory_equal((char *)&ours + f->at, (char *)&theirs + f->at, sizeof(int));
    if (NCCL_VERSION_CODE < 23300) { /* a later one may have grown */
        assert_int_equal(ours.size, theirs.size);
        assert_int_equal(ours.version, theirs.version);
    }
}

#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
/* One list of typed arguments must suit our pointer and the header's function; nothing is called.
 */
#define TAKES(name, ...) SAME(sizeof(nccl.name(__VA_ARGS__)), sizeof(nccl##name(__VA_ARGS__)))
#define FROM ((const void *)0)
#define TO ((void *)0)
#define COUNT ((size_t)1)
#define COMM ((nccl_comm)0)
#define STREAM ((gpu_stream)0)
TAKES(GetVersion, (int *)0);
TAKES(CommFinalize, COMM);
TAKES(CommDestroy, COMM);
TAKES(CommAbort, COMM);
TAKES(GetErrorString, 1);
TAKES(GetLastError, COMM);
TAKES(AllReduce, FROM, TO, COUNT, 0, 0, COMM, STREAM);
TAKES(AllGather, FROM, TO, COUNT, 0, COMM, STREAM);
TAKES(ReduceScatter, FROM, TO, COUNT, 0, 0, COMM, STREAM);
TAKES(Broadcast, FROM, TO, COUNT, 0, 0, COMM, STREAM);
TAKES(Reduce, FROM, TO, COUNT, 0, 0, 0, COMM, STREAM);
TAKES(Send, FROM, COUNT, 0, 0, COMM, STREAM);
TAKES(Recv, TO, COUNT, 0, 0, COMM, STREAM);
TAKES(GroupStart, );
TAKES(GroupEnd, );
TAKES(MemAlloc, (void **)0, COUNT);
TAKES(MemFree, TO);
TAKES(CommRegister, COMM, TO, COUNT, (void **)0);
TAKES(CommDeregister, COMM, TO);
#if NCCL_VERSION_CODE >= 22700
TAKES(CommWindowRegister, COMM, TO, COUNT, (nccl_window *)0, 1);
TAKES(CommWindowDeregister, COMM, (nccl_window)0);
SAME(1, NCCL_WIN_COLL_SYMMETRIC);
#endif
#if NCCL_VERSION_CODE >= 22800
TAKES(AlltoAll, FROM, TO, COUNT, 0, COMM, STREAM);
TAKES(Gather, FROM, TO, COUNT, 0, 0, COMM, STREAM);
TAKES(Scatter, FROM, TO, COUNT, 0, 0, COMM, STREAM);
#endif
/* These take a structure or an enumeration by its own type. */
SAME(sizeof(nccl.GetUniqueId((struct nccl_id *)0)), sizeof(ncclGetUniqueId((ncclUniqueId *)0)));
SAME(sizeof(nccl.CommGetAsyncError(COMM, (int *)0)),
     sizeof(ncclCommGetAsyncError(COMM, (ncclResult_t *)0)));
SAME(sizeof(nccl.CommSplit(COMM, 0, 0, (nccl_comm *)0, (struct nccl_config *)0)),
     sizeof(ncclCommSplit(COMM, 0, 0, (nccl_comm *)0, (ncclConfig_t *)0)));
SAME(sizeof(nccl.CommInitRankConfig((nccl_comm *)0, 1, (struct nccl_id){""}, 0,
                                    (struct nccl_config *)0)),
     sizeof(ncclCommInitRankConfig((nccl_comm *)0, 1, (ncclUniqueId){""}, 0, (ncclConfig_t *)0)));

#else

static void the_config_is_the_initializer_of_the_header(void **state)
{
    (void)state;
    print_message("no nccl.h with cuda_runtime.h is installed here\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_config_is_the_initializer_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
