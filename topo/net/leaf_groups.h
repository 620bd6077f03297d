/* leaf_groups.h - groups of leaves with the same hosts; a host belongs to the group with most of
 * its leaves.
 *
 * With rails each NIC of a host is on a leaf of its own.  Groups of leaves are joined in order of
 * their common hosts, most first.  Two groups are joined if the common hosts are at least half of
 * the hosts of the smaller group, and more than half of the hosts with several leaves in each of
 * both (if a single leaf joins a group: only of the leaf).  So a host that lacks NICs or is cabled
 * to a foreign leaf splits no group, and a gateway or a storage leaf that all hosts share joins
 * none. */
#ifndef RG_LEAF_GROUPS_H
#define RG_LEAF_GROUPS_H

struct leaf_link {
    int host, leaf; /* numbered from 0 */
};

struct leaf_groups {
    int *of_leaf;      /* -1: no host, or hosts of several groups */
    int *of_host;      /* -1: no leaf; every group has a host */
    int leaves, hosts; /* 1 + the highest number in port[] */
    int groups;        /* number; in the order of their first leaves */
};

/* port[] may contain an entry twice. */
void leaf_groups_make(struct leaf_groups *g, const struct leaf_link *port, int ports);
void leaf_groups_free(struct leaf_groups *g);

#endif
