/* batch_impl.h - what the files of batch.h share: a table's words and what its sources leave unsaid. */
#ifndef RG_BATCH_IMPL_H
#define RG_BATCH_IMPL_H

#include <jansson.h>

#include "step/score/batch.h"

extern const char *const batch_memory_kind[MEMORY_KINDS];
/* Settings of an object, keys of recipe_argument and batch_argument; EXIT_USAGE or EXIT_DATA. */
int batch_set(struct batch_row *r, json_t *settings, struct err *err);
/* The settings that the columns, the words and the publication of a row imply, and memory that was read; assumptions and what
 * the publication fills in are remarked.  A dtype of which no word is known is an error. */
int batch_words(struct batch_row *r, struct err *err);
/* What may be a column, or a setting of a publication, beside recipe_argument; of struct batch_row. */
extern const struct argument batch_argument[];
/* r->preset where no column has it, from hardware (or a preset's name) and fabric.  Hardware that
 * nobody knows is taken for another, with a remark and a doubt. */
void batch_machine(struct batch_row *r);
/* r->release: its column, or "NVIDIA-NeMo/Megatron-Bridge@... (26.04 Pre-Training)" is "megatron-bridge 26.04".
 * And r->publisher. */
void batch_release(struct batch_row *r);
/* Does the source count attention under the causal mask in the FLOP/s it prints? */
bool batch_counts_causal(const struct batch_row *r);
/* How its jobs fit at next to no cost in products, where that is known; NULL: it is not. */
const char *batch_fits_by(const struct batch_row *r);
/* Where the table has no chunks per rank: those of the source's recipe; before layout_check. */
void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l);

enum metric_kind { METRIC_SECONDS, METRIC_TOKENS, METRIC_FLOPS };
/* A cell by the name of its column; "" where the column is absent. */
const char *batch_cell(const struct batch_row *r, const char *column);
/* Append "text; " to a row's reason. */
void batch_remark(struct batch_row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
