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

/* Levels of locality.  HOST .. RACK are nested on the systems we know but nothing depends on it; a
 * RAIL crosses them. */
enum level { LEVEL_HOST, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_RACK, LEVEL_RAIL, LEVEL_COUNT };
extern const char *const level_name[LEVEL_COUNT]; /* "host", "domain", "leaf", "rack", "rail" */
int level_find(const char *name);                 /* enum level or -1 */

/* Where a fact came from. */
enum source {
    SOURCE_NONE, /* not visible */
    SOURCE_HWLOC,
    SOURCE_SYSFS,
    SOURCE_MPI,      /* told by the launcher: rank order, host name */
    SOURCE_PRESET,   /* topo/fabrics */
    SOURCE_MEASURED, /* found by clustering measured pairs */
    SOURCE_USER,     /* an option or a file of the user's */
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
    char busid[16]; /* "0000:1b:00.0", "" for a CPU */
    char model[48]; /* "NVIDIA GB200", "AMD EPYC 9654" */
};

enum link_layer { LINK_UNKNOWN, LINK_ETHERNET, LINK_INFINIBAND };

struct nic {
    int host;
    char name[32]; /* "mlx5_0", "eth0" */
    char busid[16];
    enum link_layer layer;
    double rate_Bps; /* per direction; 0: not visible */
    bool up;
    bool rdma; /* has verbs: InfiniBand or RoCE */
    int numa;  /* -1: not visible */
    enum source source;
};

struct host {
    char *name;
    char *cpu;          /* model name, or NULL */
    int sockets, cores; /* 0: not visible */
    double memory_bytes;
    int endpoints; /* how many endpoints name this host */
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
    /* Names of the groups at each level, for instance group[LEVEL_RACK].name[3] = "rack-03".
     * LEVEL_HOST has the host names again so that all levels read alike.  slot is the look-up table
     * of topo_add_group(); names are added and removed through the functions below only. */
    struct {
        char **name;
        int count;
        int *slot, slots, indexed;
    } group[LEVEL_COUNT];
    struct tier_rule tier[TIER_MAX];
    int tiers;
    struct unseen {
        char *what,
            *why; /* "NVLink domain", "no NVIDIA driver on this host (libnvidia-ml.so.1: ...)" */
    } * unseen;
    int unseens;
    char *fabric; /* name of the preset that this came from, or NULL */
};

void topo_init(struct topo *t);
void topo_free(struct topo *t);

int topo_add_host(struct topo *t, const char *name); /* index; existing name: same index */
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
void topo_copy(struct topo *to,
               const struct topo *from); /* to is overwritten without being freed */

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
/* A name or text that came from outside: 1..max characters, none of them a control character. */
int topo_text_check(const char *text, size_t max, const char *where, struct err *err);

/* --- sources: each fills in what it can see below `root` ("" is the live machine, a folder is a
 * recorded one) for host index `host`; what is not there goes to unseen and is no error. --- */
int topo_read_hwloc(struct topo *t, int host, const char *root,
                    struct err *err); /* CPU sockets, PCI GPUs, NICs' place */
int topo_read_sysfs_net(struct topo *t, int host, const char *root,
                        struct err *err); /* NIC rate, state, link layer */
/* All local sources in order; one host named `hostname`. */
int topo_read_local(struct topo *t, const char *hostname, const char *root, struct err *err);

/* The short readable picture of `railgauge discover`; stream is a FILE *. */
void topo_print(const struct topo *t, void *stream);

#endif
