/* search_text.h - the answer of a search for people, as a table, and as a command line. */
#ifndef RG_SEARCH_TEXT_H
#define RG_SEARCH_TEXT_H

#include <stdio.h>

#include "cmd/search_args.h"
#include "step/search/search.h"

/* The best, why the first wins, memory against time, what was dropped, how to repeat it. */
void search_text(FILE *out, const struct search *s, const struct job *j, const char *command);
/* The best as a TSV with a header line; bytes and seconds. */
void search_tsv(FILE *out, const struct search *s);
/* "railgauge predict ..." that gives the candidate's step; words of the shell are quoted.  The
 * caller frees. */
char *search_command(const struct search_args *a, const struct candidate *c);

#endif
