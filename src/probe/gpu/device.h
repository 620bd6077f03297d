/* device.h - what one GPU can do alone: memory, the way to its host, launches, matrix products.
 *
 * All are medians under the stop rule of measure.h (95 % interval within 5 % of the median, or the
 * time cap), CUDA events around operations of one stream, after a warm-up.  Each goes beside what
 * the hardware allows where that is known:
 *
 *   what            counted                        limit
 *   device copies   bytes read and written (DRAM)  2 * memory clock * bus width, of the driver
 *   reads, fills    bytes                          the same
 *   host copies     bytes, once                    PCIe transfers/s * lanes * line coding, of sysfs
 *                                                  (gen 5 x16: 63.0 GB/s; PCI Express Base
 *                                                  Specification 5.0, 4.2)
 *   products        2 m n k                        none here: data sheets */
#ifndef RG_DEVICE_H
#define RG_DEVICE_H

#include "base/err.h"
#include "probe/gpu/gemm.h"

/* What is measured: its name in compute.tsv and its unit.
 *
 *   hbm_copy       copy engine, device to device, read and written
 *   hbm_kernel     multiprocessors, the same
 *   hbm_read       a kernel that reads
 *   fill, check    the pattern of verify.h written, and looked at
 *   h2d, d2h       from and to page-locked host memory
 *   h2d_both ...   while the other direction runs too
 *   h2d_busy       while arithmetic keeps all multiprocessors busy
 *   load           a load that waits for the one before, in memory larger than the caches
 *   launch         a kernel that copies 16 bytes, in a row of them
 *   gemm           a matrix product */
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
    ROW(GEMM,       gemm,       "FLOP/s")
// clang-format on
#define DEVICE_ID(ID, name, unit) DEVICE_##ID,
enum device_kind { DEVICE_TABLE(DEVICE_ID) DEVICE_KINDS };
extern const char *const device_kind_name[DEVICE_KINDS]; /* "hbm_copy", ... */
extern const char *const device_unit[DEVICE_KINDS];      /* "B/s", "s", "FLOP/s" */

/* One row of compute.tsv; sent as bytes between ranks. */
struct device_row {
    int endpoint;
    enum device_kind kind;
    struct gemm_shape shape; /* DEVICE_GEMM only; else zeros */
    double value, lo, hi;    /* median and its 95 % interval; NAN: not measured, note says why */
    int samples;
    double limit; /* what the hardware allows, in the same unit; 0: not known */
    char gpu[48], busid[16], host[64];
    char note[120]; /* "" or a sentence */
};

struct device_opts {
    size_t bytes;    /* of a buffer; 0: 256 MiB, or a sixteenth of the GPU's memory where that is
                        less */
    double time_cap; /* s of samples for each row, default 0.1 */
    double half_width;
    const struct gemm_shape *shape;
    int shapes;
};
#define DEVICE_DEFAULTS ((struct device_opts){.time_cap = 0.1, .half_width = 0.05})
/* Rows that device_measure() makes. */
int device_rows(const struct device_opts *o);
/* About how long that takes, s; less where the GPU lacks a dtype. */
double device_seconds(const struct device_opts *o);

/* Two parts: the host link must be measured with no other GPU of the host at work on it, the rest
 * may run on all of them at once (and should: as in a job they share the power). */
enum { DEVICE_HOST_LINK = 1, DEVICE_INSIDE = 2 };
/* `rows` has room for device_rows(): kinds and shapes are filled in, nothing is measured yet;
 * endpoint and host are the caller's. */
void device_begin(struct device_row *rows, const struct device_opts *o);
/* Measure these parts on the GPU of gpu_open().  What cannot be measured here (no kernels in this
 * program, no cuBLASLt, no fp8 on this GPU) is a row with a note; -1 is for a GPU that fails, data
 * that are wrong, and a signal (EXIT_CUT). */
int device_measure(struct device_row *rows, const struct device_opts *o, unsigned parts,
                   struct err *err);

/* --- compute.tsv --- */
struct device_table {
    struct device_row *row;
    int rows;
};
int device_save(const struct device_table *t, const char *path, struct err *err); /* atomic */
/* Strict: what is refused is named by file, line and column (EXIT_DATA). */
int device_load(struct device_table *t, const char *path, struct err *err);
int device_parse(struct device_table *t, const char *path, char *text, struct err *err);
void device_free(struct device_table *t);

/* --- device_world.c --- */
struct world;
/* Collective, with every rank's GPU open: each GPU measured by the first rank that uses it, host
 * links one GPU of a host after the other.  t: all rows on rank 0, empty elsewhere. */
int device_measure_all(struct device_table *t, const struct device_opts *o, struct world *w,
                       struct err *err);

/* The PCIe link of a device: what its lanes carry per direction, from sysfs below root ("" is the
 * live machine).  0 when sysfs does not say; note: "trained at gen 4 x16 of gen 5 x16", or "". */
double device_pcie(const char *root, const char *busid, char note[120]);

#endif
