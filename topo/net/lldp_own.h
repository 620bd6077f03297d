/* lldp_own.h - what the readers of both forms of lldpcli share (lldp.c, lldp_json.c). */
#ifndef RG_LLDP_OWN_H
#define RG_LLDP_OWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* How the port at the other end is called, the best first. */
enum port_name { PORT_IFNAME, PORT_LOCAL, PORT_ALIAS, PORT_DESCR, PORT_MAC, PORT_IP, PORT_NAMES };

struct neighbour {
    char interface[16];
    char name[65], id[65]; /* of the switch */
    char port[PORT_NAMES][32];
    bool forwards; /* bridge or router */
};

struct lldp_reader {
    struct neighbour *one;
    int count;
    const char *path;
    int line; /* 0: not known */
    struct err *err;
};

/* EXIT_DATA: what is wrong with a text. */
int lldp_bad(const struct lldp_reader *r, const char *what, const char *text);
/* The neighbour that is spoken of: index, or -1.  first: a new one. */
int lldp_find(struct lldp_reader *r, const char *interface, size_t len, bool first);
/* A value by its name in keyvalue's form, ".chassis.name"; other names say nothing. */
int lldp_set(struct lldp_reader *r, int neighbour, const char *key, size_t len, const char *value);

/* Of lldpcli -f json and json0. */
int lldp_json(struct lldp_reader *r, const char *text, size_t len);

#endif
