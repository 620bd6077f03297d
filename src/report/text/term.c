/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/units.h"

int term_columns(FILE *out)
{
    struct winsize size;
    const char *env = getenv("COLUMNS");
    int columns;

    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    if (env && units_int(&columns, env, 1, 9999, NULL) == 0)
        return columns;
    return 80;
}

void term_wrap(FILE *out, const char *text, int indent, int columns)
{
    int at = 0;

    for (const char *word = text; *word;) {
        int blanks = (int)strspn(word, " "), length = (int)strcspn(word + blanks, " ");
        if (at > indent && at + blanks + length > columns) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            word += blanks;
            blanks = 0;
        }
        fprintf(out, "%.*s", blanks + length, word);
        at += blanks + length;
        word += blanks + length;
    }
    putc('\n', out);
}

void term_paint(FILE *out, enum term_ground ground, unsigned rgb)
{
    const char *deep = getenv("COLORTERM");
    unsigned r = rgb >> 16 & 255, g = rgb >> 8 & 255, b = rgb & 255;

    if (deep && (!strcmp(deep, "truecolor") || !strcmp(deep, "24bit")))
        fprintf(out, "\033[%d;2;%u;%u;%um", ground, r, g, b);
    else
        fprintf(out, "\033[%d;5;%um", ground,
                16 + 36 * ((r * 5 + 127) / 255) + 6 * ((g * 5 + 127) / 255) + (b * 5 + 127) / 255);
}

void term_plain(FILE *out)
{
    fputs("\033[0m", out);
}
