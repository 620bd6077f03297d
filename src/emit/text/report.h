/* report.h - what the two programs tell people of what they found, as text and as JSON. */
#ifndef RG_REPORT_H
#define RG_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "place/place.h"
#include "probe/gpu/device.h"
#include "step/asked/variants.h"
#include "step/predict.h"
#include "step/replay/replay.h"
#include "step/replay/replay_mpi.h"
#include "step/score/case.h"
#include "step/score/score.h"
#include "topo/topo.h"

/* One line per figure: the slowest, the middle and the fastest device, and the middle's share of
 * what the hardware allows; products by dtype, with the shape that is fastest. */
void device_text(FILE *out, const struct device_table *t);

/* What railgauge discover says of a topology. */
struct discover_report {
    bool quiet; /* no picture */
    bool json;  /* {"format": "railgauge-discover", ...} with the verdicts instead of the picture */
    bool check; /* a bad verdict is EXIT_BELOW, none possible EXIT_UNJUDGED */
};

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err);

/* The libraries and programs that are used where they are, which were found and what for; for those
 * that were not, why and what helps.  probe: file of railgauge-probe, or NULL and `why`. */
int libraries_report(FILE *out, const char *probe, const char *why, bool json, struct err *err);

/* A predicted step: total, one line per term, notes; with `explain` each term's source, group and
 * formula below it. */
void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                  const struct recipe *r, bool explain);
/* A run of such steps, below it. */
void budget_text(FILE *out, const struct budget *b);
/* A question of several GPU counts and machines: a table, and what moved. */
void variants_text(FILE *out, const struct variants *v, const struct job_opts *o);
/* The line that comes before all others where the job does not fit; nothing where it does. */
void predict_unfit(FILE *out, const struct memory *m);

/* A table of predicted steps beside measured ones: how good the predictions were as tables on
 * `score`, each of them as TSV on `tsv` (NULL: not so), and all of it as JSON; new reference. */
json_t *score_report(FILE *score, FILE *tsv, const struct batch *b);

/* The claims of publications, what became of them, and at the foot how many of each kind. */
void cases_text(FILE *out, const struct casefile *c, int n);
/* The same as a Markdown table: claim, published, ours, verdict. */
void cases_markdown(FILE *out, const struct casefile *c, int n);

/* A replay beside its prediction, on standard output as text or JSON, and as JSON into `output`
 * unless that is NULL. */
int replay_report(const struct replay_outcome *o, const char *output, bool json, struct err *err);

/* What railgauge place found; nothing is owned. */
struct place_answer {
    const struct placed *placed;
    const struct matrix *matrix;
    const struct prediction *now, *before; /* in the order found, in the default one; NULL: traffic,
                                             or it needs a part of no use */
    const char *traffic;                   /* file, or NULL */
    int free_hosts;
};

void place_text(FILE *out, const struct place_answer *a);
/* JSON has no infinity: a dead part on the way is null.  New reference. */
json_t *place_json(const struct place_answer *a);

#endif
