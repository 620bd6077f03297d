/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "base/units.h"

enum { FIRST = 0x400 };

const struct opt opt_none[] = {{0}};

void opt_argp(struct argp_option out[OPT_ROWS + 1], const struct opt *rows)
{
    int n = 0;

    for (; rows && rows[n].name; n++) {
        const struct opt *o = &rows[n];
        int key = o->letter ? o->letter : FIRST + n;
        assert(n < OPT_ROWS);
        out[n] = (struct argp_option){o->name, key, o->arg, o->flags, o->help, o->group};
        if (o->flags & OPTION_ALIAS)
            out[n].key = out[n - 1].key;
    }
    out[n] = (struct argp_option){0};
}

static int take(const struct opt *o, void *into, char *arg, struct err *err)
{
    void *at = (char *)into + o->at, *count = (char *)into + o->count;

    switch (o->kind) {
    case OPT_IS_FLAG:
        *(bool *)at = true;
        return 0;
    case OPT_IS_TEXT:
        *(const char **)at = arg;
        return 0;
    case OPT_IS_LIST:
        MEM_PUSH(*(const char ***)at, *(int *)count) = arg;
        return 0;
    case OPT_IS_INT:
        return units_int(at, arg, (int)o->lo, (int)o->hi, err);
    case OPT_IS_BYTES:
        return units_bytes(at, arg, err);
    case OPT_IS_SECONDS:
        return units_seconds(at, arg, err);
    case OPT_IS_SHARE:
        return units_share(at, arg, err);
    case OPT_IS_REAL:
        return units_double(at, arg, o->lo, o->hi, err);
    case OPT_IS_CALL:
        return o->call(into, arg, err);
    }
    return 0;
}

error_t opt_parse(const struct opt *rows, void *into, int key, char *arg, struct argp_state *state)
{
    struct err err = {0, ""};
    int i = 0;

    while (rows && rows[i].name && key != (rows[i].letter ? rows[i].letter : FIRST + i))
        i++;
    if (!rows || !rows[i].name)
        return ARGP_ERR_UNKNOWN;
    if (take(&rows[i], into, arg, &err) == 0)
        return 0;
    argp_error(state, "--%s: %s", rows[i].name, err.text);
    return EINVAL;
}

static error_t refuse(const struct opt *rows, const void *into, const char *arg,
                      struct argp_state *state)
{
    bool one = rows && rows[0].name && !rows[1].name && rows[0].kind == OPT_IS_TEXT;

    const void *before = (const char *)into + (one ? rows[0].at : 0);

    if (one)
        argp_error(state, "one %s at a time: \"%s\" after \"%s\"", rows[0].name, arg,
                   *(const char *const *)before);
    else
        argp_error(state, "what is \"%s\"?", arg);
    return EINVAL;
}

error_t opt_words(const struct opt *rows, void *into, int key, char *arg, struct argp_state *state)
{
    struct err err = {0, ""};
    unsigned n = 0, i = state->arg_num;

    while (rows && rows[n].name)
        n++;
    if (key == ARGP_KEY_END && i < n && rows[i].help) {
        argp_error(state, "%s", rows[i].help);
        return EINVAL;
    }
    if (key != ARGP_KEY_ARG)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    if (n > 0 && i >= n && rows[n - 1].repeats)
        i = n - 1;
    if (i >= n)
        return refuse(rows, into, arg, state);
    if (take(&rows[i], into, arg, &err) == 0)
        return 0;
    argp_error(state, "%s", err.text);
    return EINVAL;
}

void opt_error(struct argp_state *state, const struct argp_option *options, int key,
               const struct err *err)
{
    for (const struct argp_option *o = options; o->name || o->doc; o++)
        if (o->key == key && o->name) {
            argp_error(state, "--%s: %s", o->name, err->text);
            return; /* only under ARGP_NO_EXIT */
        }
    argp_error(state, "%s", err->text);
}
