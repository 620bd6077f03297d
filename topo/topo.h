/* topo.h - the machine as it was seen: hosts, endpoints, NICs, and at each level which of them
 * belong together.  Read this first: everything else talks about endpoint ids.
 *
 * An endpoint is one rank's device (a GPU, or a CPU socket on hosts without GPUs).  Its place is
 * one coordinate per level; -1 means "not visible", which is never the same as "does not exist":
 * topo.unseen says what could not be seen and why.  Each coordinate and NIC carries the source of
 * the fact. */
#ifndef RG_TOPO_H
#define RG_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/map.h"

/* Levels of locality.  HOST .. RACK are nested on the systems we know but nothing depends on it; a
 * RAIL crosses them.  A SPINE is what hangs below the same second-tier switches: several leaves or
 * racks (a pod, a scalable unit); it belongs to the host, the others to each endpoint. */
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
int level_find(const char *name);                 /* enum level or -1 */

/* Where a fact came from: ROW(SOURCE_x, name in files).  Both schemas have the names, too. */
// clang-format off
#define SOURCES(ROW)                                                                                \
    ROW(NONE, "none")           /* not visible */                                                   \
    ROW(HWLOC, "hwloc")                                                                             \
    ROW(SYSFS, "sysfs")                                                                             \
    ROW(NVML, "nvml")           /* the NVIDIA driver's management library */                        \
    ROW(MPI, "mpi")             /* told by the launcher: rank order, host name */                   \
    ROW(PRESET, "preset")       /* topo/fabrics */                                                  \
    ROW(MEASURED, "measured")   /* found by clustering measured pairs */                            \
    ROW(USER, "user")           /* an option or a file of the user's */                             \
    ROW(IBNET, "ibnet")         /* the subnet, as its switches answer: libibnetdisc or              \
                                   ibnetdiscover's text */                                          \
    ROW(LLDP, "lldp")           /* what Ethernet switches announce */                               \
    ROW(SMI, "nvidia-smi")      /* its text or XML */                                               \
    ROW(NCCL, "nccl")           /* a topology file of NCCL */                                       \
    ROW(SLURM, "slurm")         /* topology.conf, topology.yaml, SLURM_TOPOLOGY_ADDR */             \
    ROW(LABEL, "label")         /* labels of Kubernetes nodes */                                    \
    ROW(TOPOGRAPH, "topograph")
// clang-format on
#define SOURCE_ENUM(x, name) SOURCE_##x,
enum source { SOURCES(SOURCE_ENUM) SOURCE_COUNT };
#undef SOURCE_ENUM
extern const char *const source_name[SOURCE_COUNT];
int source_find(const char *name);

enum link_layer { LINK_UNKNOWN, LINK_ETHERNET, LINK_INFINIBAND };

/* The place of one endpoint; shared by topology and cost matrix. */
struct place {
    int at[LEVEL_COUNT]; /* index into topo.group[level], -1: not visible */
};

enum endpoint_kind { ENDPOINT_CPU, ENDPOINT_GPU };
extern const char *const endpoint_kind_name[2]; /* "cpu", "gpu" */

struct endpoint {
    struct place place;
    unsigned char source[LEVEL_COUNT]; /* enum source of each coordinate */
    enum endpoint_kind kind;
    int local;      /* index on its host */
    int numa;       /* -1: not visible */
    int nic;        /* nearest NIC, index into topo.nic; -1: none seen */
    int gpu;        /* index into topo.gpu: the row with its host and PCI address; -1: none */
    char busid[16]; /* "0000:1b:00.0", "" for a CPU */
    char model[48]; /* "NVIDIA GB200", "AMD EPYC 9654" */
};

struct host {
    char *name;         /* the one of its group of LEVEL_HOST, which has it */
    char *cpu;          /* model name, or NULL */
    int sockets, cores; /* 0: not visible */
    double memory_bytes;
    int endpoints; /* how many endpoints name this host */
    /* How NICs reach GPU memory: "nvidia_peermem 570.86", "dma-buf possible", "none"; "" is not
     * visible. */
    char gdr[48];
};

/* One class of pairs: two endpoints are in the first tier whose levels they share.  The last tier
 * of a table has no level and takes every pair. */
struct tier_rule {
    char name[24]; /* "nvlink", "mnnvl", "shm", "rail", "leaf", "fabric", "tcp" */
    unsigned same; /* bit mask 1 << enum level: coordinates that are known and equal */
};
enum { TIER_MAX = 16 };

/* What hangs on it has a header of its own: host/nic.h, host/gpu.h, host/mnnvl.h (trials), groups.h
 * (declared groups), net/net.h. */
struct topo {
    struct host *host;
    int hosts;
    struct endpoint *endpoint;
    int endpoints;
    struct nic *nic;
    int nics; /* a matrix that was read for prices has NULL and their number */
    struct mnnvl_trial *trial;
    int trials;
    struct gpu *gpu;
    int gpus; /* all that the hosts' drivers tell of, whether a rank uses them or not */
    /* Names of the groups at each level, for instance group[LEVEL_RACK].name[3] = "rack-03".
     * LEVEL_HOST has the host names again so that all levels read alike.  Hosts are added through
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
    char *fabric; /* name of the preset that this came from, or NULL */
    /* What NCCL built here (nccl_profile_read() gives it back), or NULL; shared by copies. */
    struct json_t *nccl;
    /* What MPI used here (mpi_used.h), "text" in one line, or NULL; shared by copies. */
    struct json_t *mpi;
};

void topo_init(struct topo *t);
void topo_free(struct topo *t);

int topo_add_host(struct topo *t, const char *name);        /* index; existing name: same index */
int topo_find_host(const struct topo *t, const char *name); /* index or -1; O(1) */
/* A name with '#' for each number in it: hosts of one kind are numbered.  The caller frees. */
char *topo_host_family(const char *name);
int topo_add_group(struct topo *t, enum level level,
                   const char *name); /* index; existing name: same index */
int topo_add_endpoint(struct topo *t, int host,
                      enum endpoint_kind kind); /* id; fills host, local, -1s */
/* The endpoint is in the group of this name, as the source tells. */
void topo_place(struct topo *t, struct endpoint *e, enum level level, const char *group,
                enum source source);
/* Forget a level: every endpoint's coordinate becomes -1 and the names go (before measured groups
 * are written in).  Not for LEVEL_HOST. */
void topo_clear_level(struct topo *t, enum level level);
/* What could not be seen and why; the same `what` again replaces its reason. */
void topo_unseen(struct topo *t, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Set endpoint.gpu of all from hosts and PCI addresses, after rows were added. */
void topo_link_gpus(struct topo *t);
void topo_copy(struct topo *to,
               const struct topo *from); /* to is overwritten without being freed */

/* The hosts of `from` and all that belongs to them behind those of `to`; of two networks the first
 * is kept, tiers are as they were.  A host of both: EXIT_DATA, nothing is appended. */
/* Name and facts of a host of another topology; its devices are not counted.  Its index. */
int topo_append_host(struct topo *to, const struct host *from);
int topo_append(struct topo *to, const struct topo *from, struct err *err);

/* Fill t->tier from the levels that are visible and that have pairs: same host, same domain, same
 * leaf, same rack, rest; same leaf also where topo_hides_nics().  Names: "shm" (CPUs), "nvlink" or "host" (GPUs) for the host; "mnnvl";
 * "rail"; "rack"; the rest is "fabric", or "tcp" where the only NICs seen are Ethernet without
 * verbs. */
void topo_default_tiers(struct topo *t);

/* The tier of a pair of endpoints, O(1).  a != b.  A pair that no rule takes is in the last tier. */
int topo_tier(const struct topo *t, int a, int b);
/* The tier that it would be in without NVLink and without memory that both reach: the first that does
 * not ask for one host or domain. */
int topo_nic_tier(const struct topo *t, int a, int b);
static inline int topo_tier_by(const struct topo *t, int a, int b, bool by_nic)
{
    return by_nic ? topo_nic_tier(t, a, b) : topo_tier(t, a, b);
}
/* GPUs of one host or of one NVLink domain, each with an RDMA NIC and not all with the same one: no
 * pair crosses a NIC unless NVLink is left. */
bool topo_hides_nics(const struct topo *t);
/* A large machine's endpoints are in no cache: where many pairs are asked for, those that come so many
 * later are fetched meanwhile. */
enum { TOPO_AHEAD = 8 };
static inline void topo_fetch(const struct topo *t, int a, int b)
{
    __builtin_prefetch(&t->endpoint[a]);
    __builtin_prefetch(&t->endpoint[b]);
}
/* The group that an endpoint is in at a level; -1: not visible. */
static inline int topo_at(const struct topo *t, int endpoint, int level)
{
    return t->endpoint[endpoint].place.at[level];
}

#define TOPO_FORMAT "railgauge-topology"
enum { TOPO_VERSION = 1 };
/* topology.json (schema: topo/schema/topology.schema.json).  null is
 * "not visible".  Loading is strict: what is refused is named by its place in the file (EXIT_DATA).
 * After a failed load t is empty. */
int topo_load(struct topo *t, const char *path, struct err *err);
int topo_save(const struct topo *t, const char *path, struct err *err);
char *topo_text(const struct topo *t); /* the same as text; the caller frees */
int topo_parse(struct topo *t, const char *text, size_t len, const char *path, struct err *err);
/* "same": ["host", "leaf"] and back, for every file that has tiers. */
struct json_t;
int topo_same_read(unsigned *mask, const struct json_t *from, const char *where, struct err *err);
/* A name or text that came from outside: 1..max bytes of UTF-8 without control characters. */
int topo_text_check(const char *text, size_t max, const char *where, struct err *err);
/* A host's name from outside: 1..255 bytes of text without brackets and commas, which have a meaning
 * in host lists and so in topology.json, and without a dash in front, with which it would be an
 * option of the commands that are given it. */
int topo_host_name_check(const char *host, const char *where, struct err *err);

/* --- sources: each fills in what it can see below `root` ("" is the live machine, a folder is a
 * recorded one) for host index `host`; what is not there goes to unseen and is no error. --- */
int topo_read_hwloc(struct topo *t, int host, const char *root,
                    struct err *err); /* CPU sockets, PCI GPUs, NICs' place */
int topo_read_sysfs_net(struct topo *t, int host, const char *root,
                        struct err *err); /* NIC rate, state, link layer */
/* What libibverbs tells of the ports with verbs that are listed: nic.verbs, of the live machine only
 * unless RAILGAUGE_IBVERBS names the library. */
int topo_read_verbs(struct topo *t, int host, const char *root, struct err *err);
/* host.gdr: which module lets NICs reach the memory of GPUs, "dma-buf possible" or "none". */
int topo_read_gdr(struct topo *t, int host, const char *root, struct err *err);
/* GPUs, NVLinks, fabric and rack (topo/host/nvml.h); endpoints become the GPUs that the driver
 * shows. */
int topo_read_nvml(struct topo *t, int host, const char *root, struct err *err);

/* The short readable picture of `railgauge discover`. */
void topo_print(const struct topo *t, FILE *f);

#endif
