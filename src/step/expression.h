/* expression.h - sums and products of numbers and named quantities: "36 * train.step_s / 3600".
 *
 *   sum     = product { ("+" | "-") product }
 *   product = factor { ("*" | "/") factor }
 *   factor  = NUMBER | NAME "." NAME | "(" sum ")"
 *
 * A NAME is a letter and then letters, digits or "_". */
#ifndef RG_EXPRESSION_H
#define RG_EXPRESSION_H

#include "base/err.h"

enum { EXPRESSION_NAME = 64, EXPRESSION_DEPTH = 32 };

/* Who knows what OF.WHAT is: 0 and *out, or -1 with the reason. */
struct expression_names {
    int (*find)(void *ctx, const char *of, const char *what, double *out, struct err *err);
    void *ctx;
};

/* EXIT_DATA with the text, the position and the reason.  The value may be NAN or infinite. */
int expression_value(double *out, const char *text, const struct expression_names *names,
                     struct err *err);
/* A NAME and no more. */
int expression_is_name(const char *text);

#endif
