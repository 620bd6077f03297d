/* term.h - terminal behind a stream: its width, and ANSI colours (log_colour() tells if they are
 * wanted). */
#ifndef RG_TERM_H
#define RG_TERM_H

#include <stdbool.h>
#include <stdio.h>

int term_columns(FILE *out); /* width of the terminal, else $COLUMNS, else 80 */
/* Print a paragraph, broken at blanks into lines of at most `columns`; all but the first begin with
 * `indent` blanks. */
void term_wrap(FILE *out, const char *text, int indent, int columns);
/* Set ink (text) or paper (background) to 0xRRGGBB: 24-bit if $COLORTERM is "truecolor" or "24bit",
 * else the nearest of the 6 x 6 x 6 colours of xterm's 256. */
enum term_ground { TERM_INK = 38, TERM_PAPER = 48 };
void term_paint(FILE *out, enum term_ground ground, unsigned rgb);
void term_plain(FILE *out);

#endif
