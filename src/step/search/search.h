/* search.h - the best layouts of a model on N GPUs: every candidate of a space
 * priced as far as its rank depends on it, those that do not fit dropped, the best
 * ones asked again exactly and compared term by term. */
#ifndef RG_SEARCH_H
#define RG_SEARCH_H

#include <jansson.h>

#include "step/search/eval.h"
#include "step/search/space.h"

struct search_candidate {
    struct layout layout;
    struct recipe recipe;
    double sec;   /* of a step, by table */
    double bytes; /* of a GPU */
    long serial;  /* ascends in the order of the walk: equal times are listed in it
                   */
};

/* A candidate asked again with predict_step(). */
struct search_finalist {
    struct search_candidate candidate;
    struct prediction step;
    bool front;      /* no other is both faster and smaller */
    double over;     /* its time over the fastest one's */
    double error;    /* half of the 90 % interval of that ratio's logarithm, without what both
                        share (doubts_between) */
    bool alike;      /* so it cannot be told apart from the fastest */
    int pains;       /* axes above 1, context parallelism of a short sequence, chunks, schedules
                        that fill bubbles, recompute, memory that may not fit */
    char family[48]; /* "tp pp zero1": axes above 1, strategy */
};

enum { SEARCH_THREADS = 16, SEARCH_TOP_MAX = 1000, SEARCH_RIVALS = 6, SEARCH_REASON = 640 };

struct search {
    struct search_finalist *best; /* those that are equal to the fastest (alike, and slower by at
                                     most SEARCH_EQUAL) ascending in pains, then the others; these
                                     ascend in time */
    int bests;
    struct search_finalist *front; /* none is both faster and smaller: ascending in time,
                               descending in bytes */
    int fronts;
    struct search_finalist *rival; /* the best of the other families, ascending in time */
    int rivals;
    char (*why)[SEARCH_REASON]; /* sentences: against the next one, then against
                                   each rival */
    int whys;
    struct space_count count;
    long priced; /* candidates with a time */
    long
        bounded; /* beside them, those whose lower bound says that they are on no list here; whether
                              they need a dead part, or an unknown message, was not asked */
    long unfit;  /* do not fit in memory, as predicted */
    long may_fit;          /* of them, those that do at the lower end of that prediction */
    long dead, unknown;    /* need a dead part; a message's cost is unknown */
    double capacity;       /* bytes of a GPU; 0: unknown, and nothing was dropped for it */
    double peak;           /* FLOP/s of the data sheet */
    double sec;            /* that the walk took */
    int batch, seq, ranks; /* the same for all */
};

/* The `top` best (1 .. SEARCH_TOP_MAX) of the space.  q without layout and
 * recipe.  The answer does not depend on `threads`; 0: as many as this machine
 * runs at a time, up to SEARCH_THREADS.  No candidate that can run:
 * EXIT_UNJUDGED or EXIT_USAGE with the reason.  search_free() also after an
 * error. */
int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err);
void search_free(struct search *s);

/* Sets over, error, alike and pains of n finalists against the fastest of s->best; q has a pricer,
 * neither layout nor recipe. */
int search_tell(struct search_finalist *f, int n, const struct search *s, const struct question *q,
                struct err *err);
/* The same for s->best, which is put in order and cut to its first `top`.  A gain below this is not
 * worth a more involved layout: the median error of steps of a recipe of which one is measured
 * (railgauge plot score). */
#define SEARCH_EQUAL 0.02
int search_rank(struct search *s, const struct question *q, int top, struct err *err);
/* So many at the head of s->best are equal to the fastest. */
int search_equals(const struct search *s);

/* No candidate that can run: the reason; returns -1. */
int search_none_runs(const struct search *s, struct err *err);

/* search.json; new reference. */
json_t *search_json(const struct search *s, const char *model, const char *command);

/* "0.21 s less tensor-parallel messages (tp=8 inside a domain, not tp=16 over 2
 * domains), but 0.05 s more bubble (...)": what makes a differ from b. */
char *search_compare(char buf[SEARCH_REASON], struct eval *e, const struct search_candidate *a,
                     const struct search_candidate *b);

#endif
