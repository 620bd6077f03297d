/* mnnvl.h - does NVLink work between hosts here?  One verdict a host, its reason in words.
 *
 * The clique id alone does not say it: GPUs report "completed" with a status that is an error, with
 * a cluster of zeros, unhealthy, in another clique than the tray beside them, or on a host without
 * the IMEX channel that memory shared between hosts needs (reports: torchcomms 936, 1315, 1385;
 * azhpc-images 506).  So everything that is known is put together, and compared with the
 * neighbours.
 */
#ifndef RG_MNNVL_H
#define RG_MNNVL_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/topo.h"

/* What trying found out on a host, when somebody did: memory with a FABRIC handle allocated,
 * exported, imported by another host (1 works, 0 fails, -1 not tried), and measured bandwidth
 * between hosts of the domain (B/s; 0: not measured).  One a host at most. */
struct mnnvl_trial {
    int host;
    int allocate, export, import;
    double Bps;
    char why[96]; /* the words of what failed */
};

enum mnnvl_verdict {
    MNNVL_NONE,   /* no NVLink that is up */
    MNNVL_INSIDE, /* NVLink inside the host only, as meant: HGX, bridges */
    MNNVL_GOOD,   /* member of a domain across hosts */
    MNNVL_BAD,    /* should be and is not, or not wholly */
    MNNVL_UNSEEN, /* no GPU of this host is told of */
    MNNVL_VERDICTS
};
extern const char *const mnnvl_word[MNNVL_VERDICTS];

struct mnnvl {
    struct mnnvl_host {
        enum mnnvl_verdict verdict;
        char *why;
        char *beside; /* of bad: why, beside number and speed of its NVLinks; NULL: only these */
    } * host;         /* by host of the topology */
    int hosts;
    char **odd; /* what is odd, a sentence each: "host tray07 GPU 2: 17 of 18 NVLinks up, ..." */
    int odds;
    int compared;  /* how many of those, the last ones, only set hosts beside each other */
    int bad;       /* hosts that are bad */
    char *summary; /* one line */
};

/* Pure function of its arguments; the trials that the topology keeps are t->trial.  Free in any
 * case. */
void mnnvl_judge(struct mnnvl *m, const struct topo *t, const struct mnnvl_trial *trial,
                 int trials);
void mnnvl_free(struct mnnvl *m);
/* {"summary", "bad", "hosts": [{"host", "verdict", "why"}], "odd": [...]}; new reference. */
json_t *mnnvl_json(const struct mnnvl *m, const struct topo *t);

/* The NVLink domain of GPU row i: "clusterUuid.cliqueId" once it is registered; without a
 * registration across hosts its host (a part of it where links join only some GPUs) while it and
 * another GPU have NVLinks that are up.  False: none, or not to be known. */
bool mnnvl_domain(const struct topo *t, int i, char *name, size_t len);

#endif
