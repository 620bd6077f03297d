/* verbs_gid.h - by which addresses two ports talk: pure functions of their tables.
 *
 * An InfiniBand port has a LID; a global route header comes in where the subnets differ.  A RoCE
 * port has nothing but the entries of its GID table, several of one interface: RoCE v1 (an
 * Ethernet type of its own, never routed) and v2 (UDP), IPv4 (written ::ffff:a.b.c.d), IPv6 and
 * link-local.  Packets arrive only where both ends' entries are of one type and family (RoCE v2:
 * Annex A17 of the InfiniBand Architecture Specification; Linux, Documentation/ABI/testing/
 * sysfs-class-infiniband, gid_attrs).  The choice, first what matters most:
 *
 *   1  RoCE v2 before v1
 *   2  IPv4 before routable IPv6 before link-local
 *   3  both in one subnet, by the prefixes of their interfaces' addresses
 *   4  the port's own interface before one on top of it (VLAN, macvlan)
 *   5  the lowest numbers
 */
#ifndef RG_VERBS_GID_H
#define RG_VERBS_GID_H

#include <stdbool.h>

#include "base/err.h"
#include "kernels/verbs_api.h"

enum { VERBS_GIDS = 8, VERBS_GID_TEXT = 48, VERBS_GID_WHY = 96 };

struct verbs_gid_row {
    union verbs_gid gid;
    int index, type; /* VERBS_GID_... */
    int prefix;      /* bits of the subnet; 0: not known */
    bool other;      /* not of the port's own interface */
};

/* One port, as its peers know it; bytes between equal programs. */
struct verbs_address {
    char who[96]; /* "mlx5_2 port 1" */
    char host[64];
    bool ethernet;
    int lid;
    union verbs_gid first; /* entry 0: InfiniBand's subnet prefix and port */
    int asked;             /* --gid-index, -1: none; then row[0] is that entry */
    int rows;
    struct verbs_gid_row row[VERBS_GIDS];
};

struct verbs_path {
    bool global; /* with a global route header */
    int sgid_index;
    int type; /* VERBS_GID_... of that entry */
    union verbs_gid sgid, dgid;
    char why[VERBS_GID_WHY]; /* "RoCE v2, IPv4, one subnet"; what was chosen by */
};

const char *verbs_gid_type_text(int type); /* "RoCE v2" */
const char *verbs_gid_text(char out[VERBS_GID_TEXT], const union verbs_gid *gid);
bool verbs_gid_is_ipv4(const union verbs_gid *gid);

/* Put a row into the table, best first; of more than there is room for the worst are left out. */
void verbs_gid_add(struct verbs_address *a, const struct verbs_gid_row *row);
/* How mine reaches theirs; the other end, asked the other way round, finds the same two rows.
 * EXIT_CONFIG says why no packet would arrive. */
int verbs_gid_path(struct verbs_path *out, const struct verbs_address *mine,
                   const struct verbs_address *theirs, struct err *err);

#endif
