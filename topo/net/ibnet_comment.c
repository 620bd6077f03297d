/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_comment.c - what only the comments of ibnetdiscover's lines tell: "name" lid 647 lmc 0
 * 4xNDR.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/net/ibnet_text.h"

enum { SHOWN = 60, LID_MAX = 65535 };

int ibnet_bad(struct ibnet_text *x, int line, const char *fmt, ...)
{
    char text[384];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_data(x->err, "%s:%d: %s", x->path, line, text);
}

/* A decimal number of min..max; *s moves behind it. */
int ibnet_number(struct ibnet_text *x, const char **s, const char *what, long min, long max,
                 int *out)
{
    char *end;
    long v = isdigit((unsigned char)**s) ? strtol(*s, &end, 10) : -1;

    if (v < min || v > max)
        return BAD(x, "%s \"%.*s\" is not a number of %ld..%ld", what,
                   (int)strcspn(*s, " \t]\")") > SHOWN ? SHOWN : (int)strcspn(*s, " \t]\")"), *s,
                   min, max);
    *out = (int)v;
    *s = end;
    return 0;
}

/* 4xNDR; what a newer speed is called is kept, its rate is not known. */
static int rate(struct ibnet_text *x, const char *word, int len, struct ibnet_end *e)
{
    char *name;
    long width = strtol(word, &name, 10);
    int n = (int)(word + len - name) - 1;

    if (*name != 'x' || n < 1 || width > 12 || !net_width((int)width))
        return BAD(x, "\"%.*s\" is no width and speed of a link", len > SHOWN ? SHOWN : len, word);
    for (int i = 1; i <= n; i++) /* "4x??", "4xundefined (17)": not told */
        if (!isupper((unsigned char)name[i]) && !isdigit((unsigned char)name[i]))
            return 0;
    if (n >= (int)sizeof(e->speed))
        return 0;
    e->width = (int)width;
    snprintf(e->speed, sizeof(e->speed), "%.*s", n, name + 1);
    return 0;
}

/* Words of a comment outside its name: lids in order, and the rate. */
static int words(struct ibnet_text *x, const char *s, const char *stop, int lid[2], int *lids,
                 struct ibnet_end *e)
{
    for (s = blanks(s); s < stop; s = blanks(s)) {
        int len = (int)strcspn(s, " \t\"");
        if (s + len > stop)
            len = (int)(stop - s);
        if (len == 3 && !strncmp(s, "lid", 3)) {
            s = blanks(s + 3);
            if (ibnet_number(x, &s, "lid", 0, LID_MAX, &lid[*lids < 2 ? (*lids)++ : 1]) < 0)
                return -1;
        } else if ((len == 3 && !strncmp(s, "lmc", 3)) || (len == 4 && !strncmp(s, "slot", 4))) {
            int ignored;
            s = blanks(s + len);
            if (ibnet_number(x, &s, len == 3 ? "lmc" : "slot", 0, LID_MAX, &ignored) < 0)
                return -1;
        } else if (isdigit((unsigned char)*s)) {
            if (rate(x, s, len, e) < 0)
                return -1;
            s += len;
        } else {
            s += len ? len : 1;
        }
    }
    return 0;
}

int ibnet_comment(struct ibnet_text *x, const char *s, bool at_switch, struct ibnet_end *e)
{
    const char *name = strchr(s, '"'), *after = name ? strrchr(s, '"') : NULL;
    int lid[2] = {0, 0}, lids = 0;

    if (name && after == name)
        return BAD(x, "a name without its closing quote");
    if (words(x, s, name ? name : s + strlen(s), lid, &lids, e) < 0 ||
        (name && words(x, after + 1, s + strlen(s), lid, &lids, e) < 0))
        return -1;
    e->lid = at_switch ? 0 : lid[0];
    e->peer_lid = at_switch ? lid[0] : lid[1];
    return 0;
}
