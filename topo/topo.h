/* topo.h - model of a machine: hosts, endpoints, NICs, and the group of every endpoint at each
 * level.  Read this header first: all other code refers to endpoint ids.
 *
 * An endpoint is the device of one rank: a GPU, or a CPU socket on hosts without GPUs.  Its place
 * has one coordinate per level.  -1 is "not visible", never "does not exist": topo.unseen records
 * what could not be seen and why.  Each coordinate and each NIC carries the source of the fact.
 *
 * Example:
 *
 *     struct topo t;
 *
 *     topo_init(&t);
 *     int host = topo_add_host(&t, "n01");
 *     int a = topo_add_endpoint(&t, host, ENDPOINT_GPU), b = topo_add_endpoint(&t, host, ENDPOINT_GPU);
 *     topo_default_tiers(&t);
 *     printf("%s\n", t.tier[topo_tier(&t, a, b)].name);  // "nvlink" or "host"
 *     int rc = topo_save(&t, "topology.json", err);
 *     topo_free(&t);
 *     return rc; */
#ifndef RG_TOPO_H
#define RG_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/map.h"

/* Levels of locality.  HOST to RACK are nested on the systems we know, but no code relies on it; a
 * RAIL crosses them.  A SPINE is everything below the same second-tier switches: several leaves or
 * racks (a pod, a scalable unit).  Spines belong to hosts, other levels to endpoints. */
enum level {
    LEVEL_HOST,
    LEVEL_DOMAIN,
    LEVEL_LEAF,
    LEVEL_RACK,
    LEVEL_RAIL,
    LEVEL_SPINE,
    LEVEL_COUNT
};
extern const char *const level_name[LEVEL_COUNT]; /* "host", "domain", "leaf", "rack", ... */
extern const char *const level_many[LEVEL_COUNT]; /* "hosts", ..., "leaves" */
int level_find(const char *name);                 /* enum level, or -1 */

/* Sources of facts: ROW(SOURCE_x, name in files).  Both JSON schemas list the same names. */
// clang-format off
#define SOURCES(ROW)                                                                               \
    ROW(NONE, "none")           /* not visible */                                                  \
    ROW(HWLOC, "hwloc")                                                                            \
    ROW(SYSFS, "sysfs")                                                                            \
    ROW(NVML, "nvml")           /* the NVIDIA driver's management library */                       \
    ROW(MPI, "mpi")             /* from the launcher: rank order, host name */                     \
    ROW(PRESET, "preset")       /* topo/fabrics */                                                 \
    ROW(MEASURED, "measured")   /* found by clustering measured pairs */                           \
    ROW(USER, "user")           /* an option or file of the user */                                \
    ROW(IBNET, "ibnet")         /* the InfiniBand subnet: libibnetdisc, or the text                \
                                   of ibnetdiscover */                                             \
    ROW(LLDP, "lldp")           /* announced by Ethernet switches */                               \
    ROW(SMI, "nvidia-smi")      /* text or XML of nvidia-smi */                                    \
    ROW(NCCL, "nccl")           /* a topology file of NCCL */                                      \
    ROW(SLURM, "slurm")         /* topology.conf, topology.yaml, SLURM_TOPOLOGY_ADDR */            \
    ROW(LABEL, "label")         /* labels of Kubernetes nodes */                                   \
    ROW(TOPOGRAPH, "topograph")
// clang-format on
#define SOURCE_ENUM(x, name) SOURCE_##x,
enum source { SOURCES(SOURCE_ENUM) SOURCE_COUNT };
#undef SOURCE_ENUM
extern const char *const source_name[SOURCE_COUNT];
int source_find(const char *name);

enum link_layer { LINK_UNKNOWN, LINK_ETHERNET, LINK_INFINIBAND };

/* Place of one endpoint; shared by topology and cost matrix. */
struct place {
    int at[LEVEL_COUNT]; /* index into topo.group[level], -1: not visible */
};

enum endpoint_kind { ENDPOINT_CPU, ENDPOINT_GPU };
extern const char *const endpoint_kind_name[2]; /* "cpu", "gpu" */

struct endpoint {
    struct place place;
    unsigned char source[LEVEL_COUNT]; /* enum source of each coordinate */
    enum endpoint_kind kind;
    int local; /* index on its host */
    int numa;  /* -1: not visible */
    int nic;   /* nearest NIC: index into topo.nic; -1: none seen */
    /* Index into topo.gpu: the entry with the same host and PCI address; -1: none. */
    int gpu;
    char busid[16]; /* "0000:1b:00.0", "" for a CPU */
    char model[48]; /* "NVIDIA GB200", "AMD EPYC 9654" */
};

struct host {
    char *name;         /* owned by group[LEVEL_HOST] */
    char *cpu;          /* model name, or NULL */
    int sockets, cores; /* 0: not visible */
    double memory_bytes;
    int endpoints; /* number of endpoints on this host */
    /* Access of NICs to GPU memory: "nvidia_peermem 570.86", "dma-buf possible", "none"; "":
     * unknown. */
    char gdr[48];
};

/* Class of endpoint pairs.  A pair is in the first tier whose levels both endpoints share.  The
 * last tier of a table has no level and takes every remaining pair. */
struct tier_rule {
    char name[24]; /* "nvlink", "mnnvl", "shm", "rail", "leaf", "fabric", "tcp" */
    unsigned same; /* bit mask 1 << enum level: coordinates that must be known and equal */
};
enum { TIER_MAX = 16 };

/* The parts of a topology have headers of their own: host/nic.h, host/gpu.h, host/mnnvl.h
 * (trials), groups.h (declared groups), net/net.h. */
struct topo {
    struct host *host;
    int hosts;
    struct endpoint *endpoint;
    int endpoints;
    struct nic *nic;
    int nics; /* set also in a matrix loaded for prices only, where nic is NULL */
    struct mnnvl_trial *trial;
    int trials;
    struct gpu *gpu;
    int gpus; /* all GPUs that the drivers report, used by a rank or not */
    /* Names of the groups at each level, for example group[LEVEL_RACK].name[3] = "rack-03".
     * LEVEL_HOST repeats the host names, so that all levels read alike.  Add hosts with
     * topo_add_host() only. */
    struct names group[LEVEL_COUNT];
    struct tier_rule tier[TIER_MAX];
    int tiers;
    struct declared_group *declared_group;
    int declared_groups;
    struct net *net; /* switches and cables (net.h), or NULL; owned */
    struct unseen {
        char *what,
            *why; /* "NVLink domain", "no NVIDIA driver on this host (libnvidia-ml.so.1: ...)" */
    } * unseen;
    int unseens;
    char *fabric; /* name of the preset this was made from, or NULL */
    /* Record of what NCCL built (nccl_profile_read() reads it), or NULL; shared by copies. */
    struct json_t *nccl;
    /* Record of what MPI used (mpi_used_impl.h), "text" in one line, or NULL; shared by copies. */
    struct json_t *mpi;
};

void topo_init(struct topo *t);
void topo_free(struct topo *t);

int topo_add_host(struct topo *t, const char *name);        /* index; a known name keeps its own */
int topo_find_host(const struct topo *t, const char *name); /* index or -1; O(1) */
/* Replace each number in a host name by '#', so that hosts numbered in the same way become equal.
 * The caller frees. */
char *topo_host_family(const char *name);
int topo_add_group(struct topo *t, enum level level,
                   const char *name); /* index; a known name keeps its own */
int topo_add_endpoint(struct topo *t, int host,
                      enum endpoint_kind kind); /* id; sets host and local, else -1 */
/* Put endpoint e into the group of this name, as reported by `source`. */
void topo_place(struct topo *t, struct endpoint *e, enum level level, const char *group,
                enum source source);
/* Drop a level: every coordinate becomes -1 and the group names are removed, before measured
 * groups are written.  Not allowed for LEVEL_HOST. */
void topo_clear_level(struct topo *t, enum level level);
/* Record what could not be seen and why.  The same `what` again replaces the reason. */
void topo_unseen(struct topo *t, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Set endpoint.gpu of all endpoints by host and PCI address; call it after GPUs were added. */
void topo_link_gpus(struct topo *t);
void topo_copy(struct topo *to,
               const struct topo *from); /* to is overwritten without being freed */

/* Append name and facts of a host of another topology, without devices.  Returns the index. */
int topo_append_host(struct topo *to, const struct host *from);
/* Append all hosts of `from`, with everything that belongs to them, to `to`.  The tiers and the
 * network of `to` are kept; the network of `from` is used only if `to` has none.  A host that is
 * in both is EXIT_DATA, and nothing is appended. */
int topo_append(struct topo *to, const struct topo *from, struct err *err);

/* Set t->tier from the visible levels that join pairs, in this order: same host, same domain, same
 * leaf, same rack, same spine, all others.  The leaf tier is also added where topo_hides_nics().
 * Names: "shm" (CPUs), "nvlink" or "host" (GPUs) for the host; "mnnvl"; "rail" for the leaf;
 * "rack"; "spine"; the last is "fabric", or "tcp" where the only NICs seen are Ethernet without
 * verbs. */
void topo_default_tiers(struct topo *t);

/* Tier of a pair, a != b, in O(1): the first whose rule matches.  A pair that matches no rule is in
 * the last tier.  by_nic: with NVLink and shared host memory bypassed, the first whose rule does
 * not need the same host or domain. */
int topo_tier_by(const struct topo *t, int a, int b, bool by_nic);
static inline int topo_tier(const struct topo *t, int a, int b)
{
    return topo_tier_by(t, a, b, false);
}
static inline int topo_nic_tier(const struct topo *t, int a, int b)
{
    return topo_tier_by(t, a, b, true);
}

/* The coordinates that tiers depend on, side by side, for callers with millions of pairs: whole
 * endpoints do not fit in a cache.  The caller frees at; the topology must not change. */
struct topo_tiers {
    int *at; /* by endpoint; a coordinate that is not visible equals no other */
    int levels, tiers;
    unsigned rule[2][TIER_MAX]; /* [by_nic]: coordinates that must be equal, bit mask */
};
void topo_tiers_make(struct topo_tiers *x, const struct topo *t);
/* topo_tier_by() */
static inline int topo_tiers_of(const struct topo_tiers *x, int a, int b, bool by_nic)
{
    const int *p = x->at + (ptrdiff_t)a * x->levels, *q = x->at + (ptrdiff_t)b * x->levels;
    unsigned other = 1u << LEVEL_COUNT; /* never equal */
    int i = 0;

    for (int l = 0; l < x->levels; l++)
        other |= (unsigned)(p[l] != q[l]) << l;
    while (i < x->tiers - 1 && x->rule[by_nic][i] & other)
        i++;
    return x->tiers ? i : -1;
}
/* True if no pair would cross a NIC unless NVLink is bypassed: all endpoints are GPUs of one host
 * or one NVLink domain, each has an RDMA NIC, and there are at least two different NICs. */
bool topo_hides_nics(const struct topo *t);
/* Group of an endpoint at a level; -1: not visible. */
static inline int topo_at(const struct topo *t, int endpoint, int level)
{
    return t->endpoint[endpoint].place.at[level];
}
/* Return a number for the NVLink domain of an endpoint, or for its host where no domain is known; below the number of
 * domains plus the number of hosts. */
static inline int topo_domain(const struct topo *t, int endpoint)
{
    int domain = topo_at(t, endpoint, LEVEL_DOMAIN);

    return domain >= 0 ? domain : t->group[LEVEL_DOMAIN].count + topo_at(t, endpoint, LEVEL_HOST);
}

#define TOPO_FORMAT "railgauge-topology"
enum { TOPO_VERSION = 1 };
/* Read and write topology.json (schema: topo/schema/topology.schema.json).  null means "not
 * visible".  Loading is strict: an error names the place in the file (EXIT_DATA) and leaves t
 * empty. */
int topo_load(struct topo *t, const char *path, struct err *err);
int topo_save(const struct topo *t, const char *path, struct err *err);
char *topo_text(const struct topo *t); /* the file as text; the caller frees */
int topo_parse(struct topo *t, const char *text, size_t len, const char *path, struct err *err);
/* Convert "same": ["host", "leaf"] to a bit mask, for every file that has tiers. */
struct json_t;
int topo_same_read(unsigned *mask, const struct json_t *from, const char *where, struct err *err);
/* Check a name or text from outside: 1..max bytes of UTF-8 without control characters. */
int topo_text_check(const char *text, size_t max, const char *where, struct err *err);
/* Check a host name from outside: 1..255 bytes of text.  Brackets and commas are refused because
 * host lists, and so topology.json, use them; a leading dash, because it would be an option. */
int topo_host_name_check(const char *host, const char *where, struct err *err);

/* --- sources: each adds what it can see below `root` ("": the live machine, a folder: a recorded
 * one) to host index `host`.  Missing facts are recorded in topo.unseen and are no error. --- */
int topo_read_hwloc(struct topo *t, int host, const char *root,
                    struct err *err); /* CPU sockets, PCI GPUs, locality of NICs */
int topo_read_sysfs_net(struct topo *t, int host, const char *root,
                        struct err *err); /* NIC rate, state, link layer */
/* Set nic.verbs of the listed ports from libibverbs: live machine only, unless RAILGAUGE_IBVERBS
 * names the library. */
int topo_read_verbs(struct topo *t, int host, const char *root, struct err *err);
/* Set host.gdr: the module that gives NICs access to GPU memory, "dma-buf possible" or "none". */
int topo_read_gdr(struct topo *t, int host, const char *root, struct err *err);
/* GPUs, NVLinks, fabric and rack (topo/sources/host/nvml.h).  Endpoints become the driver's GPUs. */
int topo_read_nvml(struct topo *t, int host, const char *root, struct err *err);

#endif
