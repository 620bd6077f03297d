/* claim.h - who belongs together, as each source declares it.
 *
 * Readers of declared structure (Slurm, node labels, topograph, the subnet, LLDP) add claims; they
 * never touch coordinates.  claims_apply() then fills in coordinates that nobody else knows, and
 * verdict/ sets all claims beside what was measured.  A set is what one source says of one level in
 * one file. */
#ifndef RG_CLAIM_H
#define RG_CLAIM_H

#include "topo/topo.h"

/* Append "these hosts are group `group` at this level".  Names are copied.  No host: a group that
 * keeps its place in the order (an empty block). */
void claim_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *group, char *const *host, int hosts);
/* One more host of a group, which is made at its first host: for sources that tell host by host. */
void claim_host(struct topo *t, enum source source, enum level level, const char *origin,
                const char *group, const char *host);
void claim_free(struct claim *c);
/* A host's name from outside: 1..255 bytes of text (topo_text_check()) without brackets and commas,
 * which have a meaning in host lists and so in topology.json. */
int claim_name_check(const char *host, const char *where, struct err *err);

/* The claims of one source, file and level; claim[] borrows from the topology, in its order. */
struct claim_set {
    enum source source;
    enum level level;
    const char *origin;
    const struct claim **claim;
    int claims;
};
/* All sets in order of appearance; *count of them; claim_sets_free(). */
struct claim_set *claim_sets(const struct topo *t, int *count);
void claim_sets_free(struct claim_set *s, int count);
/* of[host index] = index into s->claim, -1 not said; t->hosts of them, the caller frees.  A host in
 * several groups of a set keeps the first. */
int *claim_set_of(const struct claim_set *s, const struct topo *t);

/* What coordinates say of hosts at a level as a grouping of the same form: hosts whose endpoints
 * have the same set of coordinates are one group (with rails every host has several leaves); -1:
 * not visible.  name[g] is that of the coordinate, or "first..last (4)"; free both and each name.
 */
int *topo_host_groups(const struct topo *t, enum level level, char ***name, int *groups);

/* Hosts that claims name and the topology lacks are added, without endpoints.  For topologies that
 * are made of declarations alone. */
void claims_add_hosts(struct topo *t);
/* Coordinates that are not visible, from claims: of several sources that speak of a level the first
 * in the order of enum source.  Ends with topo_default_tiers() unless nothing changed. */
void claims_apply(struct topo *t);

#endif
