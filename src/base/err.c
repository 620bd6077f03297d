/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/err.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int fill(struct err *err, int code, const char *fmt, va_list ap)
{
    if (err) {
        err->code = code;
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
    }
    return -1;
}

#define ERR_FUNCTION(name, code)                                                                   \
    int name(struct err *err, const char *fmt, ...)                                                \
    {                                                                                              \
        va_list ap;                                                                                \
                                                                                                   \
        va_start(ap, fmt);                                                                         \
        fill(err, code, fmt, ap);                                                                  \
        va_end(ap);                                                                                \
        return -1;                                                                                 \
    }

ERR_FUNCTION(err_set, EXIT_UNJUDGED)
ERR_FUNCTION(err_usage, EXIT_USAGE)
ERR_FUNCTION(err_data, EXIT_DATA)
ERR_FUNCTION(err_noinput, EXIT_NOINPUT)
ERR_FUNCTION(err_io, EXIT_IO)
ERR_FUNCTION(err_config, EXIT_CONFIG)

int err_code(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, code, fmt, ap);
    va_end(ap);
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    struct err inner;
    va_list ap;

    if (!err)
        return -1;
    inner = *err;
    va_start(ap, fmt);
    fill(err, inner.code, fmt, ap);
    va_end(ap);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner.text);
    return -1;
}

/* --- suggestions --- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool alike(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b) ||
           (strchr("-_ .", a) && strchr("-_ .", b));
}

/* Costs of edits: users omit letters more often than they add some, and add some more often than
 * they mean another letter. */
enum { EDIT_SWAP = 9, EDIT_LEFT_OUT = 8, EDIT_ADDED = 10, EDIT_OTHER = 12 };

/* Edit distance from the typed word a[n] to b[m], both shorter than a name. */
static int edits(const char *a, int n, const char *b, int m)
{
    enum { SIZE = sizeof(((struct near *)0)->name) };
    int row[3][SIZE]; /* rows for i, i - 1 and i - 2 letters of a */

    for (int i = 0; i <= n; i++) {
        int *now = row[i % 3], *one = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                now[j] = i * EDIT_ADDED + j * EDIT_LEFT_OUT;
                continue;
            }
            now[j] = least(least(one[j] + EDIT_ADDED, now[j - 1] + EDIT_LEFT_OUT),
                           one[j - 1] + (alike(a[i - 1], b[j - 1]) ? 0 : EDIT_OTHER));
            if (i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]))
                now[j] = least(now[j], two[j - 2] + EDIT_SWAP);
        }
    }
    return row[n % 3][m];
}

void near_try(void *near, const char *name)
{
    struct near *n = near;
    size_t a = strlen(n->word), b = strlen(name);

    if (a == 0 || a >= sizeof(n->name) || b >= sizeof(n->name))
        return;
    int far = edits(n->word, (int)a, name, (int)b);
    if (a >= 3 && b > a && !strncasecmp(n->word, name, a))
        far = least(far, EDIT_SWAP / 2); /* the word is its beginning */
    if (far > EDIT_OTHER * (int)((a + 1) / 3) || (*n->name && far >= n->far))
        return;
    n->far = far;
    snprintf(n->name, sizeof(n->name), "%s", name);
}

const char *near_text(struct near *n)
{
    if (*n->name)
        snprintf(n->text, sizeof(n->text), " (did you mean \"%s\"?)", n->name);
    return n->text;
}
