/* mnnvl_facts.h - GPUs of all hosts in relation to each other: domains and their sizes.  Shared by
 * verdict and summary; inside topo/ only. */
#ifndef RG_MNNVL_FACTS_H
#define RG_MNNVL_FACTS_H

#include "topo/topo.h"

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
