/* case_text.h - verdicts for people: text, and the table of the README. */
#ifndef RG_CASE_TEXT_H
#define RG_CASE_TEXT_H

#include <stdio.h>

#include "step/score/case.h"

void case_text(FILE *out, const struct casefile *c);
/* Rows of a Markdown table with the columns claim, published, ours, verdict; the head once. */
void case_markdown_head(FILE *out);
void case_markdown(FILE *out, const struct casefile *c);

#endif
