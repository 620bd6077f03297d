/* mnnvl.h - verdict on NVLink between hosts, one per host, with its reason in words.
 *
 * The clique id alone is not enough: GPUs report "completed" with an error status, with a cluster
 * of zeros, unhealthy, in another clique than the next tray, or on a host without the IMEX channel
 * that memory shared between hosts needs (reports: torchcomms 936, 1315, 1385; azhpc-images 506).
 * So all known facts are combined and compared with the neighbours. */
#ifndef RG_MNNVL_H
#define RG_MNNVL_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/gpu.h"
#include "topo/topo.h"

enum mnnvl_verdict {
    MNNVL_NONE,   /* no active NVLink */
    MNNVL_INSIDE, /* NVLink inside the host only, as designed: HGX, bridges */
    MNNVL_GOOD,   /* member of a domain across hosts */
    MNNVL_BAD,    /* should be a member, and is not or only in part */
    MNNVL_UNSEEN, /* no GPU of this host is known */
    MNNVL_VERDICTS
};
extern const char *const mnnvl_word[MNNVL_VERDICTS];

struct mnnvl {
    struct mnnvl_host {
        enum mnnvl_verdict verdict;
        char *why;
        /* Reason of MNNVL_BAD without number and speed of NVLinks; NULL: no other reason. */
        char *beside;
    } * host; /* by host of the topology */
    int hosts;
    char **odd; /* one sentence each: "host tray07 GPU 2: 17 of 18 NVLinks up, ..." */
    int odds;
    int compared;  /* number of sentences, at the end, that only compare hosts */
    int bad;       /* number of hosts with MNNVL_BAD */
    char *summary; /* one line */
};

/* Judge all hosts; depends on its arguments only.  Trials kept in a topology are t->trial.  Call
 * mnnvl_free() in any case. */
void mnnvl_judge(struct mnnvl *m, const struct topo *t, const struct mnnvl_trial *trial,
                 int trials);
void mnnvl_free(struct mnnvl *m);
/* {"summary", "bad", "hosts": [{"host", "verdict", "why"}], "odd": [...]}; new reference. */
json_t *mnnvl_json(const struct mnnvl *m, const struct topo *t);

/* NVLink domain of GPU i of topo.gpu.  Registered: "clusterUuid.cliqueId".  Without a registration
 * across hosts: the host (or a part of it, if links join only some GPUs), if this and another GPU
 * have active NVLinks.  False: no domain, or unknown. */
bool mnnvl_domain(const struct topo *t, int i, char *name, size_t len);

#endif
