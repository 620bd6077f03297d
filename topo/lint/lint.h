/* lint.h - what is odd about a machine before anything was measured: a list of findings that every
 * check appends to.
 *
 * A check compares what is of the same kind, names the odd one out, and says what its peers have.
 */
#ifndef RG_LINT_H
#define RG_LINT_H

#include <stdbool.h>

#include "topo/topo.h"

struct lint_finding {
    char *kind; /* one word to filter by, the same for all findings of a check: "cables" */
    char *what; /* who is odd: "leaf-03[17]", "node07 mlx5_2" */
    char *text; /* the whole sentence: what it has, what its peers have */
    bool bad;   /* costs performance or hides a part; else only worth knowing */
};

struct lint {
    struct lint_finding *finding;
    int findings;
};

/* Append; texts are copied.  lint_add() says bad, lint_note() worth knowing. */
void lint_add(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void lint_note(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int lint_bad(const struct lint *l); /* how many are bad */
void lint_free(struct lint *l);

/* The odd one out among hosts of the same kind, and their GPUs and NICs.
 *
 * Hosts are of one kind when their GPUs are, or without GPUs their CPUs; a host whose GPUs are gone
 * is of the kind of most hosts with its CPU.  Hosts that only the subnet tells of are of the kind
 * of their names: a storage or login host is none of the compute hosts.  GPUs are compared with
 * GPUs of their model, NICs with NICs of their name, GPUs' places with those of the same number,
 * all among hosts of a kind.  What more than half have is what the others should have; without such
 * a majority the counts are told.  What is not visible is not compared.
 *
 * Kinds of findings: those of the table in lint_peers.c ("gpus", "driver", "nvlink", "hcas", ...),
 * "leaf" (NICs on another leaf, as LLDP or the declared places tell; with a net lint_net() does), "mnnvl" (verdicts of
 * mnnvl.h that are bad), "gpu" (its list of oddities). Each fault is said once: a check whose cause
 * was named of that part already is left out. */
int lint_hosts(struct lint *l, const struct topo *t); /* appends; how many */

/* What is odd in a switched network, topo.net (net.h).
 *
 * Every check compares what should be alike and speaks only where most are: at least three of them,
 * two thirds the same.  Kinds of findings:
 *   cables   a pair of switches with fewer cables than most pairs of their tiers
 *   uplink   a switch that misses a neighbour which its peers have
 *   speed    a cable slower than its peers; width: with fewer lanes.  Peers are the cables between
 *            the same tiers, or those of the adapters on one leaf.  Where all are slow none is odd.
 *   ends     the two ends of a cable tell different rates
 *   rails    a host with fewer adapters in the network than its peers
 *   leaf     an adapter on another leaf than those of the same name
 *   leaves   a group of hosts with fewer leaves than the other groups
 *   names    adapters that cannot be given to a host */
int lint_net(struct lint *l, const struct topo *t); /* appends; how many; 0 without a net */

/* Kinds of devices, from the endpoints: "models", a GPU of another model than most of its host; "kinds", hosts
 * of another GPU model or NIC rate than most, which is no fault. */
int lint_kinds(struct lint *l, const struct topo *t); /* appends; how many */

/* Hosts whose GPUs are joined by NVLink switches and yet show no PCIe switch: kind "pcie-flat". */
int lint_pcie(struct lint *l, const struct topo *t); /* appends; how many */

#endif
