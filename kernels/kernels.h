/* kernels.h - what the CUDA kernels offer to C; all asynchronous in the stream.
 *
 * The kernels are compiled by nvcc into one fat binary that sits inside the program, with PTX of an
 * older version beside it; the driver loads it, or else the PTX, in gpu_open().  A program built without nvcc has none: kernels_there() says so, each
 * kernel is EXIT_CONFIG with the same words, and the callers fall back to copies to the host.  The
 * stand-in for the driver in tests/fake runs the same source, compiled for the CPU. */
#ifndef RG_KERNELS_H
#define RG_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/gpu.h"

/* Are they built in and loaded?  If not, *why (unless NULL) says so in words. */
bool kernels_there(const char **why);
/* What this program has of them: "sm_80, sm_90; PTX 8.0", or "none (built without nvcc)". */
void kernels_built(char *text, size_t size);
/* For gpu_open() and gpu_close().  $RAILGAUGE_KERNELS names a file with another fat binary or PTX. */
void kernels_open(void);
void kernels_close(void);

/* --- the patterns of verify.h; k is verify_key() of (rank, block, seed) --- */
int kernel_fill(void *buf, size_t bytes, uint64_t k, gpu_stream s, struct err *err);
/* The term W(r) - W(r-1) of a sum; `first`: rank 0 has no W(r-1). bytes a multiple of 4. */
int kernel_fill_term(void *buf, size_t bytes, uint64_t k, uint64_t k_before, bool first,
                     gpu_stream s, struct err *err);
/* *wrong (device or pinned memory, preset to ~0 by the call) becomes the offset of the first byte
 * that is not kernel_fill()'s. */
int kernel_find(const void *buf, size_t bytes, uint64_t k, uint64_t *wrong, gpu_stream s,
                struct err *err);

/* The typed patterns of pattern.h: onehot_fill() and onehot_find() on the GPU, with *wrong the
 * index of an element in buf. */
int kernel_fill_onehot(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k,
                       int redop, gpu_stream s, struct err *err);
int kernel_find_onehot(const void *buf, size_t first, size_t elements, int type, int ranks,
                       uint64_t k, int redop, uint64_t *wrong, gpu_stream s, struct err *err);

/* --- measuring --- */
/* Copy by multiprocessors, 16 bytes a thread and step; both addresses may be a peer's. */
int kernel_copy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err);
/* Read all of it; the sum of its 8-byte words (the last one filled up with zeros) is added to *out
 * in device memory.  `from` is a multiple of 16. */
int kernel_read(const void *from, size_t bytes, uint64_t *out, gpu_stream s, struct err *err);
/* chain: a permutation of `words` 8-byte indices in one cycle, each far from the one before; chase:
 * one thread follows `steps` of them from index `from` on, so that each load waits for the one
 * before, and leaves the index where it arrived in *out.  From 0, after n steps, that is
 * kernel_chain_at() of n: who goes on from there comes to memory that it has not touched. */
uint64_t kernel_chain_at(size_t words, size_t steps);
int kernel_chain(void *at, size_t words, gpu_stream s, struct err *err);
int kernel_chase(const void *at, uint64_t from, size_t steps, uint64_t *out, gpu_stream s,
                 struct err *err);
/* Keep `blocks` multiprocessors (0: all) busy with arithmetic for this long (compute beside which
 * communication is measured); 0 < seconds <= 60, anything else is EXIT_USAGE. */
int kernel_load(double seconds, int blocks, gpu_stream s, struct err *err);

#endif
