/* report.h - results of the two programs, as text and as JSON.
 *
 * One function per command and form: NOUN_text() and NOUN_report() print, NOUN_json() returns a new
 * reference.  The argument is the answer of another room (struct parts, prediction, variants,
 * batch, place_answer, history, matrix), which stays the caller's.  Nothing is computed here, so
 * that all forms have the same numbers.  pair_map.h and plot.h draw, page.h writes the HTML page.
 *
 * Example:
 *
 *     struct matrix m;
 *
 *     if (matrix_load(&m, "campaign", MATRIX_WHOLE, err) < 0)
 *         return -1;
 *     matrix_report(stdout, &m, 0);                   // as text: returns NULL
 *     json_t *json = matrix_report(NULL, &m, 0);      // as JSON: a new reference
 *     json_decref(json);
 *     matrix_free(&m);
 *     return 0; */
#ifndef RG_REPORT_H
#define RG_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "calibrate/case.h"
#include "calibrate/score.h"
#include "matrix/matrix.h"
#include "measure/device/device.h"
#include "place/place.h"
#include "step/asked/variants.h"
#include "step/predict.h"
#include "step/replay/replay.h"
#include "topo/topo.h"
#include "verdict/history.h"
#include "verdict/parts.h"

/* Print a block per part for the first `most` (0: all): speed, place, evidence, counters; unless
 * brief, cost, next steps and names that are not known; then parts that only the lower layer has.
 * note: print first "1 slow part found", "3 faulty parts found: 1 dead, 2 slow" or "No slow part
 * found", with the note; NULL: not. */
void parts_text(FILE *out, const struct parts *p, int most, bool brief, const char *note);

/* Print a line per figure: the slowest, median and fastest device, and the median's share of the
 * hardware limit; products by dtype, with the fastest shape. */
void device_text(FILE *out, const struct device_table *t);

/* Output of railgauge discover for a topology. */
struct discover_report {
    bool quiet; /* no picture */
    bool json;  /* {"format": "railgauge-discover", ...} with the verdicts, without a picture */
    bool check; /* a bad verdict is EXIT_BELOW, a missing one EXIT_UNJUDGED */
};

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err);

/* Print the optional libraries and programs: found ones with their use; missing ones with reason
 * and remedy.  probe: path of railgauge-probe, or NULL and `why`. */
int libraries_report(FILE *out, const char *probe, const char *why, bool json, struct err *err);

/* Print a predicted step: total, one line per term, notes; with `explain` the source, group and
 * formula below each term. */
void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                  const struct recipe *r, bool explain);
/* Print a run of these steps, after the step. */
void budget_text(FILE *out, const struct budget *b);
/* Print a table of several GPU counts and machines, and what changed. */
void variants_text(FILE *out, const struct variants *v, const struct job_opts *o);
/* Print a line if the job does not fit into memory; call it first. */
void predict_unfit(FILE *out, const struct memory *m);

/* Print predicted beside measured steps: accuracy as tables on `score`, each step as TSV on `tsv`
 * (NULL: none).  Returns all of it as JSON; a new reference. */
json_t *score_report(FILE *score, FILE *tsv, const struct batch *b);

/* Print the claims of publications with their results, and the number of each kind at the end; markdown:
 * as a table: claim, published, ours, verdict. */
void cases_text(FILE *out, const struct casefile *c, int n, bool markdown);

/* Write a replay beside its prediction to standard output as text or JSON, and as JSON to `output`
 * unless NULL. */
int replay_report(const struct replay_outcome *o, const char *output, bool json, struct err *err);

/* Result of railgauge place; all pointers are borrowed. */
struct place_answer {
    const struct placed *placed;
    const struct matrix *matrix;
    /* with the order found, and with the default order; NULL: traffic, or the job needs an unusable
     * part */
    const struct prediction *now, *before;
    const char *traffic; /* name of the file, or NULL */
    int free_hosts;
};

void place_text(FILE *out, const struct place_answer *a);
/* JSON has no infinity: the time over a dead part is null.  A new reference. */
json_t *place_json(const struct place_answer *a);

/* --- matrix text ---
 *
 * Sections of a cost matrix, as text and as JSON. */

/* Each function prints its section to `out` and returns NULL or, if out is NULL, returns it as
 * JSON; a new reference. */

/* Text: numbers and kinds of measurements, tiers and findings.  JSON: all but the points. */
json_t *matrix_report(FILE *out, const struct matrix *m, double bytes);
/* bytes > 0: also the cost of each tier at this message size. */
json_t *matrix_report_tiers(FILE *out, const struct matrix *m, double bytes);
/* Bus bandwidth at bytes, a table per shape; default: text shows 1/256, 1/16 and all of each curve's largest size,
 * JSON all sizes; expected beside it.  brief: only the largest group of all_gather, reduce_scatter,
 * all_to_all and all_reduce. */
json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief);
/* Text: what was checked, and the first `most` findings (0: all), counting the rest.  JSON: exceptions
 * and findings. */
json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most);
/* Every curve point. */
json_t *matrix_report_points(FILE *out, const struct matrix *m);

/* Print one line, "1 slow part found" with `note`, a block for each of the first `most` parts (brief;
 * 0: all in full), without their cost, and the campaign: "demo: 576 GPUs on 144 hosts, simulated
 * gb200-nvl72; declared: 8 racks"; name: of the campaign, or "". */
void matrix_report_parts(FILE *out, const struct matrix *m, int most, const char *note,
                         const char *name);

/* --- history text ---
 *
 * A history (verdict/history.h) as text and as JSON. */

/* Print changed figures and all tiers (all: also the other figures), parts, versions and what was
 * left out. */
void history_print(FILE *out, const struct history *h, bool all);
/* Return "campaigns", "left_out", "figures", "parts", "versions" as a new reference. */
json_t *history_json(const struct history *h);

#endif
