/* claim.h - who belongs together, as each source declares it.
 *
 * Readers of declared structure (Slurm, node labels, topograph, the subnet, LLDP) add claims; they
 * never touch coordinates.  claims_apply() then fills in coordinates that nobody else knows, and
 * verdict/ sets all claims beside what was measured.  A set is what one source says of one level in
 * one file.
 *
 * Switches have as many tiers as people build, coordinates end at the spine: what is wider is
 * claimed alone, `above` tiers higher. */
#ifndef RG_CLAIM_H
#define RG_CLAIM_H

#include "topo/topo.h"

enum { CLAIM_ABOVE = 64 }; /* tiers of switches above the spine, at most */

/* Append "these hosts are group `group` at this level".  Names are copied.  No host: a group that
 * keeps its place in the order (an empty block). */
void claim_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *group, char *const *host, int hosts);
/* One more host of a group, which is made at its first host: for sources that tell host by host. */
void claim_host(struct topo *t, enum source source, enum level level, const char *origin,
                const char *group, const char *host);
/* The same of groups wider than a spine: what lies below the same switches `above` tiers higher. */
void claim_above(struct topo *t, enum source source, int above, const char *origin,
                 const char *group, const char *host);
/* Forget sets of that origin that claim_above() made and that have one group: it holds all. */
void claims_drop_whole(struct topo *t, enum source source, const char *origin);
void claim_copy(struct topo *to, const struct claim *c);
void claim_free(struct claim *c);
/* A host's name from outside: 1..255 bytes of text (topo_text_check()) without brackets and commas,
 * which have a meaning in host lists and so in topology.json, and without a dash in front, with
 * which it would be an option of the commands that are given it. */
int claim_name_check(const char *host, const char *where, struct err *err);

/* The claims of one source, file and level; claim[] borrows from the topology, in its order. */
struct claim_set {
    enum source source;
    enum level level;
    int above;
    const char *origin;
    const struct claim **claim;
    int claims;
};
/* All sets in order of appearance; *count of them; claim_sets_free(). */
struct claim_set *claim_sets(const struct topo *t, int *count);
/* Those of a level, in the order of enum source and then of appearance; freed likewise. */
struct claim_set *claim_sets_at(const struct topo *t, enum level level, int *count);
/* Those of groups wider than spines, in the order of enum source and then the narrowest first. */
struct claim_set *claim_sets_above(const struct topo *t, int *count);
void claim_sets_free(struct claim_set *s, int count);
/* of[host index] = index into s->claim, -1 not said; t->hosts of them, the caller frees.  A host in
 * several groups of a set keeps the first. */
int *claim_set_of(const struct claim_set *s, const struct topo *t);

/* Hosts at a level as a grouping of the same form.  With rails every host has several leaves: those
 * that belong together are one group (leaf_groups.h), as its source claims it where it does.  A
 * host without a coordinate is where claims say.  -1: nobody knows.  name[g] is that of the
 * coordinate or claim, or "first..last (4)"; free both and each name. */
int *topo_host_groups(const struct topo *t, enum level level, char ***name, int *groups);
/* Who told the level: of the first endpoint with a coordinate, else of the first claims. */
enum source topo_source_at(const struct topo *t, enum level level);

/* Hosts that claims name and the topology lacks are added, without endpoints.  For topologies that
 * are made of declarations alone. */
void claims_add_hosts(struct topo *t);
/* Coordinates of hosts of which none is visible, from claims: of several sources that speak of a
 * level in the order of enum source.  A host joins the coordinate that most others of its claimed
 * group have, or starts the group where none of them has one; where they have several it gets
 * none.  Ends with topo_default_tiers() unless nothing changed. */
void claims_apply(struct topo *t);

#endif
