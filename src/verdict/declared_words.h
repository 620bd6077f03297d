/* declared_words.h - comparisons in words; used by declared*.c only. */
#ifndef RG_DECLARED_WORDS_H
#define RG_DECLARED_WORDS_H

#include "verdict/declared.h"

char *declared_sentence(const struct declared *d, const struct comparison *c); /* caller frees */
/* What is said of misfit i: "measured with rack1 (9 of 9 pairs at 770 GB/s); swap suspected with
 * node14"; the caller frees. */
char *declared_misfit(const struct declared *d, const struct comparison *c, int i);

#endif
