/* fabric_reader.h - what the files that read a preset share; fabric_load() is for everybody else.
 */
#ifndef RG_FABRIC_READER_H
#define RG_FABRIC_READER_H

#include "base/json.h"
#include "topo/fabrics/fabric.h"

enum { WHERE = 320 }; /* characters of a place such as "m.json: tiers[2].alpha_s" */

struct fabric_reader {
    const char *path;
    json_t *sources; /* short name -> text */
    struct err *err;
};

/* {"value": 5e-6, "kind": "spec", "source": "data-sheet", "note": "18 links x 50 GB/s"}; where and
 * key are for messages. */
int fabric_read_number(const struct fabric_reader *r, struct number *n, json_t *from,
                       const char *where, const char *key);
/* The kind called `name`, and the source behind `key` with the note (or NULL) in brackets. */
int fabric_read_cite(const struct fabric_reader *r, enum kind *kind, char **source, const char *at,
                     const char *name, const char *key, const char *note);
int fabric_read_int(const struct fabric_reader *r, json_t *object, const char *where,
                    const char *key, int min, int max, int *out);
int fabric_read_collectives(const struct fabric_reader *r, struct fabric *f, json_t *from);
int fabric_read_ep(const struct fabric_reader *r, struct fabric *f, json_t *from);

#endif
