/* verbs_gid_impl.h - choice of the addresses of two ports: pure functions of their tables.
 *
 * An InfiniBand port has a LID; a global route header is needed only if the subnets differ.  A RoCE
 * port has only the entries of its GID table, several per interface: RoCE v1 (an Ethernet type of
 * its own, never routed) and v2 (UDP), IPv4 (written ::ffff:a.b.c.d), IPv6 and link-local.  Packets
 * arrive only if the entries of both ends have the same type and family (RoCE v2: Annex A17 of the
 * InfiniBand Architecture Specification; Linux, Documentation/ABI/testing/sysfs-class-infiniband,
 * gid_attrs).  Order of preference:
 *
 *   1  RoCE v2 before v1
 *   2  IPv4 before routable IPv6 before link-local
 *   3  both in one subnet, by the prefixes of their interfaces' addresses
 *   4  the port's own interface before one on top of it (VLAN, macvlan)
 *   5  the lowest numbers */
#ifndef RG_VERBS_GID_H
#define RG_VERBS_GID_H

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "kernels/verbs_api.h"

enum { VERBS_GIDS = 8, VERBS_GID_TEXT = 48, VERBS_GID_WHY = 96 };

struct verbs_gid_row {
    union verbs_gid gid;
    int index, type; /* VERBS_GID_... */
    int prefix;      /* length of the subnet prefix, bits; 0: not known */
    bool other;      /* not on the port's own interface */
};

/* Addresses of a port, sent as bytes between equal programs. */
struct verbs_address {
    char who[96]; /* "mlx5_2 port 1" */
    char host[64];
    bool ethernet;
    int lid;
    union verbs_gid first; /* entry 0: subnet prefix and port of InfiniBand */
    int asked;             /* --gid-index; -1: none; otherwise row[0] is that entry */
    int rows;
    struct verbs_gid_row row[VERBS_GIDS];
};

struct verbs_path {
    bool global; /* with a global route header */
    int sgid_index;
    int type; /* VERBS_GID_... of the chosen entry */
    union verbs_gid sgid, dgid;
    char why[VERBS_GID_WHY]; /* "RoCE v2, IPv4, one subnet": reason for the choice */
};

const char *verbs_gid_type_text(int type); /* "RoCE v2" */
const char *verbs_gid_text(char out[VERBS_GID_TEXT], const union verbs_gid *gid);
static inline bool verbs_gid_is_ipv4(const union verbs_gid *gid)
{
    static const unsigned char head[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid->raw, head, sizeof(head));
}

/* Add a row to the sorted table, best first; if there is no room, the worst row is dropped. */
void verbs_gid_add(struct verbs_address *a, const struct verbs_gid_row *row);
/* Find the path from mine to theirs; the other end, with swapped arguments, finds the same two
 * rows.  EXIT_CONFIG with the reason if no packet would arrive. */
int verbs_gid_path(struct verbs_path *out, const struct verbs_address *mine,
                   const struct verbs_address *theirs, struct err *err);

#endif
