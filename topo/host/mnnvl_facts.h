/* mnnvl_facts.h - the GPUs of all hosts put in relation: who is in which domain with how many
 * others.  Shared by the verdict and the picture; inside topo/ only. */
#ifndef RG_MNNVL_FACTS_H
#define RG_MNNVL_FACTS_H

#include "topo/topo.h"

struct mnnvl_facts {
    const struct topo *t;
    struct {
        struct names domains, clusters, chassis, models;
    } names;
    struct mnnvl_host_facts {
        int first, gpus;      /* rows of topo.gpu */
        int domain;           /* across hosts, of most of its GPUs; -1 */
        int cluster, chassis; /* -1 */
        bool rack;   /* meant to be in a domain across hosts: has a chassis, is of a rack's product,
                      * or   shares its cluster with another host */
        bool inside; /* two of its GPUs are joined by NVLink without such a domain */
    } * host;
    struct mnnvl_domain_facts { /* only those across hosts */
        int hosts, gpus;
    } * domain;
    int domains;
    struct mnnvl_model_facts {
        int gpus, up; /* most NVLinks up on one of them */
        double link_Bps;
    } * model;
    int *gpu_domain, *gpu_model;      /* by row */
    int *cluster_home, *chassis_home; /* domain with most of its hosts */
};

void mnnvl_facts_open(struct mnnvl_facts *f, const struct topo *t);
void mnnvl_facts_close(struct mnnvl_facts *f);

/* How many GPUs a whole domain across hosts has, by the name of the product (72 GPUs of an NVL72
 * rack); 0: the product is not made for one. */
int mnnvl_whole_domain(const char *model);
bool mnnvl_zero_cluster(const struct gpu *g);
bool mnnvl_registered(const struct gpu *g); /* in a domain across hosts */
/* Is `domain` a small part beside `home`: fewer than half as many hosts? */
bool mnnvl_outnumbered(const struct mnnvl_facts *f, int domain, int home);
const char *mnnvl_clique(const struct mnnvl_facts *f, int domain); /* the text after the dot */

#endif
