/* kernels_args.h - what kernels.c hands to kernels.cu beside plain values. */
#ifndef RG_KERNELS_ARGS_H
#define RG_KERNELS_ARGS_H

#include <stdint.h>

struct pattern_args {
    uint64_t k, k_before;
    uint32_t term; /* not 0: word of k minus word of k_before, in each uint32 */
    uint32_t pad;
};

struct hot_args { /* of hot.h */
    uint64_t k, first;
    int32_t type, redop, ranks, rank;
};

#endif
