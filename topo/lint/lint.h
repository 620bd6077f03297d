/* lint.h - oddities of a machine that are visible before any measurement: a list of findings that
 * every check appends to.
 *
 * A check compares things of the same kind, names the odd one, and states the peers' value.
 *
 * Example:
 *
 *     #include <stdio.h>
 *     struct topo t;
 *     struct lint l = {0};
 *
 *     if (topo_load(&t, "topology.json", err) < 0)
 *         return -1;
 *     lint_hosts(&l, &t);
 *     lint_net(&l, &t);
 *     for (int i = 0; i < l.findings; i++)
 *         printf("%s: %s\n", l.finding[i].kind, l.finding[i].text);
 *     int rc = lint_bad(&l) ? EXIT_BELOW : EXIT_GOOD;
 *     lint_free(&l);
 *     topo_free(&t);
 *     return rc; */
#ifndef RG_LINT_H
#define RG_LINT_H

#include <stdbool.h>

#include "topo/topo.h"

struct lint_finding {
    char *kind; /* one word to filter by, same for all findings of a check: "cables" */
    char *what; /* the odd object: "leaf-03[17]", "node07 mlx5_2" */
    char *text; /* the whole sentence: its value and that of its peers */
    bool bad;   /* true: costs performance or hides a part; false: for information */
};

struct lint {
    struct lint_finding *finding;
    int findings;
};

/* Append a finding; texts are copied.  lint_add() sets bad, lint_note() does not. */
void lint_add(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void lint_note(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int lint_bad(const struct lint *l); /* number of bad findings */
void lint_free(struct lint *l);

/* Find oddities among hosts of the same kind, and among GPUs and NICs of such hosts.
 *
 * Hosts are of the same kind if the GPUs are, or without GPUs the CPUs; a host that lost its GPUs
 * is of the kind of most hosts with that CPU.  Hosts known only from the subnet are compared by
 * name, so that storage and login hosts do not mix with compute hosts.  GPUs are compared with
 * GPUs of the same model, NICs with NICs of the same name, places of GPUs by number, all among
 * hosts of a kind.  A value that more than half have is expected of the rest; without such a
 * majority the counts are reported.  Facts that are not visible are not compared.
 *
 * Kinds of findings: those of the table in lint_peers.c ("gpus", "driver", "nvlink", "hcas", ...),
 * "leaf" (NICs on another leaf, from LLDP or the declared places; with a net lint_net() reports
 * it), "mnnvl" (bad verdicts of mnnvl.h), "gpu" (oddities that mnnvl.h lists).  Each fault is
 * reported once: a check skips parts whose cause was already named. */
int lint_hosts(struct lint *l, const struct topo *t); /* appends; number of findings */

/* Find oddities in a switched network, topo.net (net.h).
 *
 * Every check compares things that should be equal, and reports only where most are: at least
 * three, two thirds of all.  Kinds of findings:
 *   cables   a pair of switches with fewer cables than most pairs of the same tiers
 *   uplink   a switch without a neighbour that its peers have
 *   speed    a cable slower than its peers; width: with fewer lanes.  Peers are the cables between
 *            the same tiers, or those of the NICs on a leaf.  If all are slow, nothing is reported.
 *   ends     the two ends of a cable report different rates
 *   rails    a host with fewer NICs in the network than its peers
 *   leaf     a NIC on another leaf than NICs of the same name
 *   leaves   a group of hosts with fewer leaves than the other groups
 *   names    NICs that cannot be assigned to a host
 *
 * Appends.  Returns the number of findings, 0 without a net. */
int lint_net(struct lint *l, const struct topo *t);

/* Compare kinds of devices, by endpoint: "models", a GPU unlike most GPUs of its host; "kinds",
 * hosts unlike most in GPU model or NIC rate, which is no fault. */
int lint_kinds(struct lint *l, const struct topo *t); /* appends; number of findings */

/* Find hosts whose GPUs are joined by NVLink switches but show no PCIe switch: kind "pcie-flat". */
int lint_pcie(struct lint *l, const struct topo *t); /* appends; number of findings */

#endif
