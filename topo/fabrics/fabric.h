/* fabric.h - presets: what is published about a kind of machine (topo/fabrics/NAME.json) and its GPU
 * (topo/gpus/NAME.json).  A preset may be made from another ("base") and say only what is unlike it.
 *
 * Every number carries its source and kind: measured (by somebody, on that machine), stated (by
 * vendor staff in words), spec (data sheet), inferred (from another published number).  A preset
 * becomes a topology (fabric_topo), the truth of the sim transport, and a cost matrix
 * (matrix_from_fabric). */
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
    struct fabric_number Bps;    /* one direction, one pair, large messages */
    struct fabric_number bi_Bps; /* each direction while both run */
    struct fabric_number peak;   /* Bps of the data sheet: the "peak" line of plots */
    bool nic;                    /* the pair's traffic crosses NICs: NIC faults and sharing apply */
};

struct fabric_point {
    double bytes, sec; /* S as in op.h */
};

/* A published collective on one shape.  Without points t(S) = alpha + S * factor / busbw, which
 * misses real curves by a median of 8.6 %; with points they rule, and alpha and busbw are what is
 * quoted of them. */
struct fabric_collective {
    enum op op;
    int ranks, domains;
    struct fabric_number alpha, busbw; /* s; B/s */
    struct fabric_point *point; /* ascending; the first is alpha at 8 bytes unless one is smaller */
    int points;                 /* 0 or at least 2 */
    enum fabric_kind points_kind;
    char *points_source; /* NULL without points */
};

/* Published rates of an expert-parallel kernel (dispatch, combine) at training sizes, one rank: of
 * what it receives from its own NVLink domain, itself included; with several domains of what
 * crosses. */
struct fabric_ep {
    char *kernel; /* "DeepEP 1" */
    int ranks, domains;
    struct fabric_number alpha;  /* s */
    struct fabric_number Bps[2]; /* dispatch, combine */
};

struct fabric_gpu {
    char *name;
    char *generation; /* "hopper": whose constants stand for it; NULL: not said */
    /* What CUDA hands out: what the driver shows less its reserve. */
    struct fabric_number memory_bytes;
    struct fabric_number hbm_Bps;
    struct fabric_number nvlink_Bps; /* all links in one direction; 0: none, or not said */
    bool untested; /* no step measured on it was ever compared with a prediction */
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
    int hosts_per_domain; /* NVLink domain; 1: the host is the domain; 0: no NVLink */
    int hosts_per_rack;
    int hosts_per_leaf;  /* 0: not known */
    int hosts_per_spine; /* below the same second-tier switches; 0: not told */
    bool rail_optimised; /* NIC k of every host of a leaf group hangs on leaf k */
    int default_racks;
    int job_hosts;       /* that a job takes of a rack where nobody says how many; 0: all of them */
    double uplink_share; /* uplink capacity of a leaf / sum of its NICs; 1 = full bisection */
    struct fabric_tier *tier;
    int tiers;
    struct fabric_collective *collective;
    int collectives;
    struct fabric_ep *ep;
    int eps;
};

/* name: a file name (it has a "/" or ends in ".json"), or the name of a shipped preset (looked up
 * as topo/fabrics/NAME.json). */
int fabric_load(struct fabric *f, const char *name, struct err *err);
/* The same from JSON, all of it there; path is for messages. */
int fabric_read(struct fabric *f, struct json_t *root, const char *path, struct err *err);
bool fabric_shipped(const char *name); /* not so: a file of the user's had that name inside */
void fabric_free(struct fabric *f);
/* The shipped preset that has this GPU, by the name that its driver gives it ("NVIDIA H100 80GB
 * HBM3" is the "NVIDIA H100 SXM" of hgx-h100; PCIe cards of that name are other GPUs); NULL: none.
 * The caller frees. */
char *fabric_of_gpu(const char *device);
void fabric_each(name_taker *take, void *to); /* names of the shipped presets */
/* Names of the shipped presets, sorted; caller frees with hostlist_free(). */
int fabric_list(char ***names, int *count, struct err *err);

/* Hosts of a rack that a job of so many GPUs takes where nobody says how many: f->job_hosts, but all
 * (0) for a job that fits into one rack, or that is made of whole racks and not of such shares. */
int fabric_segment(const struct fabric *f, int gpus);
/* Hosts with so many GPUs, and NVLink domains of so many (0: as it has them); a host's NICs stay as
 * many to a GPU.  EXIT_USAGE: a domain that is not made of whole hosts. */
int fabric_reshape(struct fabric *f, int gpus_per_host, int gpus_per_domain, struct err *err);

/* `racks` racks of this fabric (0: its default) as a topology: names "rack-00", "r00n00" ...; with
 * blind, only host names and endpoints are told and every other level is -1 ("hidden by --blind").
 */
int fabric_topo(const struct fabric *f, int racks, bool blind, struct topo *t, struct err *err);

#endif
