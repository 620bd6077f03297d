/* mnnvl.h - verdict on NVLink between hosts, one per host, with its reason in words.
 *
 * The clique id alone is not enough: GPUs report "completed" with an error status, with a cluster
 * of zeros, unhealthy, in another clique than the next tray, or on a host without the IMEX channel
 * that memory shared between hosts needs (reports: torchcomms 936, 1315, 1385; azhpc-images 506).
 * So all known facts are combined and compared with the neighbours. */
#ifndef RG_MNNVL_H
#define RG_MNNVL_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/gpu.h"
#include "topo/topo.h"

enum mnnvl_verdict {
    MNNVL_NONE,   /* no active NVLink */
    MNNVL_INSIDE, /* NVLink inside the host only, as designed: HGX, bridges */
    MNNVL_GOOD,   /* member of a domain across hosts */
    MNNVL_BAD,    /* should be a member, and is not or only in part */
    MNNVL_UNSEEN, /* no GPU of this host is known */
    MNNVL_VERDICTS
};
extern const char *const mnnvl_word[MNNVL_VERDICTS];

struct mnnvl {
    struct mnnvl_host {
        enum mnnvl_verdict verdict;
        char *why;
        /* Reason of MNNVL_BAD without number and speed of NVLinks; NULL: no other reason. */
        char *beside;
    } * host; /* by host of the topology */
    int hosts;
    char **odd; /* one sentence each: "host tray07 GPU 2: 17 of 18 NVLinks up, ..." */
    int odds;
    int compared;  /* number of sentences, at the end, that only compare hosts */
    int bad;       /* number of hosts with MNNVL_BAD */
    char *summary; /* one line */
};

/* Judge all hosts; depends on its arguments only.  Trials kept in a topology are t->trial.  Call
 * mnnvl_free() in any case. */
void mnnvl_judge(struct mnnvl *m, const struct topo *t, const struct mnnvl_trial *trial,
                 int trials);
void mnnvl_free(struct mnnvl *m);
/* {"summary", "bad", "hosts": [{"host", "verdict", "why"}], "odd": [...]}; new reference. */
json_t *mnnvl_json(const struct mnnvl *m, const struct topo *t);

/* NVLink domain of GPU i of topo.gpu.  Registered: "clusterUuid.cliqueId".  Without a registration
 * across hosts: the host (or a part of it, if links join only some GPUs), if this and another GPU
 * have active NVLinks.  False: no domain, or unknown. */
bool mnnvl_domain(const struct topo *t, int i, char *name, size_t len);

/* --- mnnvl facts ---
 *
 * GPUs of all hosts in relation to each other: domains and their sizes.  Shared by the verdict and
 * the summary of railgauge discover. */

struct mnnvl_facts {
    const struct topo *t;
    struct {
        struct names domains, clusters, chassis, models;
    } names;
    struct mnnvl_host_facts {
        int first, gpus;      /* range in topo.gpu */
        int domain;           /* domain across hosts of most GPUs; -1: no domain */
        int cluster, chassis; /* -1: none */
        /* Expected in a domain across hosts: has a chassis, is a rack product, or shares its
         * cluster with another host. */
        bool rack;
        bool inside; /* two of the GPUs are joined by NVLink without a domain across hosts */
    } * host;
    struct mnnvl_domain_facts { /* domains across hosts only */
        int hosts, gpus;
    } * domain;
    int domains;
    struct mnnvl_model_facts {
        int gpus, up; /* largest number of active NVLinks on one of them */
        double link_Bps;
    } * model;
    int *gpu_domain, *gpu_model;      /* indexed by GPU of topo.gpu */
    int *cluster_home, *chassis_home; /* domain of most hosts in it */
    bool told;                        /* the source says of a GPU whether it is registered */
};

void mnnvl_facts_open(struct mnnvl_facts *f, const struct topo *t);
void mnnvl_facts_close(struct mnnvl_facts *f);

/* Number of GPUs in a complete domain across hosts, by product name (72 GPUs of an NVL72 rack); 0:
 * the product has no such domain. */
int mnnvl_whole_domain(const char *model);
bool mnnvl_zero_cluster(const struct gpu *g);
bool mnnvl_registered(const struct gpu *g); /* in a domain across hosts */
/* True if `domain` is small compared with `home`: fewer than half as many hosts. */
bool mnnvl_outnumbered(const struct mnnvl_facts *f, int domain, int home);
const char *mnnvl_clique(const struct mnnvl_facts *f, int domain); /* text after the dot */

#endif
