/* ranks.h - sets of ranks in words. */
#ifndef RG_RANKS_H
#define RG_RANKS_H

#include <stdbool.h>
#include <stddef.h>

/* "rank 3", "ranks 0, 4-7", cut with " ... (90 in all)" where it would be longer than size; n
 * members of set are looked at.  Returns `to`. */
char *ranks_text(char *to, size_t size, const bool *set, int n);

#endif
