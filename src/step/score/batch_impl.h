/* batch_impl.h - what the files of batch.h share: a table's words and what its sources leave unsaid. */
#ifndef RG_BATCH_IMPL_H
#define RG_BATCH_IMPL_H

#include <jansson.h>

#include "step/score/batch.h"

/* jobs/training/publications.json, checked; what it says of a row is asked for with
 * r->publications.  EXIT_NOINPUT where it is not installed. */
int publications_load(json_t **out, struct err *err);

/* The settings that the words of row `at` and its source imply, and memory that was read; assumptions are remarked.  A dtype
 * of which no word is known is an error. */
int batch_words(struct batch_row *r, const struct tsv *t, int at, struct err *err);
/* r->preset and r->per_rack, from hardware (or a preset's name) and fabric; EXIT_UNJUDGED when no
 * preset is like it. */
int batch_machine(struct batch_row *r, const char *fabric, struct err *err);
/* r->release: "NVIDIA-NeMo/Megatron-Bridge@... (26.04 Pre-Training)" is "megatron-bridge 26.04".  And
 * r->publisher. */
void batch_release(struct batch_row *r);
/* Does the source count attention under the causal mask in the FLOP/s it prints? */
bool batch_counts_causal(const struct batch_row *r);
/* How its jobs fit at next to no cost in products, where that is known; NULL: it is not. */
const char *batch_fits_by(const struct batch_row *r);
/* Where the table has no chunks per rank: those of the source's recipe; before layout_check. */
void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l);

enum metric_kind { METRIC_SECONDS, METRIC_TOKENS, METRIC_FLOPS };
/* A cell by the name of its column; "" where the column is absent. */
const char *batch_cell(const struct tsv *t, int row, const char *column);
/* Append "text; " to a row's reason. */
void batch_remark(struct batch_row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
