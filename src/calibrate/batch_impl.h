/* batch_impl.h - shared by the files of batch.h: the words of a table, and settings that its
 * sources do not state. */
#ifndef RG_BATCH_IMPL_H
#define RG_BATCH_IMPL_H

#include <jansson.h>

#include "calibrate/batch.h"

extern const char *const batch_memory_kind[MEMORY_KINDS];
/* Apply the settings of an object, keys of recipe_argument and batch_argument.  EXIT_USAGE or
 * EXIT_DATA. */
int batch_set(struct batch_row *r, json_t *settings, struct err *err);
/* Apply the settings from columns, words and publication of a row, and the memory reading.
 * Assumptions and settings from the publication are remarked.  An error if no word of the dtype is
 * known. */
int batch_words(struct batch_row *r, struct err *err);
/* Keys of struct batch_row that a column or a publication may set, besides recipe_argument. */
extern const struct argument batch_argument[];
/* Set r->preset, if no column does, from hardware (or a preset's name) and fabric.  Unknown
 * hardware is replaced by a known kind, with a remark and a doubt. */
void batch_machine(struct batch_row *r);
/* Set r->release from its column; "NVIDIA-NeMo/Megatron-Bridge@... (26.04 Pre-Training)" becomes
 * "megatron-bridge 26.04".  Set r->publisher. */
void batch_release(struct batch_row *r);
/* True if the source counts attention under the causal mask in its printed FLOP/s. */
bool batch_counts_causal(const struct batch_row *r);
/* Returns how jobs of the source fit at almost no cost in products, if known, or NULL. */
const char *batch_fits_by(const struct batch_row *r);
/* Set chunks per rank, if the table has none, from the source's recipe; before layout_check. */
void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l);

enum metric_kind { METRIC_SECONDS, METRIC_TOKENS, METRIC_FLOPS };
/* Returns a cell by column name; "" if the column is absent. */
const char *batch_cell(const struct batch_row *r, const char *column);
/* Append "text; " to a row's reason. */
void batch_remark(struct batch_row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
