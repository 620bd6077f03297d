/* lint_hosts.h - the odd one out among hosts of the same kind, and their GPUs and NICs.
 *
 * Hosts are of one kind when their GPUs are, or without GPUs their CPUs; a host whose GPUs are gone
 * is of the kind of most hosts with its CPU.  Hosts that only the subnet tells of are of the kind
 * of their names: a storage or login host is none of the compute hosts.  GPUs are compared with
 * GPUs of their model, NICs with NICs of their name, GPUs' places with those of the same number,
 * all among hosts of a kind.  What more than half have is what the others should have; without such
 * a majority the counts are told.  What is not visible is not compared.
 *
 * Kinds of findings: those of the table in lint_table.c ("gpus", "driver", "nvlink", "hcas", ...),
 * "leaf" (NICs on another leaf, as LLDP tells it; with a net see net_lint.h), "mnnvl" (verdicts of
 * mnnvl.h that are bad), "gpu" (its list of oddities). Each fault is said once: a check whose cause
 * was named of that part already is left out. */
#ifndef RG_LINT_HOSTS_H
#define RG_LINT_HOSTS_H

#include "topo/lint/lint.h"
#include "topo/topo.h"

int hosts_lint(struct lint *l, const struct topo *t); /* appends; how many */

#endif
