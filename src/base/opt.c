/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"

enum { FIRST = 0x400, WIDTH = 79, NAMES_AT = 2, TEXT_AT = 29 };

const char *opt_version = "";
static const struct opt help_rows[] = {
    {"help", '?', "GROUP", "print this help, the options of GROUP, or of all groups",
     .kind = OPT_IS_HELP, .flags = OPTION_ARG_OPTIONAL},
    {"usage", 0, NULL, "print a short usage message", .kind = OPT_IS_HELP},
    {0},
};
static const struct opt version_rows[] = {
    {"version", 'V', NULL, "print the version", .kind = OPT_IS_HELP}, {0}};

/* Rows of the line, then those of each set. */
struct group {
    struct reading *of;
    const struct opt *rows;
    void *into;
    int first;   /* key of its first row */
    bool common; /* belongs to every line */
    int (*check)(void *into, struct err *err);
};

struct reading {
    const struct opt_line *line;
    struct group group[2 * OPT_SETS + 1];
    int groups;
    bool *answered; /* set by --help instead of leaving the program; NULL: leave it */
    /* If set, options are passed to it and stored nowhere. */
    void (*take)(void *to, const char *name, const char *value);
    void *to;
};

static bool is_row(const struct opt *o)
{
    return o->name || o->help;
}

static int key_of(const struct group *g, int i)
{
    const struct opt *o = &g->rows[i];

    return o->flags & OPTION_ALIAS ? key_of(g, i - 1)
           : !o->name              ? 0
           : o->letter             ? o->letter
                                   : g->first + i;
}

/* Convert a group's options for argp; NULL if it has none, because glibc leaks an empty table. */
static const struct argp_option *argp_options(struct argp_option out[OPT_ROWS + 1],
                                              const struct group *g)
{
    int n = 0;

    for (; g->rows && is_row(&g->rows[n]); n++) {
        const struct opt *o = &g->rows[n];
        assert(n < OPT_ROWS);
        out[n] = (struct argp_option){o->name, key_of(g, n), o->arg, o->flags, o->help, 0};
    }
    out[n] = (struct argp_option){0};
    return n ? out : NULL;
}

/* Index of word in names (NULL-terminated), or -1 with "x" is neither a nor b, is none of ... */
static int word_of(const char *const *names, const char *word, struct err *err)
{
    char all[200] = "";
    int n = 0;

    for (; names[n]; n++)
        if (!strcmp(names[n], word))
            return n;
    for (int i = 0; n > 2 && i < n; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "", names[i]);
    if (n == 2)
        return err_usage(err, "\"%s\" is neither %s nor %s", word, names[0], names[1]);
    return err_usage(err, "\"%s\" is none of %s", word, all);
}

static int fill(const struct opt *o, void *into, char *arg, struct err *err)
{
    void *at = (char *)into + o->at, *count = (char *)into + o->count;
    uint64_t u64;

    switch (o->kind) {
    case OPT_IS_FLAG:
    case OPT_IS_UNSET:
        *(bool *)at = o->kind == OPT_IS_FLAG;
        return 0;
    case OPT_IS_TEXT:
        *(const char **)at = arg;
        return 0;
    case OPT_IS_LIST:
        MEM_PUSH(*(const char ***)at, *(int *)count) = arg;
        return 0;
    case OPT_IS_INT:
        return units_int(at, arg, (int)o->lo, (int)o->hi, err);
    case OPT_IS_U64:
        if (units_u64(&u64, arg, err) < 0)
            return -1;
        *(unsigned long long *)at = u64;
        return 0;
    case OPT_IS_BYTES:
        return units_bytes(at, arg, err);
    case OPT_IS_SECONDS:
        return units_seconds(at, arg, err);
    case OPT_IS_SHARE:
        return units_share(at, arg, err);
    case OPT_IS_REAL:
        return units_double(at, arg, o->lo, o->hi, err);
    case OPT_IS_WORD:
        *(int *)at = word_of(o->words, arg, err);
        return *(int *)at < 0 ? -1 : 0;
    case OPT_IS_CALL:
        return o->call(into, arg, err);
    case OPT_IS_NAMED:
        return o->named(into, o->name, arg, err);
    case OPT_IS_HELP: /* answer() */
        break;
    }
    return 0;
}

/* --- help --- */

/* Print text from this column on; further lines begin at `indent`.  Lines of the text that begin with
 * a blank stay as they are. */
static void put_text(FILE *out, const char *text, int column, int indent)
{
    while (*text) {
        size_t gap = strspn(text, " "), len = strcspn(text + gap, " \n");
        bool kept = gap && (column == 0);
        if (!kept && column > indent && column + (int)(gap + len) > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            gap = 0;
            text += strspn(text, " ");
        }
        fprintf(out, "%.*s", (int)(gap + len), text);
        column += (int)(gap + len);
        text += gap + len;
        for (; kept && *text && *text != '\n'; text++)
            fputc(*text, out);
        if (*text == '\n') {
            fprintf(out, "\n%*s", text[1] ? indent : 0, "");
            column = indent;
            text++;
        }
    }
    fputc('\n', out);
}

static bool is_in(const struct opt *o, const char *group)
{
    return group && o->group ? !strcmp(o->group, group) : group == o->group;
}

/* "-o, --output=FILE" and the names of its aliases. */
static void put_option(FILE *out, const struct opt *o)
{
    bool may = o->flags & OPTION_ARG_OPTIONAL;
    char letter[8] = "    ";

    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    char *names = mem_printf("%*s%s--%s%s%s%s", NAMES_AT, "", letter, o->name,
                             !o->arg ? ""
                             : may   ? "[="
                                     : "=",
                             o->arg ? o->arg : "", may ? "]" : "");
    for (const struct opt *a = o + 1; is_row(a) && a->flags & OPTION_ALIAS; a++)
        names = mem_append(names, ", --%s", a->name);
    int width = (int)strlen(names);
    fputs(names, out);
    if (width > TEXT_AT - 2)
        fprintf(out, "\n%*s", TEXT_AT, "");
    else
        fprintf(out, "%*s", TEXT_AT - width, "");
    put_text(out, o->help ? o->help : "", TEXT_AT, TEXT_AT);
    free(names);
}

static bool is_shown(const struct opt *o)
{
    return !(o->flags & (OPTION_HIDDEN | OPTION_ALIAS));
}

/* Print the rows of a group, or those of every command. */
static void put_rows(FILE *out, const struct reading *r, const char *group, bool common)
{
    for (int g = 0; g < r->groups; g++)
        for (const struct opt *o = r->group[g].rows; o && is_row(o); o++) {
            if (r->group[g].common != common || !is_in(o, group) || !is_shown(o))
                continue;
            if (o->name)
                put_option(out, o);
            else
                fprintf(out, "\n%c%s:\n", toupper((unsigned char)o->help[0]), o->help + 1);
        }
}

struct help_group {
    const char *name;
    char *about; /* its headlines; owned */
    int options;
};

/* Returns the number of groups; *own: of options without a group. */
static int groups_of(struct help_group **out, int *own, const struct reading *r)
{
    int n = 0, k;

    *out = NULL;
    *own = 0;
    for (int g = 0; g < r->groups; g++)
        for (const struct opt *o = r->group[g].rows; o && is_row(o); o++) {
            if (r->group[g].common || !is_shown(o))
                continue;
            if (!o->group) {
                *own += o->name != NULL;
                continue;
            }
            for (k = 0; k < n && strcmp((*out)[k].name, o->group) != 0; k++)
                ;
            if (k == n)
                MEM_PUSH(*out, n) = (struct help_group){o->group, mem_strdup(""), 0};
            struct help_group *h = &(*out)[k];
            h->options += o->name != NULL;
            if (!o->name)
                h->about = mem_append(h->about, "%s%s", *h->about ? "; " : "", o->help);
        }
    return n;
}

static void groups_free(struct help_group *h, int n)
{
    for (int i = 0; i < n; i++)
        free(h[i].about);
    free(h);
}

static void put_head(FILE *out, const struct reading *r, const char *program)
{
    const char *doc = r->line->doc ? r->line->doc : "", *more = strchr(doc, '\v');

    for (const char *form = r->line->usage ? r->line->usage : ""; form;) {
        size_t len = strcspn(form, "\n");
        fprintf(out, "%s %s [OPTION...]%s%.*s\n",
                form == r->line->usage || !*form ? "Usage:" : "  or: ", program, len ? " " : "",
                (int)len, form);
        form = form[len] ? form + len + 1 : NULL;
    }
    char *purpose = mem_strndup(doc, more ? (size_t)(more - doc) : strlen(doc));
    put_text(out, purpose, 0, 0);
    free(purpose);
    if (more && more[1]) {
        fputc('\n', out);
        put_text(out, more + 1, 0, 0);
    }
    fputc('\n', out);
}

static void put_tail(FILE *out, const struct reading *r)
{
    if (r->line->examples)
        fputs("\nExamples:\n", out);
    for (const struct opt_example *e = r->line->examples; e && e->line; e++)
        fprintf(out, "  %s:\n    %s\n", e->does, e->line);
    if (r->line->exits) {
        fputc('\n', out);
        put_text(out, r->line->exits, 0, 0);
    }
}

/* --help: own options and the names of groups; all: --help=all. */
static void put_help(FILE *out, const struct reading *r, const char *program, bool all)
{
    struct help_group *h;
    int own, n = groups_of(&h, &own, r), sum = own;

    put_head(out, r, program);
    put_rows(out, r, NULL, false);
    for (int i = 0; i < n; i++)
        sum += h[i].options;
    for (int i = 0; all && i < n; i++)
        put_rows(out, r, h[i].name, false);
    if (!all && n)
        fputs("\nMore options:\n", out);
    for (int i = 0; !all && i < n; i++) {
        fprintf(out, "  --help=%-*s", TEXT_AT - 9, h[i].name);
        char *about =
            mem_printf("%s (%d option%s)", h[i].about, h[i].options, h[i].options == 1 ? "" : "s");
        put_text(out, about, TEXT_AT, TEXT_AT);
        free(about);
    }
    if (!all && n)
        fprintf(out, "  --help=%-*s%d options\n", TEXT_AT - 9, "all", sum);
    fputs(own || n ? "\nEvery command:\n" : "Every command:\n", out);
    put_rows(out, r, NULL, true);
    put_tail(out, r);
    groups_free(h, n);
}

/* Write a cell of --help=tsv on one line. */
static void put_cell(FILE *out, const char *text)
{
    fputc('\t', out);
    for (; text && *text; text++)
        if (!strncmp(text, "\\\n", 2)) /* a broken command line is one line here */
            text += 1 + strspn(text + 2, " ");
        else if (*text == '\n')
            fputc(' ', out), text += strspn(text + 1, " ");
        else
            fputc(*text == '\t' ? ' ' : *text, out);
}

/* Rows for programs: usage, notes, option, alias, headline, example and exit, a line each. */
static void put_tsv(FILE *out, const struct reading *r)
{
    for (const char *form = r->line->usage ? r->line->usage : ""; form;) {
        size_t len = strcspn(form, "\n");
        fprintf(out, "usage\t%.*s\n", (int)len, form);
        form = form[len] ? form + len + 1 : NULL;
    }
    const char *more = strchr(r->line->doc ? r->line->doc : "", '\v');
    fputs("notes", out);
    put_cell(out, more ? more + 1 : "");
    for (int g = 0; g < r->groups; g++)
        for (const struct opt *o = r->group[g].rows; o && is_row(o); o++) {
            char letter[2] = {(char)o->letter, '\0'};
            if (o->flags & OPTION_HIDDEN)
                continue;
            fputs(!o->name ? "\nheadline" : o->flags & OPTION_ALIAS ? "\nalias" : "\noption", out);
            put_cell(out, r->group[g].common ? "every" : o->group ? o->group : "own");
            put_cell(out, o->name);
            put_cell(out, letter);
            put_cell(out, o->arg);
            put_cell(out, o->flags & OPTION_ARG_OPTIONAL ? "optional" : "");
            put_cell(out, o->help);
        }
    for (const struct opt_example *e = r->line->examples; e && e->line; e++) {
        fputs(e->elsewhere ? "\nexample\telsewhere" : "\nexample\there", out);
        put_cell(out, e->does);
        put_cell(out, e->line);
    }
    fputs("\nexit", out);
    put_cell(out, r->line->exits);
    fputc('\n', out);
}

/* Refuse a group that the command has not. */
static error_t no_group(const struct help_group *h, int n, const char *name,
                        struct argp_state *state)
{
    char *known = mem_strdup("");

    for (int i = 0; i < n; i++)
        known = mem_append(known, "%s, ", h[i].name);
    argp_error(state, "--help: no group \"%s\"; known are %sall", name, known);
    free(known);
    return EINVAL;
}

static error_t help(const struct reading *r, const char *name, struct argp_state *state)
{
    struct help_group *h;
    int own, n = groups_of(&h, &own, r), k = 0;
    bool found = true;

    while (name && k < n && strcmp(h[k].name, name) != 0)
        k++;
    if (!name || !strcmp(name, "all")) {
        put_help(stdout, r, state->name, name != NULL);
    } else if (!strcmp(name, "tsv")) {
        put_tsv(stdout, r);
    } else if (k < n) {
        printf("%s: options of the group %s\n", state->name, name);
        put_rows(stdout, r, name, false);
    } else {
        found = false;
    }
    error_t rc = found ? 0 : no_group(h, n, name, state);
    groups_free(h, n);
    return rc;
}

static error_t answer(const struct reading *r, const struct opt *o, const char *group,
                      struct argp_state *state)
{
    error_t rc = 0;

    if (r->answered)
        *r->answered = true;
    if (state->flags & ARGP_NO_ERRS)
        return 0;
    if (o->letter == 'V')
        puts(opt_version);
    else if (o->letter)
        rc = help(r, group, state);
    else
        argp_state_help(state, stdout, ARGP_HELP_USAGE);
    if (rc == 0 && !r->answered)
        exit(EXIT_GOOD);
    return rc;
}

static error_t option(const struct group *g, int key, char *arg, struct argp_state *state)
{
    struct err err = {0, ""};
    int i = 0;

    while (g->rows && is_row(&g->rows[i]) && (!g->rows[i].name || key != key_of(g, i)))
        i++;
    if (!g->rows || !is_row(&g->rows[i]))
        return ARGP_ERR_UNKNOWN;
    const struct opt *o = &g->rows[i];
    if (g->of->take) {
        if (!g->common)
            g->of->take(g->of->to, o->name, arg);
        return 0;
    }
    if (o->kind == OPT_IS_HELP)
        return answer(g->of, o, arg, state);
    if (fill(o, g->into, arg, &err) < 0) {
        if (o->kind == OPT_IS_NAMED)
            argp_error(state, "%s", err.text);
        else
            argp_error(state, "--%s: %s", o->name, err.text);
        return EINVAL;
    }
    return 0;
}

/* Refuse a surplus word. */
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

/* Handle a word that is no option. */
static error_t word(const struct opt *rows, void *into, char *arg, struct argp_state *state)
{
    unsigned n = 0, i = state->arg_num;
    struct err err = {0, ""};

    while (rows && rows[n].name)
        n++;
    if (n > 0 && i >= n && rows[n - 1].repeats)
        i = n - 1;
    if (i >= n)
        return refuse(rows, into, arg, state);
    if (fill(&rows[i], into, arg, &err) == 0)
        return 0;
    argp_error(state, "%s", err.text);
    return EINVAL;
}

static error_t end(const struct group *g, bool own, struct argp_state *state)
{
    const struct opt *words = own ? g->of->line->words : NULL;
    struct err err = {0, ""};
    unsigned n = 0;

    while (words && words[n].name && n < state->arg_num)
        n++;
    if (words && words[n].name && words[n].help)
        argp_error(state, "%s", words[n].help);
    else if (g->check && g->check(g->into, &err) < 0)
        argp_error(state, "%s", err.text);
    else
        return 0;
    return EINVAL;
}

/* --- unknown options --- */

/* Row of an option as typed, or the first that begins so; NULL: none. */
static const struct opt *row_of(const struct reading *r, const char *name, size_t len)
{
    for (int g = 0; g < r->groups; g++)
        for (const struct opt *o = r->group[g].rows; o && is_row(o); o++)
            if (o->name && !strncmp(o->name, name, len))
                return o;
    return NULL;
}

static const struct opt *row_of_letter(const struct reading *r, char letter)
{
    for (int g = 0; g < r->groups; g++)
        for (const struct opt *o = r->group[g].rows; o && is_row(o); o++)
            if (o->letter == letter)
                return o;
    return NULL;
}

static bool takes_next(const struct reading *r, const char *word)
{
    const struct opt *o = NULL;

    if (!strncmp(word, "--", 2))
        o = strchr(word, '=') ? NULL : row_of(r, word + 2, strlen(word + 2));
    else if (word[0] == '-' && word[1] && !word[2])
        o = row_of_letter(r, word[1]);
    return o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
}

/* Suggest the option that was meant: getopt_long() only reports an unknown one. */
static error_t suggest(const struct reading *r, struct argp_state *state)
{
    for (int i = 1; i < state->argc && strcmp(state->argv[i], "--") != 0; i++) {
        const char *word = state->argv[i];
        char name[64];
        struct near near = {.word = name};
        size_t len = strncmp(word, "--", 2) ? 0 : strcspn(word + 2, "=");
        if (takes_next(r, word))
            i++;
        if (len == 0 || len >= sizeof(name) || row_of(r, word + 2, len))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len, word + 2);
        for (int g = 0; g < r->groups; g++)
            for (const struct opt *o = r->group[g].rows; o && is_row(o); o++)
                near_try(&near, o->name ? o->name : "");
        if (!*near.name)
            continue;
        state->name = state->argv[0]; /* argp sets it only after this */
        argp_error(state, "unrecognized option '--%s' (did you mean --%s?)", name, near.name);
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const struct group *g = state->input;
    struct reading *r = g->of;
    bool own = g == r->group;

    switch (key) {
    case ARGP_KEY_INIT:
        for (int i = 1; own && i < r->groups; i++)
            state->child_inputs[i - 1] = &r->group[i];
        return own ? suggest(r, state) : 0;
    case ARGP_KEY_ARG:
        return r->take ? 0 : word(r->line->words, g->into, arg, state);
    case ARGP_KEY_END:
        return r->take ? 0 : end(g, own, state);
    default:
        return option(g, key, arg, state);
    }
}

/* Address in args; NULL if only names are read. */
static void *at(void *args, size_t offset)
{
    return args ? (char *)args + offset : NULL;
}

static void open_set(struct reading *r, const struct opt_set *s, void *args)
{
    assert(r->groups <= 2 * OPT_SETS);
    r->group[r->groups] = (struct group){.of = r,
                                         .rows = s->make ? s->make() : s->rows,
                                         .into = s->into ? s->into : at(args, s->at),
                                         .first = FIRST + r->groups * 2 * OPT_ROWS,
                                         .check = s->check};
    r->groups++;
}

static bool has_row(const struct reading *r, const char *name)
{
    /* The final NUL is compared too, so the whole name must match. */
    return row_of(r, name, strlen(name) + 1) != NULL;
}

static void open_common(struct reading *r, const struct opt_set *s)
{
    open_set(r, s, NULL);
    r->group[r->groups - 1].common = true;
}

static void open_groups(struct reading *r, const struct opt_line *l, void *args)
{
    r->line = l;
    r->answered = l->returns ? at(args, l->answered) : NULL;
    r->group[r->groups++] = (struct group){
        .of = r, .rows = l->options, .into = args, .first = FIRST, .check = l->check};
    for (const struct opt_set *s = l->set; s->rows || s->make; s++)
        open_set(r, s, args);
    for (const struct opt_set *const *s = l->more ? l->more() : NULL; s && *s; s++)
        open_set(r, *s, args);
    open_common(r, &(struct opt_set){.rows = help_rows});
    if (l->returns)
        open_common(r, &(struct opt_set){.rows = version_rows});
    for (const struct opt_set *s = log_options; s->rows; s++)
        if (!has_row(r, s->rows[0].name))
            open_common(r, s);
}

/* Run argp.  Its tables are on the heap for the time of this call. */
static error_t run(struct reading *r, int argc, char **argv, unsigned flags)
{
    struct argp_option(*options)[OPT_ROWS + 1] = mem_calloc((size_t)r->groups, sizeof(*options));
    struct argp argp[2 * OPT_SETS + 1];
    struct argp_child child[2 * OPT_SETS + 1] = {{0}};

    for (int i = 0; i < r->groups; i++) {
        argp[i] = (struct argp){
            argp_options(options[i], &r->group[i]), parse, NULL, NULL, NULL, NULL, NULL};
        if (i > 0)
            child[i - 1] = (struct argp_child){&argp[i], 0, NULL, 0};
    }
    argp[0].args_doc = r->line->usage;
    argp[0].children = child;
    error_t rc = argp_parse(&argp[0], argc, argv, flags | ARGP_NO_HELP, NULL, &r->group[0]);
    free(options);
    return rc;
}

int opt_parse(const struct opt_line *l, int argc, char **argv, enum opt_how how, void *args)
{
    struct reading r = {.groups = 0};

    open_groups(&r, l, args);
    error_t rc = run(&r, argc, argv,
                     how == OPT_EXITS     ? 0
                     : how == OPT_RETURNS ? ARGP_NO_EXIT
                                          : ARGP_SILENT);
    if (rc == ENOMEM)
        mem_ended();
    return rc ? -1 : 0;
}

void opt_given(const struct opt_line *l, int argc, char **argv,
               void (*take)(void *to, const char *name, const char *value), void *to)
{
    struct reading r = {.take = take, .to = to};

    open_groups(&r, l, NULL);
    run(&r, argc, argv, ARGP_SILENT);
}

void opt_each(const struct opt_line *l, void (*take)(void *to, const struct opt *row), void *to)
{
    struct reading r = {.groups = 0};

    open_groups(&r, l, NULL);
    for (int g = 0; g < r.groups; g++)
        for (const struct opt *o = r.group[g].rows; o && is_row(o); o++)
            if (o->name && !(o->flags & OPTION_HIDDEN))
                take(to, o);
}

/* Option searched for, and destination of its words. */
struct again {
    const char *name;
    struct words *words;
};

static void take_again(void *to, const char *name, const char *value)
{
    const struct again *a = to;

    if (!strcmp(name, a->name))
        words_add(a->words, "--%s%s%s", name, value ? "=" : "", value ? value : "");
}

void opt_again(const struct opt_line *l, int argc, char **argv, const struct opt *rows,
               struct words *to)
{
    for (; is_row(rows); rows++)
        if (rows->name)
            opt_given(l, argc, argv, take_again, &(struct again){rows->name, to});
}
