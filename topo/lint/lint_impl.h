/* lint_impl.h - shared by the checks: hosts with their parts, and majorities.  At most n log n in
 * hosts, GPUs or NICs. */
#ifndef RG_LINT_IMPL_H
#define RG_LINT_IMPL_H

#include "topo/lint/lint.h"

/* View of a topology by host. */
struct lint_view {
    const struct topo *t;
    struct lint_host {
        int kind;      /* hosts of the same kind are compared */
        int gpu, gpus; /* first GPU reported by a driver, -1: none; number of them */
        int named;     /* number of endpoints that are GPUs */
        int nic, nics; /* range in nic[] */
        int hcas, up;  /* NICs with verbs; those that are up */
    } * host;
    int *nic; /* indices into topo.nic, sorted by host */
    struct names kinds, peers;
    bool *named; /* indexed by GPU: the NVLinks were reported as odd */
};

/* Compare peers by each check of the table in turn; appends. */
void lint_peers(struct lint *l, struct lint_view *v);

/* Return the most common of n values; *times is its count.  Sorts the values. */
int lint_mode(int *value, int n, int *times);
/* True if most are equal: at least three, and two thirds of n. */
bool lint_most(int times, int n);

/* Object to compare; objects with equal kind[] are peers. */
struct lint_peer {
    int kind[3], value;
    int id; /* set by the caller */
};
struct lint_usual { /* value of most peers */
    int value, times, peers;
    int id; /* number of a peer that has it */
};
/* Call say() for each peer with a smaller value than most, kind by kind in the order of ids. */
void lint_fewer(struct lint *l, struct lint_peer *p, int n,
                void (*say)(struct lint *l, const struct lint_peer *odd,
                            const struct lint_usual *usual, const void *of),
                const void *of);

/* Port of a NIC at a leaf. */
struct lint_port {
    int group; /* group of hosts */
    const char *device;
    int port, leaf;
    int id; /* set by the caller */
};
/* Call say() for each NIC that is on another leaf than most NICs of its name in a group of hosts;
 * `times` of n are on `leaf`.  Sorts s. */
void lint_ports(struct lint *l, struct lint_port *s, int n,
                void (*say)(struct lint *l, const struct lint_port *odd, int leaf, int times, int n,
                            const void *of),
                const void *of);

#endif
