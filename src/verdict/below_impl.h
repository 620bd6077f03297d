/* below_impl.h - functions shared by the files of below.h. */
#ifndef RG_BELOW_IMPL_H
#define RG_BELOW_IMPL_H

#include "verdict/below.h"

const char *below_host(const struct topo *t, int endpoint);
/* Tier of the pair's traffic over NICs. */
const struct tier *below_tier(const struct below_side *s, int src, int dst);
/* Message size at which a pair is compared. */
double below_common_size(const struct below *b, int src, int dst);
struct below_figure below_nothing(void); /* not measured */
/* Figure of a pair of this side's endpoints from its points, or from the matrix if all NICs were
 * measured. */
struct below_figure below_pair_figure(const struct below_side *s, int src, int dst, double bytes);
struct below_figure below_by_matrix(const struct below_side *s, int src, int dst, double bytes);

#endif
