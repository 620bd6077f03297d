/* device.h - what one GPU can do alone: memory, the way to its host, launches, matrix products.
 *
 * Rates count what moves: a copy inside the GPU reads and writes, so twice its size (DRAM bytes);
 * host copies count once.  All are medians under the stop rule of measure.h (95 % interval within
 * 5 % of the median, or the time cap), CUDA events around operations of one stream, after a
 * warm-up.  Each goes beside what the hardware allows where that is known: memory clock times bus
 * width from the driver, and PCIe generation times lanes from sysfs after line coding (gen 5 x16:
 * 63.0 GB/s; PCI Express Base Specification 5.0, 4.2). */
#ifndef RG_DEVICE_H
#define RG_DEVICE_H

#include "base/err.h"
#include "probe/gpu/gemm.h"

enum device_kind {
    DEVICE_HBM_COPY,   /* copy engine, device to device, B/s read and written */
    DEVICE_HBM_KERNEL, /* multiprocessors, the same */
    DEVICE_HBM_READ,   /* a kernel that reads, B/s */
    DEVICE_FILL,       /* the pattern of verify.h written, B/s */
    DEVICE_CHECK,      /* ... and looked at */
    DEVICE_H2D,        /* from page-locked host memory, B/s */
    DEVICE_D2H,
    DEVICE_H2D_BOTH, /* while the other direction runs too */
    DEVICE_D2H_BOTH,
    DEVICE_H2D_BUSY, /* while arithmetic keeps all multiprocessors busy */
    DEVICE_LOAD,   /* s of a load that waits for the one before, in memory larger than the caches */
    DEVICE_LAUNCH, /* s of a kernel that copies 16 bytes, in a row of them */
    DEVICE_GEMM,   /* a matrix product, FLOP/s */
    DEVICE_KINDS
};
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
void device_defaults(struct device_opts *o);
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
