/* case.h - a publication's claims about training steps, held against the model.
 *
 * A case file (jobs/training/cases/NAME.json, schema src/schema/case.schema.json) has jobs, each in
 * the words of the command line; what the publication leaves out (`unknown`: values to try;
 * `solve`: a setting found from one published figure, so that the others are predictions); and
 * claims: an expression over the jobs (expression.h) beside the published figure.
 *
 * A claim is
 *   reproduced      our figure at the first value of each unknown is within `within` (2) percent of
 *                   the published one, or that many points where the figure is a percentage;
 *   consistent      the published figure lies in our interval for some value of the unknowns;
 *   cannot follow   it lies in none.  The reason is computed: what the set-up gives, how the time
 *                   splits, and what would have to be different.
 *
 * Errors of two jobs on one machine are mostly the same errors: an interval moves the compute of
 * all jobs with the same compute rate together, the messages of all jobs on one fabric together,
 * and each job by the constant "error.anchored", which stays when another job of the recipe is
 * known; each by 1.645 standard deviations (90 %), added as squares.  A figure that was solved for
 * stays. */
#ifndef RG_CASE_H
#define RG_CASE_H

#include <jansson.h>

#include "step/job.h"

enum verdict_of { CASE_REPRODUCED, CASE_CONSISTENT, CASE_EXCLUDED, CASE_VERDICTS };
extern const char *const case_verdict_name[CASE_VERDICTS];

/* Of published figures; an expression is in SI units. */
struct case_unit {
    const char *name, *suffix; /* "min", " min" */
    double scale;              /* one of it in SI units */
    bool points;               /* deviations are differences, not ratios */
    bool fits;                 /* true or false: is the expression at most 1? */
};

enum { CASE_JOBS_MAX = 64, CASE_UNKNOWNS_MAX = 4, CASE_VALUES_MAX = 16, CASE_CLAIMS_MAX = 128 };
enum { CASE_REASON = 1400, CASE_COMBINATIONS_MAX = 256, CASE_COMBINATION = 160 };

struct case_job {
    const char *name;
    struct job_opts opts;
    double stretch; /* of an anchor; 0: none */
    /* case_evaluate(), at the first value of each unknown: */
    double sec, bytes, capacity; /* of a step; of a GPU's memory; capacity 0: unknown */
    int gpus;
};

/* A setting that the publication leaves out. */
struct case_unknown {
    const char *key, *why;
    bool job[CASE_JOBS_MAX]; /* which jobs it belongs to */
    const char *value[CASE_VALUES_MAX];
    int values;
};

/* A setting found from a published figure: "stretch" (time of all compute, as an anchor) or a row
 * of the tables of job.h and recipe.h that is a number. */
struct case_solve {
    const char *key, *why, *expression;
    bool job[CASE_JOBS_MAX];
    const struct case_unit *unit;
    double published, min, max;
    double found; /* at the first value of each unknown; case_evaluate() */
};

struct case_reading {
    const char *text, *expression;
    double value; /* in the claim's unit; case_evaluate() */
};

struct case_claim {
    const char *text, *expression, *note;
    const struct case_unit *unit;
    double published;             /* in units; fits: 1 or 0 */
    double within;                /* percent or points */
    bool at_least;                /* the publication says "over 10 %" */
    enum verdict_of expect;       /* what the file says; a test of it */
    struct case_reading *reading; /* other things that the published figure may mean */
    int readings;
    /* case_evaluate(): */
    double ours, lo, hi; /* in units; lo and hi over all values of the unknowns */
    double off;          /* percent or points that ours is above the published figure */
    double nearest;      /* how far off the best combination of unknowns is */
    int best;            /* its number */
    bool inside[CASE_COMBINATIONS_MAX]; /* the interval of each combination of unknowns */
    enum verdict_of verdict;
    char reason[CASE_REASON];
};

struct casefile {
    json_t *root; /* owns every text */
    char *path;
    const char *title, *publication, *date, *url; /* url: NULL if none */
    struct case_job *job;
    int jobs;
    struct case_unknown unknown[CASE_UNKNOWNS_MAX];
    int unknowns;
    struct case_solve solve[CASE_UNKNOWNS_MAX];
    int solves;
    struct case_claim *claim;
    int claims;
    int held, held_of, held_by; /* case_evaluate(): claims that the best one combination of unknowns
                                   holds, of those that any holds, and its number */
    const char **assumed;       /* what this file adds to the publication, in whole sentences */
    int assumes;
    char **text; /* numbers of the file as the words that job_set() takes */
    int texts;
};

/* name: a file (has a "/" or ends in ".json") or a shipped case.  `base` has the constants that all
 * jobs start with, or is NULL.  case_free() also after an error. */
int case_load(struct casefile *c, const char *name, const struct job_opts *base, struct err *err);
int case_parse(struct casefile *c, const char *text, size_t len, const char *path,
               const struct job_opts *base, struct err *err);
void case_free(struct casefile *c);
int case_names(char ***names); /* of the shipped cases, sorted; as model_names() */

/* Predict every job for every value of the unknowns and fill the claims in. */
int case_evaluate(struct casefile *c, struct err *err);
/* Is the verdict another than the expected one?  Reproduced where consistent is expected is not. */
static inline bool case_unexpected(const struct case_claim *k)
{
    return (k->expect == CASE_EXCLUDED) != (k->verdict == CASE_EXCLUDED) || k->verdict > k->expect;
}

int case_unexpected_claims(const struct casefile *c);
/* cases.json: one element of its list; new reference. */
json_t *case_json(const struct casefile *c);
/* "seq 2048, prefetch off"; combinations are numbered as mixed radix, the first unknown changing
 * fastest. */
char *case_combination(char buf[CASE_COMBINATION], const struct casefile *c, int combination);
/* "4.76 s", "178 %", "fits", "at least 10 %" for published ones */
char *case_figure(char *buf, int size, const struct case_unit *u, double value);

#endif
