/* leaf_groups.h - leaves on which the same hosts sit are one group, and a host belongs where most
 * of its leaves are.
 *
 * With rails each adapter of a host is on a leaf of its own.  Groups of leaves are joined, those
 * with the most hosts in common first, while these are at least half of the hosts of the one with
 * fewer, and more than half of those of both that have several leaves (of the single one, where a
 * leaf comes to a group).  So a host that lacks adapters or is cabled to a leaf of others splits no
 * group; a gateway, or a leaf of storage that all hosts share, joins none. */
#ifndef RG_LEAF_GROUPS_H
#define RG_LEAF_GROUPS_H

struct leaf_link {
    int host, leaf; /* from 0 */
};

struct leaf_groups {
    int *of_leaf;      /* -1: nobody sits there, or hosts of several groups do */
    int *of_host;      /* -1: it sits nowhere; every group has a host */
    int leaves, hosts; /* 1 + the highest number of a port */
    int groups;        /* in the order of their first leaves */
};

/* port[] may hold a port twice. */
void leaf_groups_make(struct leaf_groups *g, const struct leaf_link *port, int ports);
void leaf_groups_free(struct leaf_groups *g);

#endif
