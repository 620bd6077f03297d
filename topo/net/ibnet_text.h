/* ibnet_text.h - what the reader of ibnetdiscover's text keeps between lines (ibnet_text.c) and
 * how the two ends of cables become one (ibnet_join.c). */
#ifndef RG_IBNET_TEXT_H
#define RG_IBNET_TEXT_H

#include <string.h>

#include "topo/net/ibnet.h"

/* One line of a port: what one end of a cable says. */
struct ibnet_end {
    int line, node, port;
    int peer; /* index of the other node's id, see ibnet_text.ids */
    int peer_port;
    uint64_t guid, peer_guid; /* of the ports; 0: not told */
    int lid, peer_lid;        /* 0: not told */
    int width;
    char speed[8];
};

struct ibnet_text {
    const char *path;
    int line;
    struct err *err;
    struct net *net;
    int *node_line;  /* where each node's record begins */
    int lines;       /* of node_line: as many as net->nodes */
    struct topo ids; /* interns ids: group[LEVEL_LEAF] */
    int *node_of;    /* by id: index of the node + 1, 0: no record so far */
    int node_ofs;    /* how many */
    uint64_t guid;   /* "switchguid=" of the record to come, 0: none */
    int guid_line;
    long device_id; /* "devid=" */
    struct ibnet_end *end;
    int ends;
};

/* "PATH:LINE: ", returns -1; BAD() for the line that is read now. */
int ibnet_bad(struct ibnet_text *x, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define BAD(x, ...) ibnet_bad((x), (x)->line, __VA_ARGS__)

static inline const char *blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* A decimal number of min..max; *s moves behind it. */
int ibnet_number(struct ibnet_text *x, const char **s, const char *what, long min, long max,
                 int *out);
/* Lids, width and speed from the comment of a port's line.  A switch tells the lid behind the
 * cable, others their own first. */
int ibnet_comment(struct ibnet_text *x, const char *s, bool at_switch, struct ibnet_end *e);
/* Ends to cables.  Sorts x->end. */
int ibnet_join(struct ibnet_text *x);

#endif
