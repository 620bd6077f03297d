/* groups.h - which hosts belong together, as each source declares it.
 *
 * Readers of declared structure (Slurm, node labels, topograph, the subnet, LLDP) add groups; they
 * never touch coordinates.  groups_apply() then fills in coordinates that nobody else knows, and
 * verdict/ sets all declared groups beside what was measured.  Nothing is resolved: sources may
 * contradict each other, and may name hosts that are not among topo.host.  The order of a source's
 * groups is data (Slurm joins neighbouring blocks).  A set is what one source says of one level in
 * one file.
 *
 * Switches have as many tiers as people build, coordinates end at the spine: what is wider is
 * declared alone, `above` tiers higher. */
#ifndef RG_GROUPS_H
#define RG_GROUPS_H

#include "topo/topo.h"

enum { GROUP_ABOVE_MAX = 64 }; /* tiers of switches above the spine, at most */

/* One source says that these hosts belong together at a level. */
struct declared_group {
    enum source source;
    enum level level;
    char *origin; /* "topology.conf", "ibnetdiscover" */
    char *name;
    char **host; /* owned names */
    int hosts;
    int above; /* of LEVEL_SPINE: so many tiers of switches wider than a spine; 0: the level itself */
};

/* Append "these hosts are group `name` at this level".  Names are copied.  No host: a group that
 * keeps its place in the order (an empty block). */
void group_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *name, char *const *host, int hosts);
/* One more host of a group, which is made at its first host: for sources that tell host by host. */
void group_add_host(struct topo *t, enum source source, enum level level, const char *origin,
                    const char *name, const char *host);
/* The same of groups wider than a spine: what lies below the same switches `above` tiers higher. */
void group_add_above(struct topo *t, enum source source, int above, const char *origin,
                     const char *name, const char *host);
void group_copy(struct topo *to, const struct declared_group *g);
void group_free(struct declared_group *g); /* what is in it */
/* Forget sets of that origin that group_add_above() made and that have one group: it holds all. */
void groups_drop_whole(struct topo *t, enum source source, const char *origin);

/* The groups of one source, file and level; group[] borrows from the topology, in its order. */
struct group_set {
    enum source source;
    enum level level;
    int above;
    const char *origin;
    const struct declared_group **group;
    int groups;
};
/* All sets in order of appearance; *count of them; group_sets_free(). */
struct group_set *group_sets(const struct topo *t, int *count);
/* Those of a level, in the order of enum source and then of appearance; freed likewise. */
struct group_set *group_sets_at(const struct topo *t, enum level level, int *count);
/* Those of groups wider than spines, in the order of enum source and then the narrowest first. */
struct group_set *group_sets_above(const struct topo *t, int *count);
void group_sets_free(struct group_set *s, int count);
/* of[host index] = index into s->group, -1 not said; t->hosts of them, the caller frees.  A host in
 * several groups of a set keeps the first. */
int *group_set_of(const struct group_set *s, const struct topo *t);

/* Hosts at a level as a grouping of the same form.  With rails every host has several leaves: those
 * that belong together are one group (leaf_groups.h), as its source declares it where it does.  A
 * host without a coordinate is where declared groups say.  -1: nobody knows.  name[g] is that of the
 * coordinate or declared group, or "first..last (4)"; free both and each name. */
int *groups_of_hosts(const struct topo *t, enum level level, char ***name, int *groups);
/* The hosts of group g (-1: those of none) as a host list, "" of none; the caller frees. */
char *groups_fold(const struct topo *t, const int *of, int g);
/* Does every group of x lie inside one of y, of n members?  Who is in none does not count. */
bool groups_nested(const int *x, int groups, const int *y, int n);
/* How many groups have several of n members. */
int groups_shared(const int *of, int n, int groups);
/* Who told the level: of the first endpoint with a coordinate, else of the first declared groups. */
enum source groups_source(const struct topo *t, enum level level);

/* Hosts that groups name and the topology lacks are added, without endpoints.  For topologies that
 * are made of declarations alone. */
void groups_add_hosts(struct topo *t);
/* Coordinates of hosts of which none is visible, from declared groups: of several sources that speak
 * of a level in the order of enum source.  A host joins the coordinate that most others of its group
 * have, or starts the group where none of them has one; where they have several it gets none.  Ends
 * with topo_default_tiers() unless nothing changed. */
void groups_apply(struct topo *t);

#endif
