/* shape_group.h - a group of endpoints that has a given shape.
 *
 * A collective's curve is kept by shape, without its members; to ask what it should cost, members
 * are needed again. */
#ifndef RG_SHAPE_GROUP_H
#define RG_SHAPE_GROUP_H

#include "cost/shape.h"

/* Ids of s->ranks endpoints whose shape_of() equals *s, in topology order, or NULL when there is no
 * such group of equal domains (neighbouring ones and every 2nd, 4th, 8th ... are tried).  The
 * caller frees. */
int *shape_group(const struct topo *t, const struct shape *s);

#endif
