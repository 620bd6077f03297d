/* device.h - speed of one GPU alone: memory, path to the host, launches, matrix products.
 *
 * All values are medians under the stop rule of measure.h (95 % interval within 5 % of the median,
 * or the time cap), from CUDA events around operations of one stream, after a warm-up.  The
 * hardware limit is given where known:
 *
 *   what            counted                        limit
 *   device copies   bytes read and written (DRAM)  2 * memory clock * bus width, from the driver
 *   reads, fills    bytes                          the same
 *   host copies     bytes, once                    PCIe transfers/s * lanes * coding, from sysfs
 *                                                  (gen 5 x16: 63.0 GB/s; PCI Express Base
 *                                                  Specification 5.0, 4.2)
 *   products        2 m n k                        none here: data sheets
 *   attention       4 m m n k, half of it causal,   none here
 *                   backward 2.5 times as many
 *   passes          bytes read and written          none here: a mix of arrays, by kind
 *
 * Passes stand for what runs between products: a kernel of ours moves the bytes of a norm, a gate,
 * a rotation, a loss, an optimizer or a cast, with the same share of reads and writes, from memory
 * that no cache holds.  The arithmetic of these kernels hides behind their memory.
 *
 * The attention core is measured through PyTorch (jobs/python/railgauge/attention.py), which calls
 * cuDNN or FlashAttention as a training job does.  There is no kernel of ours for the attention
 * core, because a plain one would be several times slower. */
#ifndef RG_DEVICE_H
#define RG_DEVICE_H

#include <stdbool.h>

#include "base/err.h"
#include "measure/device/gemm.h"

/* Quantities, with name in compute.tsv and unit.
 *
 *   hbm_copy       copy engine, device to device, read and written
 *   hbm_kernel     multiprocessors, the same
 *   hbm_read       a kernel that reads
 *   fill, check    writing and checking the pattern of verify.h
 *   h2d, d2h       from and to page-locked host memory
 *   h2d_both ...   while the other direction runs too
 *   h2d_busy       while arithmetic keeps all multiprocessors busy
 *   load           dependent loads, in memory larger than the caches
 *   launch         a kernel that copies 16 bytes, in a sequence of launches
 *   launch_graph   the same in a CUDA graph
 *   gemm           a matrix product
 *
 * Kinds with a shape m x n x k:
 *
 *   grouped             products of routed experts, m tokens each, every one with other weights
 *   attention           m tokens, n heads of k, causal; attention_backward: its gradients
 *   norm                m tokens of n; gate, rotary and cast: the same; k is 1
 *   loss                m tokens over a vocabulary of n
 *   adam                m x n parameters */
// clang-format off
#define DEVICE_TABLE(ROW)                                                                          \
    ROW(HBM_COPY,   hbm_copy,   "B/s")                                                             \
    ROW(HBM_KERNEL, hbm_kernel, "B/s")                                                             \
    ROW(HBM_READ,   hbm_read,   "B/s")                                                             \
    ROW(FILL,       fill,       "B/s")                                                             \
    ROW(CHECK,      check,      "B/s")                                                             \
    ROW(H2D,        h2d,        "B/s")                                                             \
    ROW(D2H,        d2h,        "B/s")                                                             \
    ROW(H2D_BOTH,   h2d_both,   "B/s")                                                             \
    ROW(D2H_BOTH,   d2h_both,   "B/s")                                                             \
    ROW(H2D_BUSY,   h2d_busy,   "B/s")                                                             \
    ROW(LOAD,       load,       "s")                                                               \
    ROW(LAUNCH,     launch,     "s")                                                               \
    ROW(LAUNCH_GRAPH, launch_graph, "s")                                                           \
    ROW(GEMM,       gemm,       "FLOP/s")                                                          \
    ROW(GROUPED,    grouped,    "FLOP/s")                                                          \
    ROW(ATTENTION,  attention,  "FLOP/s")                                                          \
    ROW(ATTENTION_BACK, attention_backward, "FLOP/s")                                              \
    ROW(NORM,       norm,       "B/s")                                                             \
    ROW(GATE,       gate,       "B/s")                                                             \
    ROW(ROTARY,     rotary,     "B/s")                                                             \
    ROW(CAST,       cast,       "B/s")                                                             \
    ROW(LOSS,       loss,       "B/s")                                                             \
    ROW(ADAM,       adam,       "B/s")
// clang-format on
#define DEVICE_ID(ID, name, unit) DEVICE_##ID,
enum device_kind { DEVICE_TABLE(DEVICE_ID) DEVICE_KINDS };
extern const char *const device_kind_name[DEVICE_KINDS]; /* "hbm_copy", ... */
extern const char *const device_unit[DEVICE_KINDS];      /* "B/s", "s", "FLOP/s" */

/* True if figures of this kind have a shape. */
static inline bool device_shaped(enum device_kind kind)
{
    return kind >= DEVICE_GEMM;
}

/* One row of compute.tsv; sent as bytes between ranks. */
struct device_row {
    int endpoint;
    enum device_kind kind;
    struct gemm_shape shape; /* zeros unless device_shaped() */
    double value, lo, hi; /* median and 95 % interval; NAN: not measured, for the reason in note */
    int samples;
    double limit; /* hardware limit in the same unit; 0: not known */
    char gpu[48], busid[16], host[64];
    char note[120]; /* "" or a sentence */
};

/* A kernel of a model's step other than its products. */
struct device_kernel {
    enum device_kind kind;
    struct gemm_shape shape;
};

struct device_opts {
    size_t bytes;    /* size of a buffer; 0: 256 MiB, at most 1/16 of GPU memory */
    double time_cap; /* s of samples per row, default 0.1 */
    double half_width;
    const struct gemm_shape *shape;
    int shapes;
    const struct device_kernel *kernel;
    int kernels;
};
#define DEVICE_DEFAULTS ((struct device_opts){.time_cap = 0.1, .half_width = 0.05})
/* Number of rows that device_measure() makes. */
int device_rows(const struct device_opts *o);
/* Approximate seconds of device_measure(); less if the GPU lacks a dtype. */
double device_seconds(const struct device_opts *o);

/* Two parts.  The host link must be measured while no other GPU of the host uses it.  The rest may
 * run on all GPUs at once, and should, because in a job they share the power. */
enum { DEVICE_HOST_LINK = 1, DEVICE_INSIDE = 2 };
/* Fill in kinds and shapes, products last; nothing is measured yet.  `rows` has room for device_rows().  The
 * caller sets endpoint and host. */
void device_begin(struct device_row *rows, const struct device_opts *o);
/* Measure these parts on the GPU of gpu_open().  A row that cannot be measured here (no kernels in
 * this program, no cuBLASLt, no fp8 on this GPU) gets a note.  Returns -1 if the GPU fails, data is
 * wrong, or a signal arrived (EXIT_CUT). */
int device_measure(struct device_row *rows, const struct device_opts *o, unsigned parts,
                   struct err *err);

/* --- compute.tsv --- */
struct device_table {
    struct device_row *row;
    int rows;
};
int device_save(const struct device_table *t, const char *path, struct err *err); /* atomic */
/* Strict parsers: errors name file, line and column (EXIT_DATA). */
int device_load(struct device_table *t, const char *path, struct err *err);
int device_parse(struct device_table *t, const char *path, char *text, struct err *err);
void device_free(struct device_table *t);

/* --- device_world.c --- */
struct world;
/* Collective, with every rank's GPU open.  Each GPU is measured by the first rank that uses it; the
 * host links of a host are measured one GPU after another.  t: all rows on rank 0, empty
 * elsewhere. */
int device_measure_all(struct device_table *t, const struct device_opts *o, struct world *w,
                       struct err *err);

/* Bandwidth of a device's PCIe link per direction, B/s, from sysfs below root ("" is the live
 * machine); 0: unknown.  note: "trained at gen 4 x16 of gen 5 x16", or "". */
double device_pcie(const char *root, const char *busid, char note[120]);

#endif
