/* places_json.h - the topology part of matrix.json: "places".  Hosts as host lists, coordinates per
 * level, devices and NICs as runs (rows.h).  Bus ids and the hosts' hardware stay in topology.json.
 */
#ifndef RG_PLACES_JSON_H
#define RG_PLACES_JSON_H

#include <jansson.h>

#include "topo/topo.h"

enum { PLACES_MAX = 1 << 20 }; /* endpoints, hosts, groups of a level, NICs */

json_t *places_pack(const struct topo *t); /* new reference; tiers are not included */
/* t is initialised here; free it also after a failure. */
int places_unpack(struct topo *t, json_t *places, const char *where, struct err *err);

/* Its parts; `row` is the row length, scratch has room for one integer per endpoint. */
json_t *devices_pack(const struct topo *t, int row, int *scratch);
int devices_unpack(struct topo *t, json_t *value, int row, int *scratch, const char *where,
                   struct err *err);
json_t *nics_pack(const struct topo *t, int row);
int nics_unpack(struct topo *t, json_t *value, int row, int *scratch, const char *where,
                struct err *err);

#endif
