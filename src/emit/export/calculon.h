/* calculon.h - the "networks" of a system file of Calculon (calculon-ai/calculon,
 * calculon/network.py): one per level of equal groups, the innermost first; a processor is an
 * endpoint.  The rest of a system file (matrix, vector, mem1, mem2) is no matter of a network.
 *
 * Calculon's time is latency + S * scalar * (1 + offset / n) / (bandwidth * efficiency).  Bandwidth
 * is the data sheet's where one is known and efficiency what was measured of it, else efficiency is
 * 1.  Scalars are those that give the matrix's time for S = bytes on the first group of each level,
 * with offset -1 (a ring passes on (n - 1) / n of S; its all_reduce has scalar 2).
 * processor_usage is written 0: it is not measured.  It has no place for slow parts: all
 * numbers are of healthy groups. */
#ifndef RG_CALCULON_H
#define RG_CALCULON_H

#include "emit/export/export.h"

/* EXIT_DATA: the machine is no tree of equal groups (nest.h), or a number is not known. */
int calculon_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                   struct err *err);

#endif
