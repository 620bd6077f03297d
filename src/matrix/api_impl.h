/* api_impl.h - a matrix compiled for queries, which the files of the library share. */
#ifndef RG_API_IMPL_H
#define RG_API_IMPL_H

#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "matrix/collective.h"
#include "railgauge.h"

/* Place of an endpoint, as one number: KEY_ODD, and its group at each level that rules ask for, side by side.  What is
 * not known has a number of its own, as it is the same as nothing.  Two endpoints share the levels whose bits are 0 in
 * the exclusive or of their keys. */
enum { KEY_ODD = 1 }; /* an exception may concern it */
enum { KEY_BITS = 64, NARROW_BITS = 32 };

/* What the exceptions of an endpoint's own parts (all but those of pairs) do to its pairs. */
struct effect {
    double factor, add;
};
struct odd_place {
    uint32_t key;        /* the narrow key, if there are such */
    unsigned sheet : 17; /* index of its effects, 0: none */
    unsigned pairs : 1;  /* an exception of a pair concerns it */
    unsigned rack : 14;  /* ODD_RACK_NONE: not known */
};
enum { ODD_SHEETS = 1 << 17, ODD_RACK_NONE = (1 << 14) - 1 };

struct railgauge {
    struct matrix m;
    uint64_t *key;
    /* The same where half the bits hold it, of which a cache holds twice as many; else NULL, and where so many
     * endpoints are odd that key and effects are better read together. */
    uint32_t *narrow;
    bool beside;       /* narrow keys are those of place[] */
    uint64_t *differ;  /* [tier]: the bits that are 0 in it */
    bool packed;       /* all levels have their bits; else keys hold KEY_ODD alone */
    struct cell *grid; /* [tier][CELLS] of healthy pairs */
    struct lists by_endpoint, by_rack; /* exceptions that concern it */
    /* The same for pairs; NULL without exceptions, and for more racks or sheets than have bits.  Endpoints with equal
     * effects share a sheet. */
    struct odd_place *place;
    struct effect *effect;       /* [sheet][sends, receives][near, far: another rack][tier] */
    struct tier_line (*line)[2]; /* [tier][CELLS + 1] */
    uint64_t *rack_partners;     /* by rack: bit k % 64 for each rack k that shares an exception */
    struct lists by_host;        /* endpoints of each host */
    struct stairs stairs;
    struct known_shapes *known; /* collectives that were asked for */
    int *odd, odds;             /* endpoints with KEY_ODD, ascending */
    char *path;
    struct file_seen {
        uint64_t device, inode;
        int64_t size, sec, nsec; /* size, and time of the last write */
    } seen;
};

/* open(opening), which says why not in err; so does text, unless NULL. */
static inline int guarded(int (*open)(void *), void *opening, struct err *err, char text[256])
{
    int rc = mem_guarded(open, opening, err);

    if (rc < 0 && text)
        snprintf(text, 256, "%.255s", err->text);
    return rc;
}

#endif
