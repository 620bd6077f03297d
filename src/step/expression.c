/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/expression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *text, *at;
    const struct expression_names *names;
    int depth;
};

/* Not isalpha(): the grammar does not change with the locale. */
static int letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t name_length(const char *s)
{
    size_t n = 0;

    if (letter(s[0]))
        for (n = 1; letter(s[n]) || digit(s[n]) || s[n] == '_'; n++)
            ;
    return n;
}

int expression_is_name(const char *text)
{
    size_t n = name_length(text);

    return n > 0 && n < EXPRESSION_NAME && text[n] == '\0';
}

static int wrong(const struct reader *r, struct err *err, const char *why)
{
    return err_data(err, "\"%s\": %s at position %d", r->text, why, (int)(r->at - r->text));
}

static void skip(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static int take_name(struct reader *r, char out[EXPRESSION_NAME], struct err *err)
{
    size_t n = name_length(r->at);

    if (n == 0 || n >= EXPRESSION_NAME)
        return wrong(r, err, "no name of 1 to 63 letters, digits and \"_\"");
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n;
    return 0;
}

static int quantity(struct reader *r, double *out, struct err *err)
{
    char of[EXPRESSION_NAME], what[EXPRESSION_NAME];
    struct err why;

    if (take_name(r, of, err) < 0)
        return -1;
    if (*r->at != '.')
        return wrong(r, err, "no \".\" after the name");
    r->at++;
    if (take_name(r, what, err) < 0)
        return -1;
    if (r->names->find(r->names->ctx, of, what, out, &why) < 0)
        return err_code(err, why.code, "\"%s\": %s", r->text, why.text);
    return 0;
}

static int sum(struct reader *r, double *out, struct err *err);

static int factor(struct reader *r, double *out, struct err *err)
{
    char *end;

    skip(r);
    if (letter(*r->at))
        return quantity(r, out, err);
    if (*r->at == '(') {
        if (++r->depth > EXPRESSION_DEPTH)
            return wrong(r, err, "brackets are too deep");
        r->at++;
        if (sum(r, out, err) < 0)
            return -1;
        if (*r->at != ')')
            return wrong(r, err, "no \")\"");
        r->at++;
        r->depth--;
        return 0;
    }
    if (!digit(*r->at))
        return wrong(r, err, "no number, no NAME.NAME and no bracket");
    *out = strtod(r->at, &end);
    if (!isfinite(*out) || r->at[1] == 'x' || r->at[1] == 'X')
        return wrong(r, err, "no finite decimal number");
    r->at = end;
    return 0;
}

static int product(struct reader *r, double *out, struct err *err)
{
    double next;

    if (factor(r, out, err) < 0)
        return -1;
    for (skip(r); *r->at == '*' || *r->at == '/'; skip(r)) {
        char op = *r->at++;
        if (factor(r, &next, err) < 0)
            return -1;
        *out = op == '*' ? *out * next : *out / next;
    }
    return 0;
}

static int sum(struct reader *r, double *out, struct err *err)
{
    double next;

    if (product(r, out, err) < 0)
        return -1;
    for (skip(r); *r->at == '+' || *r->at == '-'; skip(r)) {
        char op = *r->at++;
        if (product(r, &next, err) < 0)
            return -1;
        *out = op == '+' ? *out + next : *out - next;
    }
    return 0;
}

int expression_value(double *out, const char *text, const struct expression_names *names,
                     struct err *err)
{
    struct reader r = {text, text, names, 0};

    if (sum(&r, out, err) < 0)
        return -1;
    return *r.at ? wrong(&r, err, "something is left") : 0;
}
