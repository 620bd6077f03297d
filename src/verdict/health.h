/* health.h - what the last check said of a host, in a small file of its own (src/schema/health.schema.json),
 * so that a prolog has it at once.
 *
 * A host fails by parts of its own, a GPU, a NIC, itself, whose figures fail and that are known with at
 * least medium confidence (parts.h); and by any figure when it was checked alone.  What fails beyond one host, the path between two, a leaf, a rack, a tier, is a
 * warning of each host in it: nobody is taken out of service for a part that is not theirs.  Else a
 * host is as unknown as the whole check. */
#ifndef RG_HEALTH_H
#define RG_HEALTH_H

#include <jansson.h>

#include "verdict/accept.h"
#include "verdict/parts.h"

struct health_input {
    const struct matrix *m;
    const struct accept *accept;
    const struct parts *parts;
    const char *line;                  /* the verdict of the whole check */
    const char *against, *limits_file; /* NULL: none; those of railgauge */
    const char *trouble; /* campaign_files_trouble() of points that failed or were wrong, or NULL */
    const char *cut;     /* why not all was measured: nobody is good then; NULL: it was */
};

struct health {
    char *host;
    enum accept_is verdict;
    /* For a scheduler: one line of at most HEALTH_REASON bytes, without quotes, '$', '`', '\' and what
     * is no ASCII text; "" when it is good. */
    char *reason;
    char *line;   /* of the whole check */
    double time;  /* s since 1970, UTC */
    json_t *json; /* the file */
};
enum { HEALTH_REASON = 200 };

/* Of host number `host` of the matrix; now.  health_free() is the caller's, here and below. */
void health_of(struct health *h, const struct health_input *in, int host);
/* DIR/HOST.json, without the host's domain, which replaces the one before. */
int health_save(const struct health *h, const char *dir, struct err *err);
/* EXIT_NOINPUT where none is there. */
int health_load(struct health *h, const char *dir, const char *host, struct err *err);
/* What it says is no more to be relied on: UNKNOWN for this reason, in its JSON as well. */
void health_doubt(struct health *h, char *reason);
void health_free(struct health *h);

#endif
