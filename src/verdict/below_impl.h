/* below_impl.h - what the files of below.h hand to each other. */
#ifndef RG_BELOW_IMPL_H
#define RG_BELOW_IMPL_H

#include "verdict/below.h"

const char *below_host(const struct topo *t, int endpoint);
/* The tier of a pair's traffic over NICs. */
const struct tier *below_tier(const struct below_side *s, int src, int dst);
/* The size that a pair is compared at. */
double below_common_size(const struct below *b, int src, int dst);
struct below_figure below_nothing(void); /* not measured */
/* Of a pair of this side's endpoints, from its points, else where all NICs were seen the matrix. */
struct below_figure below_pair_figure(const struct below_side *s, int src, int dst, double bytes);
struct below_figure below_by_matrix(const struct below_side *s, int src, int dst, double bytes);

#endif
