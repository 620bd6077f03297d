/* batch_words.h - what the words in a table of published steps mean, as data. */
#ifndef RG_BATCH_WORDS_H
#define RG_BATCH_WORDS_H

#include "step/batch.h"

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
/* Does this source count attention under the causal mask in the FLOP/s it prints? */
bool batch_counts_causal(const char *source);
/* Append "text; " to a row's reason. */
void batch_remark(struct batch_row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
