/* search.h - the best layouts of a model on N GPUs.  Every candidate of a space is priced as far as
 * its rank requires, candidates that do not fit are dropped, and the best ones are predicted
 * exactly and compared term by term. */
#ifndef RG_SEARCH_H
#define RG_SEARCH_H

#include <jansson.h>
#include <string.h>

#include "step/search/eval.h"
#include "step/search/space.h"

struct search_candidate {
    struct layout layout;
    struct recipe recipe;
    double sec;   /* time of a step, by table */
    double bytes; /* memory of a GPU */
    bool tight;   /* it may not fit: the upper end of the prediction is beyond the GPU's memory */
    long serial;  /* order of the walk; breaks ties of equal times */
};

/* A candidate predicted with predict_step(). */
struct search_finalist {
    struct search_candidate candidate;
    struct prediction step;
    bool front;  /* no other candidate is both faster and smaller */
    double over; /* step time / that of the fastest */
    /* Half of the 90 % interval of log(over), without common errors (doubts_between). */
    double error;
    bool alike; /* within error of the fastest */
    /* Complexity: axes above 1, context parallelism of a short sequence, chunks, schedules that
     * fill bubbles, recompute, memory that may not fit. */
    int pains;
    char family[48]; /* "tp pp zero1": axes above 1, strategy */
};

enum { SEARCH_THREADS = 16, SEARCH_TOP_MAX = 1000, SEARCH_RIVALS = 6, SEARCH_REASON = 640 };

struct search {
    /* One for each mesh and strategy: those that fit, then those that may not.  In both, candidates
     * equal to the fastest (alike, and slower by at most SEARCH_EQUAL), ascending in pains, then the
     * others, ascending in time. */
    struct search_finalist *best;
    int bests;
    /* No candidate is both faster and smaller: ascending in time, descending in bytes. */
    struct search_finalist *front;
    int fronts;
    struct search_finalist *rival; /* best of each other family, ascending in time */
    int rivals;
    /* Sentences: comparison with the second best, then with each rival. */
    char (*why)[SEARCH_REASON];
    int whys;
    struct space_count count;
    long priced; /* candidates with a time */
    /* Further candidates excluded from all lists by their lower bound.  Dead parts and unknown
     * messages are not checked for them. */
    long bounded;
    long unfit;            /* candidates that do not fit in memory as predicted */
    long may_fit;          /* part of unfit that fits at the lower end of the prediction */
    long dead, unknown;    /* need a dead part; a message's cost is unknown */
    double capacity;       /* bytes of a GPU; 0: unknown, and no candidate was dropped for memory */
    double peak;           /* FLOP/s of the data sheet */
    double sec;            /* duration of the walk, s */
    int batch, seq, ranks; /* same for all candidates */
};

/* Search the `top` best (1 .. SEARCH_TOP_MAX) of the space.  q: without layout and recipe.  threads
 * does not change the result; 0: the number of hardware threads, at most SEARCH_THREADS.
 * EXIT_UNJUDGED or EXIT_USAGE with the reason: no candidate can run.  Call search_free() even after
 * an error. */
int search_run(struct search *s, const struct question *q, const struct space *space, int top,
               int threads, struct err *err);
void search_free(struct search *s);

/* True if they differ at most in chunks, schedule, micro batch and the like. */
static inline bool search_same_mesh(const struct search_candidate *a,
                                    const struct search_candidate *b)
{
    return a->recipe.strategy == b->recipe.strategy &&
           !memcmp(a->layout.size, b->layout.size, sizeof(a->layout.size));
}

/* Set over, error, alike and pains of n finalists against the fastest of s->best.  q: with a
 * pricer, without layout and recipe. */
int search_tell(struct search_finalist *f, int n, const struct search *s, const struct question *q,
                struct err *err);
/* Same for s->best, which is sorted and cut to the first of each mesh, at most `top`.  A gain below SEARCH_EQUAL does not
 * justify a more complex layout: it is the median error of steps of a recipe with one measured step
 * (railgauge plot score). */
#define SEARCH_EQUAL 0.02
int search_rank(struct search *s, const struct question *q, int top, struct err *err);
/* Returns the number of leading entries of s->best that equal the fastest. */
int search_equals(const struct search *s);

/* Set the reason why no candidate can run.  Returns -1. */
int search_none_runs(const struct search *s, struct err *err);

/* Returns search.json as a new reference. */
json_t *search_json(const struct search *s, const char *model, const char *command);

/* Returns the differences of a from b: "0.21 s less tensor-parallel messages (tp=8 inside a domain,
 * not tp=16 over 2 domains), but 0.05 s more bubble (...)". */
char *search_compare(char buf[SEARCH_REASON], struct eval *e, const struct search_candidate *a,
                     const struct search_candidate *b);

#endif
