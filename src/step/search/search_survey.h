/* search_survey.h - a whole space evaluated by table: parts that threads walk
 * at the same time, what they met counted, the best of it kept.  The answer
 * does not depend on how many threads there are. */
#ifndef RG_SEARCH_SURVEY_H
#define RG_SEARCH_SURVEY_H

#include "step/search/search_eval.h"
#include "step/search/search_kept.h"
#include "step/search/search_space.h"

enum { SEARCH_THREADS = 16 };

struct survey {
    struct eval eval; /* for questions about what was kept */
    struct kept kept;
    struct space_count count;
    long priced;        /* candidates with a time */
    long unfit;         /* do not fit in memory */
    long dead, unknown; /* need a dead part; a message's cost is unknown */
    double sec;         /* that the walk took */
};

/* q without layout and recipe; top and threads as in search_run().
 * survey_free() also after an error. */
int survey_space(struct survey *s, const struct question *q, const struct space *space, int top,
                 int threads, struct err *err);
void survey_free(struct survey *s);

#endif
