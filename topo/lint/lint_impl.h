/* lint_impl.h - what the checks share: hosts with what belongs to each, and what most have.  Nothing
 * here is slower than n log n in hosts, GPUs or NICs. */
#ifndef RG_LINT_IMPL_H
#define RG_LINT_IMPL_H

#include "topo/lint/lint.h"

/* A topology by host. */
struct lint_view {
    const struct topo *t;
    struct lint_host {
        int kind;      /* hosts of a kind are compared */
        int gpu, gpus; /* row of the first one that a driver told of, -1; how many */
        int named;     /* endpoints that are GPUs */
        int nic, nics; /* its part of nic[] */
        int hcas, up;  /* NICs with verbs; those that are up */
    } * host;
    int *nic; /* rows of topo.nic, host by host */
    struct names kinds, peers;
    bool *named; /* by row of GPUs: its NVLinks were said to be odd */
};

/* Compare peers by each check of its table in turn; appends. */
void lint_peers(struct lint *l, struct lint_view *v);

/* The most common of n values; *times is how often.  Values are sorted. */
int lint_mode(int *value, int n, int *times);
/* Most are alike: at least three, two thirds of them. */
bool lint_most(int times, int n);

/* One of several that should be alike: those of a kind are peers. */
struct lint_peer {
    int kind[3], value;
    int id; /* of the caller's */
};
struct lint_usual { /* what most peers have */
    int value, times, peers;
    int id; /* of one that has it */
};
/* say() of each that has less than most of its peers, kind by kind in the order of ids. */
void lint_fewer(struct lint *l, struct lint_peer *p, int n,
                void (*say)(struct lint *l, const struct lint_peer *odd,
                            const struct lint_usual *usual, const void *of),
                const void *of);

/* An adapter's port at a leaf. */
struct lint_port {
    int group; /* of hosts */
    const char *device;
    int port, leaf;
    int id; /* of the caller's */
};
/* Adapters of one name in a group of hosts are on one leaf: say() those that are not, where `times`
 * of n are on `leaf`.  Sorts. */
void lint_ports(struct lint *l, struct lint_port *s, int n,
                void (*say)(struct lint *l, const struct lint_port *odd, int leaf, int times, int n,
                            const void *of),
                const void *of);

#endif
