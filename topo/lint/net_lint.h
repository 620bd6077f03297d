/* net_lint.h - what is odd in a switched network: the checks of topo.net (net.h).
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
#ifndef RG_NET_LINT_H
#define RG_NET_LINT_H

#include "topo/lint/lint.h"
#include "topo/topo.h"

int net_lint(struct lint *l, const struct topo *t); /* appends; how many; 0 without a net */

#endif
