/* case.h - a publication's claims about training steps, compared with the model.
 *
 * A case file (jobs/training/cases/NAME.json, schema src/schema/case.schema.json) has jobs, each in
 * the words of the command line; settings that the publication leaves out (`unknown`: values to
 * try; `solve`: a setting found from one published figure, so that the others are predictions); and
 * claims: an expression over the jobs (case_impl.h) and the published figure.
 *
 * Kinds of claims: "time" if it uses a predicted time, "memory" if it uses bytes of a GPU,
 * "arithmetic" if it follows from the publication's own figures and the model's sizes.  The last
 * kind tests no prediction, so the three are counted separately.
 *
 * Settings not stated are chosen by the other rows: claims of another kind or of other jobs (a job
 * whose step was solved for counts as another job for all) that hold for some value.  A row never
 * chooses for itself.  Values that these rows do not separate by CASE_APART are all kept, and a
 * verdict requires agreement of all kept values:
 *   reproduced      our figure is within `within` (2) percent of the published one, or that many
 *                   points if the figure is a percentage
 *   consistent      the published figure lies in our interval
 *   cannot follow   it lies in no interval, whatever the unknowns are.  The reason is computed:
 *                   the result of the set-up, how the time splits, and what would have to differ
 *   direction wrong the figure may lie in our interval, but moves the other way than the published
 *                   one does from the claim that this one `follows`
 *   undecided       anything else: the kept values disagree, the figure needs a value that the
 *                   other rows do not choose, or the interval of a time is wider than a factor
 *                   of CASE_FACTOR to either side of its geometric mean, so that nearly any
 *                   figure would lie in it
 *
 * The same figure says more of a model that has not seen it, so predicted times are counted by what
 * was known of their jobs before (enum case_basis).
 *
 * Errors of two jobs on one machine are mostly the same errors.  An interval moves the compute of
 * all jobs with the same compute rate together, the messages of all jobs on one fabric together,
 * and each job by the constant "error.anchored", which is unchanged if another job of the recipe is
 * known.  Each moves by 1.645 standard deviations (90 %), added as squares.  A figure used to solve
 * a setting does not move. */
#ifndef RG_CASE_H
#define RG_CASE_H

#include <jansson.h>

#include "step/job.h"

/* Verdicts from best to worst. */
enum verdict_of {
    CASE_REPRODUCED,
    CASE_CONSISTENT,
    CASE_UNDECIDED,
    CASE_DIRECTION,
    CASE_EXCLUDED,
    CASE_VERDICTS
};
extern const char *const case_verdict_name[CASE_VERDICTS];

enum case_kind { CASE_TIME, CASE_MEMORY, CASE_ARITHMETIC, CASE_KINDS };

/* Predicted from constants that no step of these jobs helped to fit; with a setting solved from
 * another figure of the publication, or a measured step; with constants that a step of one of the
 * jobs helped to fit. */
enum case_basis { CASE_PREDICTED, CASE_ANCHORED, CASE_FITTED, CASE_BASES };

#define CASE_FACTOR 1.5
#define CASE_APART 0.02 /* mean deviation of the other rows, natural logarithm or share */

/* Units of published figures; expressions are in SI units. */
struct case_unit {
    const char *name, *suffix; /* "min", " min" */
    double scale;              /* value of one unit in SI units */
    bool points;               /* deviations are differences, not ratios */
    bool fits;                 /* true or false: the expression is at most 1 */
};

enum { CASE_JOBS_MAX = 64, CASE_UNKNOWNS_MAX = 4, CASE_VALUES_MAX = 16, CASE_CLAIMS_MAX = 128 };
enum { CASE_REASON = 1400, CASE_COMBINATIONS_MAX = 256, CASE_COMBINATION = 160 };

struct case_job {
    const char *name;
    struct job_opts opts;
    double stretch; /* factor of an anchor; 0: none */
    bool fitted;    /* its step is among the rows that constants are fitted to */
    /* Set by case_evaluate(), at the first value of each unknown. */
    double sec, bytes, capacity; /* time of a step; memory of a GPU; capacity 0: unknown */
    int gpus;
    bool held; /* no error moves its step, because it was solved for */
};

/* A setting that the publication leaves out. */
struct case_unknown {
    const char *key, *why;
    bool job[CASE_JOBS_MAX]; /* jobs that use it */
    const char *value[CASE_VALUES_MAX];
    int values;
};

/* A setting found from a published figure: "stretch" (factor on the time of all compute, like an
 * anchor) or a numeric row of the tables of job.h and recipe.h. */
struct case_solve {
    const char *key, *why, *expression;
    bool job[CASE_JOBS_MAX];
    const struct case_unit *unit;
    double published, min, max;
    double found; /* result at the first value of each unknown; case_evaluate() */
};

struct case_reading {
    const char *text, *expression;
    double value; /* unit of the claim; case_evaluate() */
};

struct case_claim {
    const char *text, *expression, *note;
    const struct case_unit *unit;
    double published;             /* in its unit; fits: 1 or 0 */
    double within;                /* percent or points */
    bool at_least;                /* the publication says "over 10 %" */
    enum verdict_of expect;       /* expected verdict in the file; tests the verdict */
    struct case_reading *reading; /* other possible meanings of the published figure */
    int readings;
    int follows; /* earlier claim of the same quantity; -1: none */
    /* Set by case_evaluate(). */
    enum case_kind kind;
    enum case_basis basis;
    bool row[CASE_JOBS_MAX]; /* jobs that this figure of its kind belongs to */
    struct case_at {         /* values in units, by combination of unknowns */
        double ours, lo, hi;
        bool possible; /* true if the solved figures are possible */
    } at[CASE_COMBINATIONS_MAX];
    int choosers;        /* number of other rows that chose; 0: every combination is kept */
    int chosen;          /* first kept combination */
    double ours, lo, hi; /* ours at `chosen`; lo and hi over all kept ones */
    double off;          /* percent or points by which ours exceeds the published figure */
    double factor;       /* sqrt(hi / lo); INFINITY: the interval reaches 0 */
    unsigned free;       /* bit u: unknown u moves the figure */
    enum verdict_of verdict;
    char reason[CASE_REASON];
};

struct casefile {
    json_t *root; /* owns every text */
    char *path;
    const char *title, *publication, *date, *url; /* url NULL: none */
    struct constants *constants; /* the shipped ones, for jobs that name no others */
    struct case_job *job;
    int jobs;
    struct case_unknown unknown[CASE_UNKNOWNS_MAX];
    int unknowns;
    struct case_solve solve[CASE_UNKNOWNS_MAX];
    int solves;
    struct case_claim *claim;
    int claims;
    /* case_evaluate(): claims that hold at the best single combination of unknowns, of those that
     * hold at any. */
    int held, held_of;
    char held_by[CASE_COMBINATION]; /* that combination: "seq 2048, prefetch off" */
    /* additions of this file to the publication, in whole sentences */
    const char **assumed;
    int assumes;
    char **text; /* numbers of the file as words for job_set() */
    int texts;
};

/* Load a case.  name: a file (has a "/" or ends in ".json") or a shipped case.  base: constants
 * that all jobs start with, or NULL.  Call case_free() even after an error. */
int case_load(struct casefile *c, const char *name, const struct job_opts *base, struct err *err);
int case_parse(struct casefile *c, const char *text, size_t len, const char *path,
               const struct job_opts *base, struct err *err);
void case_free(struct casefile *c);
int case_names(char ***names); /* shipped cases, sorted; like model_names() */

/* Predict every job for every value of the unknowns and fill the claims. */
int case_evaluate(struct casefile *c, struct err *err);
/* True if the verdict is worse than expected, or only one of the two is "cannot follow".
 * Reproduced where consistent is expected is fine. */
static inline bool case_unexpected(const struct case_claim *k)
{
    return (k->expect == CASE_EXCLUDED) != (k->verdict == CASE_EXCLUDED) || k->verdict > k->expect;
}

struct case_counts {
    int of[CASE_KINDS][CASE_VERDICTS];
    int times[CASE_BASES][CASE_VERDICTS]; /* of[CASE_TIME] by basis */
    int unexpected;
};
struct case_counts cases_count(const struct casefile *c, int n);
/* Returns "cases" and "counts" of verdicts.json as a new reference. */
json_t *cases_json(const struct casefile *c, int n);
/* Returns "4.76 s", "178 %", "fits", or "at least 10 %" for published figures. */
char *case_figure(char *buf, int size, const struct case_unit *u, double value);

#endif
