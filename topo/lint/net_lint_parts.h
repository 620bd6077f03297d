/* net_lint_parts.h - the checks behind net_lint(), by what they look at. */
#ifndef RG_NET_LINT_PARTS_H
#define RG_NET_LINT_PARTS_H

#include "topo/lint/lint.h"
#include "topo/net/net_view.h"

void net_lint_pairs(struct lint *l, const struct net_view *v); /* cables, uplink */
void net_lint_rates(struct lint *l, const struct net_view *v); /* speed, width, ends */
void net_lint_hosts(struct lint *l, const struct net_view *v); /* rails, leaf, leaves, names */

/* "leaf-03[17]" in buf */
enum { NET_END = 80 };
char *net_end_text(char buf[NET_END], const struct net_view *v, int node, int port);

/* The most common of n values; *times is how often.  Values are sorted. */
int net_mode(int *value, int n, int *times);
/* Most are alike: at least three, two thirds of them. */
bool net_most(int times, int n);

#endif
