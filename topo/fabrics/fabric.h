/* fabric.h - presets: published figures of a kind of machine (topo/fabrics/NAME.json) and its GPU
 * (topo/gpus/NAME.json).  A preset may name another as "base" and hold only the differences.
 *
 * Every number has a source and a kind: measured (published measurement on that machine), stated
 * (by vendor staff in words), spec (data sheet), inferred (from another published number).  A
 * preset can be made into a topology (fabric_topo), the truth of the sim transport, and a cost
 * matrix (matrix_from_fabric). */
#ifndef RG_FABRIC_H
#define RG_FABRIC_H

#include "base/err.h"
#include "base/op.h"
#include "topo/topo.h"

enum fabric_kind { KIND_MEASURED, KIND_STATED, KIND_SPEC, KIND_INFERRED, KIND_COUNT };
extern const char *const fabric_kind_name[KIND_COUNT];

struct fabric_number {
    double value;
    enum fabric_kind kind;
    char *source;
};

struct json_t;

struct fabric_tier {
    struct tier_rule rule;
    struct fabric_number alpha;  /* s, one way, small message */
    struct fabric_number Bps;    /* B/s in one direction, one pair, large messages */
    struct fabric_number bi_Bps; /* B/s in each direction while both run */
    struct fabric_number peak;   /* B/s of the data sheet: the "peak" line of plots */
    bool nic;                    /* pair traffic crosses NICs: NIC faults and sharing apply */
};

struct fabric_point {
    double bytes, sec; /* S as in op.h */
};

/* Published collective on one shape.  Without points t(S) = alpha + S * factor / busbw, which
 * misses real curves by a median of 8.6 %.  With points the points are used, and alpha and busbw
 * are only quoted. */
struct fabric_collective {
    enum op op;
    int ranks, domains;
    struct fabric_number alpha, busbw; /* s; B/s */
    /* Ascending; the first is alpha at 8 bytes unless one is smaller. */
    struct fabric_point *point;
    int points; /* 0 or at least 2 */
    enum fabric_kind points_kind;
    char *points_source; /* NULL: no points */
};

/* Published rates of an expert-parallel kernel (dispatch, combine) at training sizes, for one
 * rank: traffic received from its own NVLink domain, its own share included; with several domains,
 * traffic between domains. */
struct fabric_ep {
    char *kernel; /* "DeepEP 1" */
    int ranks, domains;
    struct fabric_number alpha;  /* s */
    struct fabric_number Bps[2]; /* B/s of dispatch, combine */
};

struct fabric_gpu {
    char *name;
    char *generation; /* "hopper": selects the constants; NULL: not stated */
    /* Memory that CUDA can allocate: what the driver reports less its reserve. */
    struct fabric_number memory_bytes;
    struct fabric_number hbm_Bps;
    struct fabric_number power_W;    /* the most it takes as delivered; 0: not stated */
    struct fabric_number nvlink_Bps; /* all links in one direction; 0: none, or not stated */
    bool untested; /* no measured step of this GPU was ever compared with a prediction */
    struct {
        char dtype[12];             /* "bf16", "fp8", "mxfp8", "nvfp4", "fp16", "tf32", "fp32" */
        struct fabric_number flops; /* dense peak, FLOP/s */
    } * peak;
    int peaks;
};

struct fabric {
    char *name, *title;
    struct fabric_gpu gpu;
    int gpus_per_host, nics_per_host;
    struct {
        char *name; /* "ConnectX-7 NDR" */
        enum link_layer layer;
        bool rdma;
        struct fabric_number Bps; /* one NIC, one direction, line rate */
    } nic;
    int hosts_per_domain; /* hosts per NVLink domain; 1: the host is the domain; 0: no NVLink */
    int hosts_per_rack;
    int hosts_per_leaf;  /* 0: unknown */
    int hosts_per_spine; /* below the same second-tier switches; 0: unknown */
    bool rail_optimised; /* NIC k of every host in a leaf group is attached to leaf k */
    int default_racks;
    int job_hosts;       /* hosts per rack that a job takes by default; 0: all */
    double uplink_share; /* uplink capacity of a leaf / sum of its NICs; 1 = full bisection */
    struct fabric_tier *tier;
    int tiers;
    struct fabric_collective *collective;
    int collectives;
    struct fabric_ep *ep;
    int eps;
};

/* Load a preset.  name: a file name (contains "/" or ends in ".json"), or a shipped preset (looked
 * up as topo/fabrics/NAME.json). */
int fabric_load(struct fabric *f, const char *name, struct err *err);
/* Read a preset from complete JSON; path is used in messages. */
int fabric_read(struct fabric *f, struct json_t *root, const char *path, struct err *err);
bool fabric_shipped(const char *name); /* false: the name inside a user's file */
void fabric_free(struct fabric *f);
/* Shipped preset with this GPU, by the name that the driver reports ("NVIDIA H100 80GB HBM3" is
 * the "NVIDIA H100 SXM" of hgx-h100; PCIe cards of that name are other GPUs).  NULL: none.  The
 * caller frees. */
char *fabric_of_gpu(const char *device);
void fabric_each(name_taker *take, void *to); /* names of the shipped presets */
/* Names of the shipped presets, sorted.  The caller frees with hostlist_free(). */
int fabric_list(char ***names, int *count, struct err *err);

/* Default number of hosts per rack for a job of this many GPUs: f->job_hosts; all (0) if the job
 * fits into one rack, or if it fills whole racks and is no multiple of that share. */
int fabric_segment(const struct fabric *f, int gpus);
/* Set the GPUs per host, and per NVLink domain (0: unchanged).  NICs per GPU stay the same.
 * EXIT_USAGE: a domain that does not consist of whole hosts. */
int fabric_reshape(struct fabric *f, int gpus_per_host, int gpus_per_domain, struct err *err);

/* Make a topology of `racks` racks (0: the preset's default), with names "rack-00", "r00n00" ...
 * blind: only host names and endpoints are set, every other level is -1 ("hidden by --blind"). */
int fabric_topo(const struct fabric *f, int racks, bool blind, struct topo *t, struct err *err);

#endif
