/* health.h - result of the last check of one host, in a small file (src/schema/health.schema.json)
 * that a prolog can read at once.
 *
 * A host fails by its own parts (a GPU, a NIC, the host) whose figures fail with at least medium
 * confidence (parts.h), and by any failed figure if it was checked alone.  A fault beyond one host
 * (path between two hosts, leaf, rack, tier) is a warning for every host in it, so that no host is
 * taken out of service for a part of another.  Otherwise a host is unknown if the whole check
 * is. */
#ifndef RG_HEALTH_H
#define RG_HEALTH_H

#include <jansson.h>

#include "verdict/accept.h"
#include "verdict/parts.h"

struct health_input {
    const struct matrix *m;
    const struct accept *accept;
    const struct parts *parts;
    const char *line; /* verdict of the whole check */
    const char *against,
        *limits_file; /* reference, NULL: none; limits file, NULL: limits of railgauge */
    /* campaign_files_trouble() for points that failed or had wrong data, or NULL */
    const char *trouble;
    /* reason if not all was measured, so that no host is good; NULL: complete */
    const char *cut;
};

struct health {
    char *host;
    enum accept_is verdict;
    /* One line for a scheduler, at most HEALTH_REASON bytes of printable ASCII without quotes, '$',
     * '`' and '\'; "" if the host is good. */
    char *reason;
    char *line;   /* verdict of the whole check */
    double time;  /* s since 1970, UTC */
    char *path;   /* of the file that was read; NULL: none */
    json_t *json; /* contents of the file */
};
enum { HEALTH_REASON = 200 };

/* Fill h with the result for host number `host` of the matrix and the present time.  After this and
 * health_load() the caller calls health_free(). */
void health_of(struct health *h, const struct health_input *in, int host);
/* Write DIR/HOST.json (HOST without its domain), replacing an older file. */
int health_save(const struct health *h, const char *dir, struct err *err);
/* Read DIR/HOST.json.  EXIT_NOINPUT if it does not exist. */
int health_load(struct health *h, const char *dir, const char *host, struct err *err);
/* Mark the result as no longer reliable: UNKNOWN with this reason, also in its JSON. */
void health_doubt(struct health *h, char *reason);
void health_free(struct health *h);

#endif
