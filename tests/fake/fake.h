/* fake.h - stand-ins for libcuda, libnccl, libcublasLt and libnvidia-ml, so that a machine without
 * a GPU runs every line that talks to them.
 *
 * They are found by LD_LIBRARY_PATH=build/fake.  The fake driver keeps device memory in files of
 * shared memory (so that processes can map each other's), runs every stream in a thread of its own
 * (so that a stuck stream does not stop its caller), and runs kernels by name on the CPU.  The fake
 * NCCL is a host function in a stream (cuLaunchHostFunc) that reads the other ranks' device memory.
 * The stand-in for libibverbs has texts and faults of its own: verbs_fake.h.
 *
 * FAKE_GPU names a text profile, one "KEY VALUE" a line: `devices 8`, `name NVIDIA H200`, ... (list
 * in cuda.c); without it: 4 devices "Fake H200", sm 90.
 * FAKE_FAULT lists faults, separated by commas: KIND:RANK[:AFTER[:MORE]]
 *   corrupt:3:5      rank 3 receives wrong data from its 5th operation on
 *   async:3:5        CommGetAsyncError on rank 3 says NCCL_SYSTEM from its 5th op on,
 *                    that of the others NCCL_REMOTE; async:3:5:0.3: rank 3 itself 0.3 s after them
 *   hang:3:5         rank 3's 5th call does not return until its communicator is aborted
 *   stuck:3:5        rank 3's GPU does nothing any more: streams never get done
 *   die:3:5          rank 3 is killed (SIGKILL) in its 5th operation
 *   slow:3:1:0.5     rank 3 needs 0.5 s more for each operation
 *   init:3           CommInitRankConfig fails on rank 3; init:3:1:0.3: 0.3 s after the others
 *   product:3        rank 3's cuBLASLt gives wrong products
 *   scales:3         ... and pays no heed to scales of blocks
 *   slowgpu:3:1:1.2  work of known duration takes 1.2 times as long on rank 3 (fake_skip())
 *   version:3        rank 3's NCCL says another version
 * RANK is the rank in the job (OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID).  FAKE_NCCL_VERSION
 * (22809) is what GetVersion says: below 22800 there is no AlltoAll and so on.  FAKE_NCCL_CONF is a
 * line of /etc/nccl.conf.  As with the real one, NCCL_COMM_BLOCKING overrides the configuration,
 * and with NCCL_LOCAL_REGISTER=0 memory is registered with success and no handle; a window too,
 * with NCCL_WIN_ENABLE=0.  FAKE_NCCL_COST is what making and using communicators takes
 * (nccl_split.c). */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>

/* What the fake NCCL takes from the driver beside these: cuLaunchHostFunc, cuStreamIsCapturing,
 * cuMemAlloc_v2, cuMemFree_v2, cuCtxGetDevice, cuDeviceGetPCIBusId, cuDeviceGetAttribute.  An
 * operation of a fault's count is a collective or all sends and receives of one group. */

/* Exported by the fake libcuda for the other fakes: which shared memory file a device address lies
 * in, and where; false when it is no device memory. */
bool fake_find(const void *device, char file[64], size_t *offset);
/* Device memory is out of the host's reach, as on a real machine: to touch a device address is a
 * SIGSEGV.  This is where the stand-ins read and write it; host addresses come back as they are. */
void *fake_host(const void *device);
/* A kernel of the current context reads or writes these bytes: 0, or CUDA's error (700: not all of
 * them are in one allocation that the GPU may use; 716: `at` is no multiple of `alignment`), which
 * every later call of the process says too. */
int fake_reach(const void *at, size_t bytes, size_t alignment);
/* The device that memory was made on, as cuCtxGetDevice() counts; FAKE_PINNED of the host's, and
 * FAKE_STRANGER of which the driver knows nothing. */
enum { FAKE_PINNED = -1, FAKE_STRANGER = -2 };
int fake_owner(const void *at);
/* Is the fault set for this process, and for its `now`-th operation?  *more unless NULL gets MORE
 * (0 without). */
bool fake_fault(const char *kind, int now, double *more);
int fake_rank(void);
/* The stream whose host function calls this is later by so much in all its events: work of known
 * duration without the wait.  FAKE_FAULT=slowgpu:RANK:1:FACTOR makes it FACTOR times as long. */
void fake_skip(double seconds);

#endif
