/* history_text.h - a history (verdict/history.h) as text and as JSON. */
#ifndef RG_HISTORY_TEXT_H
#define RG_HISTORY_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "verdict/history.h"

/* Print changed figures and all tiers (all: also the other figures), parts, versions and what was
 * left out. */
void history_print(FILE *out, const struct history *h, bool all);
/* Return "campaigns", "left_out", "figures", "parts", "versions" as a new reference. */
json_t *history_json(const struct history *h);

#endif
