/* term.h - the terminal behind a stream: how wide it is, ANSI colours (whether they are wanted:
 * log_colour()). */
#ifndef RG_TERM_H
#define RG_TERM_H

#include <stdbool.h>
#include <stdio.h>

int term_columns(FILE *out); /* of the terminal, else $COLUMNS, else 80 */
/* A paragraph broken at blanks into lines of at most `columns`; all but the first begin with
 * `indent` blanks. */
void term_wrap(FILE *out, const char *text, int indent, int columns);
/* Ink (text) or paper (background) in 0xRRGGBB: 24-bit when $COLORTERM says "truecolor" or "24bit",
 * else the nearest of the 6 x 6 x 6 colours of xterm's 256. */
enum term_ground { TERM_INK = 38, TERM_PAPER = 48 };
void term_paint(FILE *out, enum term_ground ground, unsigned rgb);
void term_plain(FILE *out);

#endif
