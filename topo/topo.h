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

/* Where a fact came from. */
enum source {
    SOURCE_NONE, /* not visible */
    SOURCE_HWLOC,
    SOURCE_SYSFS,
    SOURCE_NVML,     /* the NVIDIA driver's management library */
    SOURCE_MPI,      /* told by the launcher: rank order, host name */
    SOURCE_PRESET,   /* topo/fabrics */
    SOURCE_MEASURED, /* found by clustering measured pairs */
    SOURCE_USER,     /* an option or a file of the user's */
    SOURCE_IBNET,    /* the subnet, as its switches answer: libibnetdisc or ibnetdiscover's text */
    SOURCE_LLDP,     /* what Ethernet switches announce */
    SOURCE_SMI,      /* nvidia-smi's text or XML */
    SOURCE_NCCL,     /* a topology file of NCCL */
    SOURCE_SLURM,    /* topology.conf, topology.yaml, SLURM_TOPOLOGY_ADDR */
    SOURCE_LABEL,    /* labels of Kubernetes nodes */
    SOURCE_TOPOGRAPH,
    SOURCE_COUNT
};
extern const char *const source_name[SOURCE_COUNT];
int source_find(const char *name);

/* The place of one endpoint; shared by topology and cost matrix. */
struct place {
    int at[LEVEL_COUNT]; /* index into topo.group[level], -1: not visible */
};

enum endpoint_kind { ENDPOINT_CPU, ENDPOINT_GPU };

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

enum link_layer { LINK_UNKNOWN, LINK_ETHERNET, LINK_INFINIBAND };

/* What a NIC is there for.  Training traffic belongs on compute NICs only. */
enum nic_use { NIC_UNKNOWN, NIC_COMPUTE, NIC_STORAGE, NIC_MANAGEMENT, NIC_USES };
extern const char *const nic_use_name[NIC_USES]; /* "unknown", "compute", ... */

struct nic {
    int host;
    char name[32]; /* "mlx5_0", "eth0"; "mlx5_0:2" is its second port */
    char busid[16];
    enum link_layer layer;
    double rate_Bps; /* per direction; 0: not visible */
    bool up;
    bool rdma; /* has verbs: InfiniBand or RoCE */
    int numa;  /* -1: not visible */
    enum source source;
    /* Of RDMA NICs and of what switches tell; texts: "" is not visible. */
    char guid[20];                /* of the port: "0xb83fd2030091a2c4" */
    char gid[40], gid_type[12];   /* what traffic uses: "RoCE v2", "IB" */
    int gid_index;                /* its number in the port's table; -1: not known */
    char board[20];               /* of the card: "MT_0000000838" */
    char netdev[16];              /* its network interface */
    char leaf[65], leaf_port[32]; /* the switch at the other end and the port there */
    enum source leaf_source;
    int rail, plane; /* from 0; -1: not known */
    enum nic_use use;
    char why[64]; /* what `use` rests on: "same leaves as 31 others", "no GPU near it" */
    /* Who told them, or what they follow from: a rail and a plane from the leaf, a use from the
     * NIC's link and speed or from the network that it is on. */
    enum source rail_source, plane_source, use_source;
};
void nic_init(struct nic *n, int host); /* nothing told: -1s */
/* Who told of its link and speed: its source; of one whose row names none, the user's file. */
enum source nic_teller(const struct nic *n);

struct host {
    char *name;
    char *cpu;          /* model name, or NULL */
    int sockets, cores; /* 0: not visible */
    double memory_bytes;
    int endpoints; /* how many endpoints name this host */
    /* How NICs reach GPU memory: "nvidia_peermem 570.86", "dma-buf possible", "none"; "" is not
     * visible. */
    char gdr[48];
};

/* One source says that these hosts belong together at a level.  Nothing is resolved here: sources
 * may contradict each other, and may name hosts that are not among topo.host.  The order of a
 * source's groups is data (Slurm joins neighbouring blocks).  See claim.h. */
struct claim {
    enum source source;
    enum level level;
    char *origin; /* "topology.conf", "ibnetdiscover" */
    char *group;  /* name of the group */
    char **host;  /* owned names */
    int hosts;
    int above; /* of LEVEL_SPINE: so many tiers of switches wider than a spine; 0: the level itself
                */
};

/* --- what NVML tells of a GPU; -1 (texts: "") is "not told" everywhere --- */
enum { GPU_LINKS = 36, GPU_PEERS = 32 }; /* NVLinks of a GPU, GPUs of a host: at most */

enum link_end { LINK_END_GPU, LINK_END_CPU, LINK_END_SWITCH, LINK_END_UNKNOWN };
enum gpu_path { PATH_SELF, PATH_PIX, PATH_PXB, PATH_PHB, PATH_NODE, PATH_SYS };
enum fabric_state { FABRIC_NONE, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED };
enum remap { REMAP_NONE, REMAP_PENDING, REMAP_FAILED };

struct gpu_remote { /* what `links` of its NVLinks lead to */
    enum link_end kind;
    char busid[16]; /* "": hidden */
    int links;
};

struct gpu {
    int host, index; /* index: in NVML's order, which is that of the PCI addresses */
    char busid[16], uuid[48], model[48], driver[32];
    int links;               /* NVLinks it has; 0: none */
    unsigned long long down; /* bit i: link i is there and not active */
    bool counted;            /* `links` is a number of active ones, without a word of others */
    double link_Bps;         /* per direction of a link, of the slowest active one; 0: not told */
    struct gpu_remote remote[GPU_LINKS];
    int remotes;
    int path[GPU_PEERS]; /* enum gpu_path to GPU i of its host */
    int paths;
    /* Registration with the NVLink fabric.  status (an NVML return code) counts once the state is
     * completed; a cluster of zeros says that there is no domain across hosts. */
    int state;  /* enum fabric_state */
    int status; /* 0: success */
    char cluster[40];
    long long clique, health; /* health: mask of nvml_health_words() */
    int summary;              /* 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity */
    /* Its place in a rack */
    char chassis[20]; /* serial number */
    int slot, tray, node, module;
    int pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
    int sm_MHz, sm_MHz_max;
    long long throttle;                       /* mask of nvml_throttle_words() when it was read */
    long long ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    long long retired_pages, remapped_rows, pcie_replays, link_errors;
    int remap;    /* enum remap: what still has to be done about bad rows */
    int recovery; /* what the driver asks for, see nvml_recovery_word(); 0: nothing */
    /* Of its host: channels that this user may open, and lines of IMEX's nodes_config.cfg. */
    int imex_channels, imex_nodes;
};
void gpu_init(struct gpu *g); /* nothing told */
int gpu_links_up(const struct gpu *g);
enum { GPU_LINKS_TEXT = 32 };
/* "17 of 18 NVLinks", or "17 NVLinks" where a source tells no more than a count. */
char *gpu_links_text(const struct gpu *g, char buf[GPU_LINKS_TEXT]);

/* What trying found out on a host, when somebody did: memory with a FABRIC handle allocated,
 * exported, imported by another host (1 works, 0 fails, -1 not tried), and measured bandwidth
 * between hosts of the domain (B/s; 0: not measured).  One a host at most; see mnnvl.h. */
struct mnnvl_trial {
    int host;
    int allocate, export, import;
    double Bps;
    char why[96]; /* the words of what failed */
};

/* One class of pairs: two endpoints are in the first tier whose levels they share.  The last tier
 * of a table has no level and takes every pair. */
struct tier_rule {
    char name[24]; /* "nvlink", "mnnvl", "shm", "rail", "leaf", "fabric", "tcp" */
    unsigned same; /* bit mask 1 << enum level: coordinates that are known and equal */
};
enum { TIER_MAX = 16 };

struct topo {
    struct host *host;
    int hosts;
    struct endpoint *endpoint;
    int endpoints;
    struct nic *nic;
    int nics;
    struct mnnvl_trial *trial;
    int trials;
    struct gpu *gpu;
    int gpus; /* all that the hosts' drivers tell of, whether a rank uses them or not */
    /* Names of the groups at each level, for instance group[LEVEL_RACK].name[3] = "rack-03".
     * LEVEL_HOST has the host names again so that all levels read alike.  Names are
     * added and removed through the functions below only, which keep the index of them. */
    struct {
        char **name;
        int count;
        struct map index;
    } group[LEVEL_COUNT];
    struct tier_rule tier[TIER_MAX];
    int tiers;
    struct claim *claim;
    int claims;
    struct net *net; /* switches and cables (net.h), or NULL; owned */
    struct unseen {
        char *what,
            *why; /* "NVLink domain", "no NVIDIA driver on this host (libnvidia-ml.so.1: ...)" */
    } * unseen;
    int unseens;
    char *fabric; /* name of the preset that this came from, or NULL */
    /* What NCCL built here (nccl_profile_read() gives it back), or NULL; shared by copies. */
    struct json_t *nccl;
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
int topo_append(struct topo *to, const struct topo *from, struct err *err);

/* Fill t->tier from the levels that are visible and that have pairs: same host, same domain, same
 * leaf, same rack, rest.  Names: "shm" (CPUs), "nvlink" or "host" (GPUs) for the host; "mnnvl";
 * "rail"; "rack"; the rest is "fabric", or "tcp" where the only NICs seen are Ethernet without
 * verbs. */
void topo_default_tiers(struct topo *t);

/* The tier of a pair, O(1).  a != b.  A pair that no rule takes is in the last tier. */
int topo_tier(const struct tier_rule *tier, int tiers, const struct place *a,
              const struct place *b);

/* topology.json, format "railgauge-topology" (schema: topo/schema/topology.schema.json).  null is
 * "not visible".  Loading is strict: what is refused is named by its place in the file (EXIT_DATA).
 * After a failed load t is empty. */
int topo_load(struct topo *t, const char *path, struct err *err);
int topo_save(const struct topo *t, const char *path, struct err *err);
char *topo_text(const struct topo *t); /* the same as text; the caller frees */
int topo_parse(struct topo *t, const char *text, size_t len, const char *path, struct err *err);
/* "same": ["host", "leaf"] and back, for every file that has tiers. */
struct json_t;
int topo_same_read(unsigned *mask, const struct json_t *from, const char *where, struct err *err);
struct json_t *topo_same_json(unsigned mask); /* new reference */
/* A name or text that came from outside: 1..max bytes of UTF-8 without control characters. */
int topo_text_check(const char *text, size_t max, const char *where, struct err *err);

/* --- sources: each fills in what it can see below `root` ("" is the live machine, a folder is a
 * recorded one) for host index `host`; what is not there goes to unseen and is no error. --- */
int topo_read_hwloc(struct topo *t, int host, const char *root,
                    struct err *err); /* CPU sockets, PCI GPUs, NICs' place */
int topo_read_sysfs_net(struct topo *t, int host, const char *root,
                        struct err *err); /* NIC rate, state, link layer */
/* host.gdr: which module lets NICs reach the memory of GPUs, "dma-buf possible" or "none". */
int topo_read_gdr(struct topo *t, int host, const char *root, struct err *err);
/* GPUs, NVLinks, fabric and rack (topo/host/nvml.h); endpoints become the GPUs that the driver
 * shows. */
int topo_read_nvml(struct topo *t, int host, const char *root, struct err *err);
/* All local sources in order; one host named `hostname`. */
int topo_read_local(struct topo *t, const char *hostname, const char *root, struct err *err);

/* The short readable picture of `railgauge discover`; stream is a FILE *. */
void topo_print(const struct topo *t, void *stream);
void topo_print_gpus(const struct topo *t, void *stream); /* the part about GPUs and NVLink */

#endif
