/* reasons.h - why one host is judged as it is, while it is collected: the same words of several
 * GPUs are one reason. */
#ifndef RG_REASONS_H
#define RG_REASONS_H

#include "topo/host/gpu.h"
#include "topo/topo.h"

enum { REASONS = 16, REASON = 200 };
struct reasons {
    struct {
        char text[REASON];
        unsigned long long gpus; /* bit: index on the host; 0: the host itself */
        bool links;              /* said while `links` was true */
    } one[REASONS];
    int count;
    bool links; /* what is said now is of the number or speed of NVLinks */
};

/* g NULL: of the host itself. */
__attribute__((format(printf, 3, 4))) void reasons_add(struct reasons *r, const struct gpu *g,
                                                       const char *fmt, ...);
/* "GPU 2: ...; all 4 GPUs: ..." of a host with so many GPUs, with those of `links` or without;
 * NULL: none; the caller frees. */
char *reasons_text(const struct reasons *r, int gpus, bool links);

#endif
