/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the facts in cuda_api.h those of the cuda.h that is installed here?  The compiler decides
 * while it builds this file; without the header there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cuda_api.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif

#ifdef CUDA_VERSION

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
SAME(CUDA_GOOD, CUDA_SUCCESS);
SAME(CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_ALREADY_MAPPED, CUDA_ERROR_ALREADY_MAPPED);
SAME(CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME(CUDA_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUDA_UNKNOWN, CUDA_ERROR_UNKNOWN);

SAME(CUDA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CUDA_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CUDA_SM_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_SM_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_HAS_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CUDA_HAS_RDMA_WITH_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(CUDA_HAS_DMA_BUF, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
#if CUDA_VERSION >= 12030
SAME(CUDA_HAS_FABRIC, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME(CUDA_HANDLE_FABRIC, CU_MEM_HANDLE_TYPE_FABRIC);
SAME(CUDA_RANGE_DMA_BUF, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME(sizeof(struct cuda_handle), sizeof(CUmemFabricHandle));
#endif
SAME(CUDA_HAS_MULTICAST, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);

SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_EVENT_EXTERNAL, CU_EVENT_RECORD_EXTERNAL);
SAME(CUDA_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CUDA_IPC_LAZY_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(CUDA_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CUDA_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CUDA_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);

#define TYPE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
TYPE(cuda_device, CUdevice);
TYPE(cuda_ptr, CUdeviceptr);
TYPE(cuda_allocation, CUmemGenericAllocationHandle);
TYPE(struct cuda_handle, CUipcMemHandle);
TYPE(struct cuda_uuid, CUuuid);
TYPE(int, CUresult);
TYPE(int, CUdevice_attribute);
TYPE(struct cuda_location, CUmemLocation);
TYPE(struct cuda_allocation_prop, CUmemAllocationProp);
TYPE(struct cuda_access, CUmemAccessDesc);
/* The handle types are the header's own structures: one declaration for both. */
_Static_assert(__builtin_types_compatible_p(gpu_stream, CUstream), "CUstream");
_Static_assert(__builtin_types_compatible_p(cuda_context, CUcontext), "CUcontext");
_Static_assert(__builtin_types_compatible_p(cuda_module, CUmodule), "CUmodule");
_Static_assert(__builtin_types_compatible_p(cuda_function, CUfunction), "CUfunction");
_Static_assert(__builtin_types_compatible_p(cuda_event, CUevent), "CUevent");
_Static_assert(__builtin_types_compatible_p(cuda_graph, CUgraph), "CUgraph");
_Static_assert(__builtin_types_compatible_p(cuda_graph_exec, CUgraphExec), "CUgraphExec");

#define PLACE(structure, ours, theirs_structure, theirs)                                           \
    SAME(offsetof(struct structure, ours), offsetof(theirs_structure, theirs));                    \
    SAME(sizeof(((struct structure *)0)->ours), sizeof(((theirs_structure *)0)->theirs))
PLACE(cuda_location, type, CUmemLocation, type);
PLACE(cuda_location, id, CUmemLocation, id);
PLACE(cuda_allocation_prop, type, CUmemAllocationProp, type);
PLACE(cuda_allocation_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
PLACE(cuda_allocation_prop, location, CUmemAllocationProp, location);
PLACE(cuda_allocation_prop, flags, CUmemAllocationProp, allocFlags);
PLACE(cuda_allocation_prop, flags.rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
PLACE(cuda_access, location, CUmemAccessDesc, location);
PLACE(cuda_access, flags, CUmemAccessDesc, flags);

#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
/* One list of typed arguments must suit our pointer and the header's function; nothing is called.
 * ANY is a structure that both declare, which is compared above. */
#define TAKES(name, ...) SAME(sizeof(cuda.name(__VA_ARGS__)), sizeof(cu##name(__VA_ARGS__)))
#define ANY ((void *)0)
#define INT ((int *)0)
#define SIZE ((size_t)1)
#define SIZES ((size_t *)0)
#define TEXTS ((const char **)0)
#define WORDS ((char *)0)
#define AT ((cuda_ptr)0)
#define OUT ((cuda_ptr *)0)
#define HANDLE ((cuda_allocation)0)
#define STREAM ((gpu_stream)0)
#define EVENT ((cuda_event)0)
#define GRAPH ((cuda_graph)0)
#define EXEC ((cuda_graph_exec)0)
#define MODULE ((cuda_module)0)
TAKES(Init, 0);
TAKES(DriverGetVersion, INT);
TAKES(GetErrorName, 1, TEXTS);
TAKES(GetErrorString, 1, TEXTS);
TAKES(DeviceGetCount, INT);
TAKES(DeviceGet, INT, 0);
TAKES(DeviceGetName, WORDS, 0, 0);
TAKES(DeviceGetUuid, ANY, 0);
TAKES(DeviceGetPCIBusId, WORDS, 0, 0);
TAKES(DeviceTotalMem, SIZES, 0);
TAKES(DeviceGetAttribute, INT, 1, 0);
TAKES(DevicePrimaryCtxRetain, (cuda_context *)0, 0);
TAKES(DevicePrimaryCtxRelease, 0);
TAKES(CtxSetCurrent, (cuda_context)0);
TAKES(CtxGetStreamPriorityRange, INT, INT);
TAKES(MemAlloc, OUT, SIZE);
TAKES(MemFree, AT);
TAKES(MemHostAlloc, (void **)0, SIZE, 1u);
TAKES(MemFreeHost, ANY);
TAKES(IpcGetMemHandle, ANY, AT);
TAKES(IpcCloseMemHandle, AT);
TAKES(MemGetAllocationGranularity, SIZES, ANY, 1);
TAKES(MemCreate, (cuda_allocation *)0, SIZE, ANY, 0ull);
TAKES(MemRelease, HANDLE);
TAKES(MemAddressReserve, OUT, SIZE, SIZE, AT, 0ull);
TAKES(MemAddressFree, AT, SIZE);
TAKES(MemMap, AT, SIZE, SIZE, HANDLE, 0ull);
TAKES(MemUnmap, AT, SIZE);
TAKES(MemSetAccess, AT, SIZE, ANY, SIZE);
TAKES(MemExportToShareableHandle, ANY, HANDLE, 8, 0ull);
TAKES(MemImportFromShareableHandle, (cuda_allocation *)0, ANY, 8);
TAKES(MemGetHandleForAddressRange, ANY, 1, SIZE, 1, 0);
TAKES(StreamCreateWithPriority, (gpu_stream *)0, 1u, 0);
TAKES(StreamDestroy, STREAM);
TAKES(StreamQuery, STREAM);
TAKES(EventCreate, (cuda_event *)0, 0u);
TAKES(EventDestroy, EVENT);
TAKES(EventRecordWithFlags, EVENT, STREAM, 1u);
TAKES(EventElapsedTime, (float *)0, EVENT, EVENT);
TAKES(StreamBeginCapture, STREAM, 1);
TAKES(StreamEndCapture, STREAM, (cuda_graph *)0);
TAKES(GraphInstantiateWithFlags, (cuda_graph_exec *)0, GRAPH, 0ull);
TAKES(GraphLaunch, EXEC, STREAM);
TAKES(GraphExecDestroy, EXEC);
TAKES(GraphDestroy, GRAPH);
TAKES(MemcpyAsync, AT, AT, SIZE, STREAM);
TAKES(MemsetD8Async, AT, (unsigned char)0, SIZE, STREAM);
TAKES(ModuleLoadDataEx, (cuda_module *)0, ANY, 1u, ANY, (void **)0);
TAKES(ModuleUnload, MODULE);
TAKES(ModuleGetFunction, (cuda_function *)0, MODULE, TEXTS[0]);
TAKES(LaunchKernel, (cuda_function)0, 1u, 1u, 1u, 1u, 1u, 1u, 0u, STREAM, (void **)0, (void **)0);

/* cuda.h turns these names into the symbols of their newest version; each has to be one that the
 * driver keeps, which the versions in cuda_api.c are. */
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
static void versions_of_functions_are_those_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(TEXT(cuDeviceTotalMem), "cuDeviceTotalMem_v2");
    assert_string_equal(TEXT(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease_v2");
    assert_string_equal(TEXT(cuMemAlloc), "cuMemAlloc_v2");
    assert_string_equal(TEXT(cuMemFree), "cuMemFree_v2");
    assert_string_equal(TEXT(cuIpcOpenMemHandle), "cuIpcOpenMemHandle_v2");
    assert_string_equal(TEXT(cuStreamDestroy), "cuStreamDestroy_v2");
    assert_string_equal(TEXT(cuEventDestroy), "cuEventDestroy_v2");
    assert_string_equal(TEXT(cuStreamBeginCapture), "cuStreamBeginCapture_v2");
    /* And one that has none: */
    assert_string_equal(TEXT(cuStreamQuery), "cuStreamQuery");
    assert_string_equal(TEXT(cuMemcpyAsync), "cuMemcpyAsync");
    assert_string_equal(TEXT(cuLaunchKernel), "cuLaunchKernel");
}

#else
static void versions_of_functions_are_those_of_the_header(void **state)
{
    (void)state;
    skip(); /* no cuda.h here */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_of_functions_are_those_of_the_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
