/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/command.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/input.h"
#include "cost/matrix.h"

struct parsing {
    const struct command *command;
    void *args;
};

static void *at(const struct parsing *p, size_t offset)
{
    return (char *)p->args + offset;
}

static void hand_on(const struct parsing *p, struct argp_state *state)
{
    const struct command *c = p->command;
    int n = 0;

    if (c->takes) {
        struct input_args *in = at(p, c->input);
        in->takes = c->takes;
        state->child_inputs[n++] = in;
    }
    for (int i = 0; c->child[i].child.argp; i++)
        state->child_inputs[n++] = at(p, c->child[i].at);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const struct parsing *p = state->input;
    const struct command *c = p->command;
    struct err err = {0, ""};
    error_t rc = 0;

    switch (key) {
    case ARGP_KEY_INIT:
        hand_on(p, state);
        return 0;
    case ARGP_KEY_ARG:
        return c->words ? opt_words(c->words, p->args, key, arg, state) : ARGP_ERR_UNKNOWN;
    case ARGP_KEY_END:
        rc = opt_words(c->words, p->args, key, arg, state);
        if (rc == 0 && c->check && c->check(p->args, &err) < 0)
            argp_error(state, "%s", err.text);
        return rc;
    default:
        return opt_parse(c->options, p->args, key, arg, state);
    }
}

void command_parse(const struct command *c, int argc, char **argv, void *args)
{
    struct argp_option options[OPT_ROWS + 1];
    struct argp_child children[COMMAND_CHILDREN + 2] = {{0}};
    struct parsing p = {c, args};
    /* glibc leaks a table of no options. */
    const struct argp argp = {
        c->options ? options : NULL, parse, c->usage, c->doc, children, NULL, NULL};
    int n = 0;

    opt_argp(options, c->options);
    if (c->takes)
        children[n++] = input_child(c->takes);
    for (int i = 0; c->child[i].child.argp; i++)
        children[n++] = c->child[i].child;
    if (argp_parse(&argp, argc, argv, 0, NULL, &p) == ENOMEM)
        mem_ended();
}

/* A group of options whose keys are looked up only. */
struct hearing {
    const struct argp_option *options;
    void (*take)(void *to, const char *name, const char *value);
    void *to;
    const struct hearing *below; /* of the children, in their order */
};

static error_t hear(int key, char *arg, struct argp_state *state)
{
    const struct hearing *h = state->input;
    const struct argp_option *o = h->options;

    if (key == ARGP_KEY_INIT)
        for (int i = 0; h->below && h->below[i].options; i++)
            state->child_inputs[i] = (void *)&h->below[i];
    while ((o->name || o->doc) && (!o->name || o->key != key || o->flags & OPTION_ALIAS))
        o++; /* a row without a name is a headline */
    if (!o->name)
        return ARGP_ERR_UNKNOWN;
    h->take(h->to, o->name, arg);
    return 0;
}

void command_given(const struct command *c, int argc, char **argv,
                   void (*take)(void *to, const char *name, const char *value), void *to)
{
    struct argp_option options[OPT_ROWS + 1];
    struct argp argps[COMMAND_CHILDREN];
    struct argp_child children[COMMAND_CHILDREN + 1] = {{0}};
    struct hearing below[COMMAND_CHILDREN + 1] = {{0}};
    struct hearing own = {options, take, to, below};
    const struct argp argp = {options, hear, NULL, NULL, children, NULL, NULL};

    opt_argp(options, c->options);
    for (int i = 0; c->child[i].child.argp; i++) {
        const struct argp_option *theirs = c->child[i].child.argp->options;
        argps[i] = (struct argp){theirs, hear, NULL, NULL, NULL, NULL, NULL};
        children[i] = (struct argp_child){&argps[i], 0, NULL, 0};
        below[i] = (struct hearing){theirs, take, to, NULL};
    }
    argp_parse(&argp, argc, argv, ARGP_SILENT, NULL, &own);
}

int cmd_verdict(const struct matrix *m)
{
    return m->exceptions ? EXIT_BELOW : EXIT_GOOD;
}

int cmd_fail(const char *name, const struct err *err)
{
    char program[64];

    snprintf(program, sizeof(program), "railgauge %s", name);
    log_setup(program, LOG_INFO);
    log_error("%s", err->text);
    return err->code;
}
