/* case.h - a publication's claims about training steps, held against the model.
 *
 * A case file (jobs/training/cases/NAME.json, schema src/schema/case.schema.json) has jobs, each in
 * the words of the command line; what the publication leaves out (`unknown`: values to try;
 * `solve`: a setting found from one published figure, so that the others are predictions); and
 * claims: an expression over the jobs (expression.h) beside the published figure.
 *
 * A claim's kind is what its figure is of: "time" when it names a time that is predicted, "memory"
 * when it names bytes of a GPU, "arithmetic" when it follows from the publication's own figures and
 * the model's sizes; nobody's prediction is held against the last, so the three are counted apart.
 *
 * What is not stated is chosen by the other rows: claims of another kind or of other jobs (a job
 * whose step was solved for is everybody's) that some value holds.  A row never chooses for itself.
 * Values that those rows do not tell apart, by CASE_APART, are all kept, and a verdict is one that
 * all of them give:
 *   reproduced      our figure is within `within` (2) percent of the published one, or that many
 *                   points where the figure is a percentage;
 *   consistent      the published figure lies in our interval;
 *   cannot follow   it lies in none, whatever the unknowns are.  The reason is computed: what the
 *                   set-up gives, how the time splits, and what would have to be different;
 *   undecided       anything else: the kept values disagree, the figure needs a value that the other
 *                   rows do not choose, or the interval of a time is wider than a factor of
 *                   CASE_FACTOR to either side of its (geometric) middle, so that nearly anything
 *                   would lie in it.
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

/* From the best to the worst. */
enum verdict_of { CASE_REPRODUCED, CASE_CONSISTENT, CASE_UNDECIDED, CASE_EXCLUDED, CASE_VERDICTS };
extern const char *const case_verdict_name[CASE_VERDICTS];

enum case_kind { CASE_TIME, CASE_MEMORY, CASE_ARITHMETIC, CASE_KINDS };

#define CASE_FACTOR 1.5
#define CASE_APART 0.02 /* mean deviation of the other rows, natural logarithm or share */

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
    bool held; /* its step does not move with any error: it was solved for */
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
    enum case_kind kind;
    bool row[CASE_JOBS_MAX]; /* jobs whose figure of this kind it is */
    struct case_at {         /* in units, by combination of unknowns */
        double ours, lo, hi;
        bool possible; /* can the solved figures be? */
    } at[CASE_COMBINATIONS_MAX];
    int choosers;        /* other rows that chose; 0: every combination is kept */
    int chosen;          /* the first combination that is kept */
    double ours, lo, hi; /* ours of that one; lo and hi over all that are kept */
    double off;          /* percent or points that ours is above the published figure */
    double factor;       /* sqrt(hi / lo); INFINITY: the interval reaches 0 */
    unsigned free;       /* bit u: unknown u moves the figure */
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
    int held, held_of; /* case_evaluate(): claims that the best one combination of unknowns holds,
                          of those that any holds */
    char held_by[CASE_COMBINATION]; /* and that one: "seq 2048, prefetch off" */
    const char **assumed;           /* what this file adds to the publication, in whole sentences */
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

struct case_counts {
    int of[CASE_KINDS][CASE_VERDICTS];
    int unexpected;
};
struct case_counts cases_count(const struct casefile *c, int n);
/* "cases" and "counts" of verdicts.json; new reference. */
json_t *cases_json(const struct casefile *c, int n);
/* "4.76 s", "178 %", "fits", "at least 10 %" for published ones */
char *case_figure(char *buf, int size, const struct case_unit *u, double value);

#endif
