/* batch_words.h - what the words in a table of published steps mean, as data. */
#ifndef RG_BATCH_WORDS_H
#define RG_BATCH_WORDS_H

#include "step/score/batch.h"

enum metric_kind { METRIC_SECONDS, METRIC_TOKENS, METRIC_FLOPS, METRIC_CLAIM };
struct metric {
    const char *name;
    enum metric_kind kind;
    const char *unit; /* NULL: any */
    double scale;     /* to seconds; tokens/s and FLOP/s of one GPU */
    const char *why;  /* of claims: what it is instead of the time of a step */
};
/* NULL and err when metric and unit are not in the table. */
const struct metric *batch_metric(const char *name, const char *unit, struct err *err);

/* A cell by the name of its column; "" where the column is absent. */
const char *batch_cell(const struct tsv *t, int row, const char *column);

/* The settings that the words of row `at` imply; assumptions are remarked.  A dtype of which no
 * word is known is an error. */
int batch_words(struct batch_row *r, const struct tsv *t, int at, struct err *err);
/* r->preset and r->per_rack, from hardware and fabric; EXIT_UNJUDGED when no preset is like it. */
int batch_machine(struct batch_row *r, const char *fabric, struct err *err);
/* "NVIDIA-NeMo/Megatron-Bridge@... (26.04 Pre-Training)" is "megatron-bridge 26.04". */
void batch_release(char out[BATCH_RELEASE], const char *source);
/* r->job and r->same, once nothing is unsaid. */
void batch_name_job(struct batch_row *r, const struct layout *l);
/* Does this source count attention under the causal mask in the FLOP/s it prints? */
bool batch_counts_causal(const char *source);

/* Where the table has no chunks per rank: those that the source is known for; before layout_check.
 */
void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l);
/* A published step ran, so it must fit into `capacity` bytes: r->fits_with becomes the least
 * recompute with which it does, weights shared out if copies of them cannot be.  The step is timed
 * with it too, unless the source is known to save memory at less cost, or memory_of() may err by
 * that much.  What is assumed is remarked.  After layout_check. */
void batch_fit(struct batch_row *r, const struct model *m, const struct layout *l, double capacity,
               const struct memory_constants *c);
/* "fp8/nvfp4?": the second, of enum dtype; -1: there is none. */
int batch_other_dtype(const char *cell);
/* r->other_dtype becomes -1 where it is settled: this GPU has no such products, or the source says
 * that it was the other. */
void batch_settle_dtype(struct batch_row *r, const struct fabric_gpu *gpu);

/* Append "text; " to a row's reason. */
void batch_remark(struct batch_row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
