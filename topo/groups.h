/* groups.h - declared groups: hosts that belong together according to each source.
 *
 * Readers of declared structure (Slurm, node labels, topograph, the subnet, LLDP) add groups and
 * never touch coordinates.  groups_apply() then fills in coordinates that no other source knows,
 * and verdict/ compares all declared groups with what was measured.  Contradictions are kept:
 * sources may disagree, and may name hosts that are not in topo.host.  The order of a source's
 * groups is data (Slurm joins neighbouring blocks).  A set is what one source declares at one
 * level in one file.
 *
 * Switches can have any number of tiers, coordinates end at the spine: a group wider than a spine
 * is only declared, with the number of tiers `above` it. */
#ifndef RG_GROUPS_H
#define RG_GROUPS_H

#include "topo/topo.h"

enum { GROUP_ABOVE_MAX = 64 }; /* maximum number of switch tiers above the spine */

/* Hosts that belong together at a level, as declared by one source. */
struct declared_group {
    enum source source;
    enum level level;
    char *origin; /* "topology.conf", "ibnetdiscover" */
    char *name;
    char **host; /* owned names */
    int hosts;
    /* LEVEL_SPINE: number of switch tiers above the spine; 0: the level itself. */
    int above;
};

/* Append "these hosts are group `name` at this level".  Names are copied.  No hosts: an empty
 * block, which keeps its place in the order. */
void group_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *name, char *const *host, int hosts);
/* Add a host to a group, created with its first host: for sources that list host by host. */
void group_add_host(struct topo *t, enum source source, enum level level, const char *origin,
                    const char *name, const char *host);
/* Like group_add_host(), for groups wider than a spine: below the same switches `above` tiers
 * up. */
void group_add_above(struct topo *t, enum source source, int above, const char *origin,
                     const char *name, const char *host);
void group_copy(struct topo *to, const struct declared_group *g);
void group_free(struct declared_group *g); /* frees the members of *g, not g */
/* Drop sets of this origin from group_add_above() with a single group, which holds every host. */
void groups_drop_whole(struct topo *t, enum source source, const char *origin);

/* Groups of one source, file and level.  group[] borrows from the topology, in its order. */
struct group_set {
    enum source source;
    enum level level;
    int above;
    const char *origin;
    const struct declared_group **group;
    int groups;
};
/* All sets in order of appearance, *count of them.  Free with group_sets_free(). */
struct group_set *group_sets(const struct topo *t, int *count);
/* Sets of a level, by enum source and then by appearance.  Free with group_sets_free(). */
struct group_set *group_sets_at(const struct topo *t, enum level level, int *count);
/* Sets of groups wider than spines, by enum source, then the narrowest first.  Freed likewise. */
struct group_set *group_sets_above(const struct topo *t, int *count);
void group_sets_free(struct group_set *s, int count);
/* Group of each host in a set: of[host index] = index into s->group, -1: not declared; t->hosts
 * entries, the caller frees.  A host in several groups of a set keeps the first. */
int *group_set_of(const struct group_set *s, const struct topo *t);

/* Group of each host at a level, in the form of group_set_of(); -1: not known.  With rails a host
 * has several leaves; leaves that belong together are one group (leaf_groups.c), or the group that
 * the source of the leaves declares.  A host without a coordinate is placed by declared groups.
 * name[g]: name of the coordinate or declared group, or "first..last (4)".  The caller frees the
 * result, *name and each name. */
int *groups_of_hosts(const struct topo *t, enum level level, char ***name, int *groups);
/* Host list of group g (-1: hosts without a group); "" if there are none.  The caller frees. */
char *groups_fold(const struct topo *t, const int *of, int g);
/* True if each group of x is inside one of y; n members, those without a group do not count. */
bool groups_nested(const int *x, int groups, const int *y, int n);
/* Number of groups that have several of the n members. */
int groups_shared(const int *of, int n, int groups);
/* Source of a level: that of the first endpoint with a coordinate, else of declared groups. */
enum source groups_source(const struct topo *t, enum level level);

/* Add the hosts that groups name and the topology lacks, without endpoints.  Used for topologies
 * made from declarations alone. */
void groups_add_hosts(struct topo *t);
/* Give coordinates from declared groups to hosts without any at that level; sources go in the
 * order of enum source.  A host gets the coordinate that most placed hosts of its group have; a
 * group without placed hosts becomes a new coordinate; without a majority the host gets none.
 * Ends with topo_default_tiers() unless nothing changed. */
void groups_apply(struct topo *t);

/* --- groups of leaves (leaf_groups.c) --- */

/* groups of leaves with the same hosts; a host belongs to the group with most of
 * its leaves.
 *
 * With rails each NIC of a host is on a leaf of its own.  Groups of leaves are joined in order of
 * their common hosts, most first.  Two groups are joined if the common hosts are at least half of
 * the hosts of the smaller group, and more than half of the hosts with several leaves in each of
 * both (if a single leaf joins a group: only of the leaf).  So a host that lacks NICs or is cabled
 * to a foreign leaf splits no group, and a gateway or a storage leaf that all hosts share joins
 * none. */
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
