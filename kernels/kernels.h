/* kernels.h - C interface of the CUDA kernels; all are asynchronous in the stream.
 *
 * nvcc compiles the kernels into one fat binary inside the program, with PTX of an older version
 * beside it.  gpu_open() loads the binary, or if the driver refuses it the PTX.  A program built
 * without nvcc has no kernels: kernels_there() returns false, each kernel returns EXIT_CONFIG with
 * the same words, and callers fall back to copies to the host.  The driver's stand-in in
 * tests/fake runs the same source, compiled for the CPU. */
#ifndef RG_KERNELS_H
#define RG_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/gpu.h"

/* True if the kernels are built in and loaded.  If not, *why (unless NULL) is the reason. */
bool kernels_there(const char **why);
/* Describe the kernels in this program: "sm_80, sm_90; PTX 8.0", or "none (built without nvcc)". */
void kernels_built(char *text, size_t size);
/* For gpu_open() and gpu_close().  $RAILGAUGE_KERNELS names a file with other kernels or PTX. */
void kernels_open(void);
void kernels_close(void);

/* --- the patterns of verify.h; k is verify_key() of (rank, block, seed) --- */
int kernel_fill(void *buf, size_t bytes, uint64_t k, gpu_stream s, struct err *err);
/* Fill with the term W(r) - W(r-1) of a sum; `first`: no W(r-1).  bytes: a multiple of 4. */
int kernel_fill_term(void *buf, size_t bytes, uint64_t k, uint64_t k_before, bool first,
                     gpu_stream s, struct err *err);
/* Set *wrong (device or pinned memory, preset to ~0 by the call) to the offset of the first byte
 * that differs from kernel_fill(). */
int kernel_find(const void *buf, size_t bytes, uint64_t k, uint64_t *wrong, gpu_stream s,
                struct err *err);

/* Typed patterns of pattern.h: onehot_fill() and onehot_find() on the GPU; *wrong is the index of
 * an element in buf. */
int kernel_fill_onehot(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k,
                       int redop, gpu_stream s, struct err *err);
int kernel_find_onehot(const void *buf, size_t first, size_t elements, int type, int ranks,
                       uint64_t k, int redop, uint64_t *wrong, gpu_stream s, struct err *err);

/* --- measuring --- */
/* Copy with multiprocessors, 16 bytes per thread and step; either address may belong to a peer. */
int kernel_copy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err);
/* Read all bytes and add the sum of the 8-byte words (the last one padded with zeros) to *out in
 * device memory.  `from` is a multiple of 16. */
int kernel_read(const void *from, size_t bytes, uint64_t *out, gpu_stream s, struct err *err);
/* Read `reads` arrays of `bytes` each, one after another at `from`, and write the sums of their
 * 8-byte words to `writes` arrays at `to`: the traffic of a kernel between products.  Addresses and
 * bytes are multiples of 16. */
int kernel_pass(void *to, const void *from, size_t bytes, const int arrays[2], gpu_stream s,
                struct err *err);
/* kernel_chain() writes a permutation of `words` 8-byte indices in one cycle, with each far from
 * the previous one.  kernel_chase() follows `steps` of them in one thread, starting at index
 * `from`, so that each load waits for the one before; the index reached is left in *out.  Starting
 * at 0, after n steps that is kernel_chain_at() of n: continuing from there reaches memory not yet
 * touched. */
uint64_t kernel_chain_at(size_t words, size_t steps);
int kernel_chain(void *at, size_t words, gpu_stream s, struct err *err);
int kernel_chase(const void *at, uint64_t from, size_t steps, uint64_t *out, gpu_stream s,
                 struct err *err);
/* Keep `blocks` multiprocessors (0: all) busy with arithmetic for this time, as compute load
 * during communication.  0 < seconds <= 60, else EXIT_USAGE. */
int kernel_load(double seconds, int blocks, gpu_stream s, struct err *err);

#endif
