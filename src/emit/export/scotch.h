/* scotch.h - the machine as a target architecture of Scotch (PT-Scotch, PaStiX; user's guide 7.0,
 * section "Target graph files"), which maps weighted graphs of communication onto it.
 *
 * Distances are whole numbers: 10 is the nearest pair, at the size that is asked for.
 * tleaf: a tree of equal groups.  A link's value counts on the way up and again for what is below:
 * the distance of two leaves is the sum of the values from where their ways part down (atst shows
 * 11 for "tleaf 2 2 10 4 1"), so each level writes how much further it is than the one inside.
 * deco 0: every pair has its distance, of both ways the slower one; the decomposition halves the
 * nodes in the order of their places.  Terminals are numbered as the second file lists them. */
#ifndef RG_SCOTCH_H
#define RG_SCOTCH_H

#include "emit/export/export.h"

enum { SCOTCH_DECO_MAX = 4096 };

/* EXIT_DATA: uneven groups (nest.h), an outer tier that is nearer than an inner one. */
int scotch_tleaf(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                 struct err *err);
/* EXIT_DATA: a pair that is not known or dead; EXIT_USAGE: too many nodes. */
int scotch_deco(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                struct err *err);

#endif
