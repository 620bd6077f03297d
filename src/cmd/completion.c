/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.c - railgauge completion: a script with which bash, zsh or fish complete commands,
 * options and, if a row knows the names, values.  Generated from the same tables with which the
 * commands are parsed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/command.h"

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH };
static const char *const shell_name[] = {"bash", "zsh", "fish", NULL};

struct args {
    int shell; /* enum shell */
};

/* A program and its function in the script. */
struct program {
    const char *name, *function;
};

static void each_shell(name_taker *take, void *to)
{
    for (int i = 0; shell_name[i]; i++)
        take(to, shell_name[i]);
}

static int take_shell(void *into, char *name, struct err *err)
{
    struct args *a = into;

    for (a->shell = 0; shell_name[a->shell]; a->shell++)
        if (!strcmp(shell_name[a->shell], name))
            return 0;
    return err_usage(err, "no shell \"%s\"; known are bash, zsh and fish", name);
}

/* --- completions --- */

struct spec_option {
    const char *name, *arg;
    int letter;
    char *help;
    bool strict; /* only these words */
    char *words; /* "a b c"; NULL: not known */
};

struct spec {
    const char *name, *help;
    struct spec_option *option;
    int options;
    char *words; /* words that are not options; NULL: files */
};

/* Names that no shell needs to quote. */
static void take_word(void *to, const char *name)
{
    char **words = to;

    if (*name &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
            strlen(name))
        *words = *words ? mem_append(*words, " %s", name) : mem_strdup(name);
}

/* Words of the row itself; "host|endpoint" in its ARG is a list, too. */
static char *words_of(const struct opt *o, bool *strict)
{
    char *words = NULL, *arg = o->arg ? mem_strdup(o->arg) : NULL, *save = NULL;
    bool lower = arg && strchr(arg, '|') && !strpbrk(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[=");

    for (int i = 0; o->words && (o->known ? i < o->known : o->words[i] != NULL); i++)
        take_word(&words, o->words[i]);
    for (char *one = lower && !words ? strtok_r(arg, "|", &save) : NULL; one;
         one = strtok_r(NULL, "|", &save))
        take_word(&words, one);
    *strict = words != NULL;
    if (!words && o->values)
        o->values(take_word, &words);
    free(arg);
    return words;
}

/* First part of the help: up to a bracket or semicolon, one line. */
static char *short_help(const char *help)
{
    const char *bracket = strstr(help, " (");
    size_t len = strcspn(help, ";\n");

    return mem_strndup(help,
                       bracket && (size_t)(bracket - help) < len ? (size_t)(bracket - help) : len);
}

static void take_option(void *to, const struct opt *row)
{
    struct spec *s = to;
    const struct spec_option *last = s->options ? &s->option[s->options - 1] : NULL;
    bool alias = row->flags & OPTION_ALIAS;
    struct spec_option o = {row->name, row->arg, row->letter, NULL, false, NULL};

    for (int i = 0; i < s->options; i++)
        if (!strcmp(s->option[i].name, row->name))
            return;
    if (alias && last) {
        o.arg = last->arg;
        o.strict = last->strict;
        o.help = mem_strdup(last->help);
        o.words = last->words ? mem_strdup(last->words) : NULL;
    } else {
        o.help = short_help(row->help ? row->help : "");
        o.words = words_of(row, &o.strict);
    }
    MEM_PUSH(s->option, s->options) = o;
}

static void describe(struct spec *s, const char *name, const char *help, const struct command *c)
{
    bool strict;

    *s = (struct spec){.name = name, .help = help};
    opt_each(c->line, take_option, s);
    for (const struct opt *w = c->line->words; w && w->name; w++) {
        char *words = words_of(w, &strict);
        if (words)
            s->words = s->words ? mem_append(s->words, " %s", words) : mem_strdup(words);
        free(words);
    }
}

static void done(struct spec *s)
{
    for (int i = 0; i < s->options; i++) {
        free(s->option[i].help);
        free(s->option[i].words);
    }
    free(s->option);
    free(s->words);
}

/* Write `text` for use between single quotes.  A single quote is escaped by a backslash or, with
 * leave (zsh and bash), by leaving the quotes; characters of `more` by a backslash. */
static void put_quoted(FILE *out, const char *text, const char *more, bool leave)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(leave ? "'\\''" : "\\'", out);
        else
            fprintf(out, "%s%c", strchr(more, *text) ? "\\" : "", *text);
}

/* --- bash: one function with two cases, by the previous word and by the command --- */

static void bash_names(FILE *out, const struct spec *s, const struct spec_option *o)
{
    fprintf(out, "%s:--%s", s->name, o->name);
    if (o->letter)
        fprintf(out, " | %s:-%c", s->name, o->letter);
}

static void bash_values(FILE *out, const struct spec *s)
{
    bool any = false;

    for (int i = 0; i < s->options; i++) {
        const struct spec_option *o = &s->option[i];
        if (!o->words)
            continue;
        fputs("    ", out);
        bash_names(out, s, o);
        fprintf(out, ") words=\"%s\" ;;\n", o->words);
    }
    for (int i = 0; i < s->options; i++) {
        if (s->option[i].words || !s->option[i].arg)
            continue;
        fputs(any ? " | " : "    ", out);
        bash_names(out, s, &s->option[i]);
        any = true;
    }
    fputs(any ? ") return ;;\n" : "", out);
}

static void put_bash(FILE *out, const struct program *p, const struct spec *spec, int specs)
{
    fprintf(out,
            "# Completion of %s for bash, made by: %s completion bash\n"
            "%s() {\n",
            p->name, p->name, p->function);
    fputs("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words='' "
          "files=''\n"
          "    local command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    if [ \"$cur\" = = ]; then\n"
          "        cur=\n"
          "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"",
          out);
    for (int i = 0; i < specs; i++)
        fprintf(out, "%s ", spec[i].name);
    fputs("--help --version\" -- \"$cur\")\n"
          "        return\n"
          "    fi\n"
          "    case $command:$prev in\n",
          out);
    for (int i = 0; i < specs; i++)
        bash_values(out, &spec[i]);
    fputs("    esac\n"
          "    if [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "        return\n"
          "    fi\n"
          "    case $command:$cur in\n",
          out);
    for (int i = 0; i < specs; i++) {
        fprintf(out, "    %s:-*) words=\"", spec[i].name);
        for (int k = 0; k < spec[i].options; k++)
            fprintf(out, "%s--%s", k ? " " : "", spec[i].option[k].name);
        fputs("\" ;;\n", out);
        if (spec[i].words)
            fprintf(out, "    %s:*) words=\"%s\" files=1 ;;\n", spec[i].name, spec[i].words);
    }
    fputs("    esac\n"
          "    [ -z \"$words\" ] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    if [ -n \"$files\" ]; then\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "    fi\n"
          "}\n",
          out);
    fprintf(out, "complete -o default -F %s %s\n", p->function, p->name);
}

/* --- zsh --- */

static void zsh_value(FILE *out, const struct spec_option *o)
{
    if (!o->arg)
        return;
    fputc(':', out);
    put_quoted(out, o->arg, "[]:\\", true);
    if (o->words && o->strict)
        fprintf(out, ":(%s)", o->words);
    else if (o->words)
        fprintf(out, ": _railgauge_name %s", o->words);
    else
        fputs(":_files", out);
}

static void zsh_option(FILE *out, const struct spec_option *o)
{
    fputs("            ", out);
    if (o->letter)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
                o->arg ? "+" : "", o->name, o->arg ? "=" : "");
    else
        fprintf(out, "'--%s%s[", o->name, o->arg ? "=" : "");
    put_quoted(out, o->help, "[]\\", true);
    fputc(']', out);
    zsh_value(out, o);
    fputs("' \\\n", out);
}

static void put_zsh(FILE *out, const struct program *p, const struct spec *spec, int specs)
{
    fprintf(out,
            "#compdef %s\n"
            "# Completion of %s for zsh, made by: %s completion zsh\n"
            "_railgauge_name() { compadd -- \"$@\"; _files }\n"
            "%s() {\n"
            "    local -a commands\n"
            "    commands=(\n",
            p->name, p->name, p->name, p->function);
    for (int i = 0; i < specs; i++) {
        fprintf(out, "        '%s:", spec[i].name);
        put_quoted(out, spec[i].help, "\\", true);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe -t commands command commands\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $command in\n",
          out);
    for (int i = 0; i < specs; i++) {
        fprintf(out, "    (%s)\n        _arguments -s \\\n", spec[i].name);
        for (int k = 0; k < spec[i].options; k++)
            zsh_option(out, &spec[i].option[k]);
        if (spec[i].words)
            fprintf(out, "            '*:word: _railgauge_name %s'\n", spec[i].words);
        else
            fputs("            '*:file:_files'\n", out);
        fputs("        ;;\n", out);
    }
    fprintf(out,
            "    esac\n"
            "}\n"
            "if [[ $funcstack[1] = %s ]]; then %s \"$@\"; else compdef %s %s; fi\n",
            p->function, p->function, p->function, p->name);
}

/* --- fish --- */

static void fish_option(FILE *out, const struct program *p, const struct spec *s,
                        const struct spec_option *o)
{
    fprintf(out, "complete -c %s -n '__fish_seen_subcommand_from %s'", p->name, s->name);
    if (o->letter)
        fprintf(out, " -s '%c'", o->letter);
    fprintf(out, " -l %s", o->name);
    if (o->arg)
        fputs(o->strict ? " -x" : " -r", out);
    if (o->words)
        fprintf(out, " -a '%s'", o->words);
    fputs(" -d '", out);
    put_quoted(out, o->help, "\\", false);
    fputs("'\n", out);
}

static void put_fish(FILE *out, const struct program *p, const struct spec *spec, int specs)
{
    fprintf(out, "# Completion of %s for fish, made by: %s completion fish\n", p->name, p->name);
    for (int i = 0; i < specs; i++) {
        fprintf(out, "complete -c %s -f -n __fish_use_subcommand -a %s -d '", p->name,
                spec[i].name);
        put_quoted(out, spec[i].help, "\\", false);
        fputs("'\n", out);
    }
    for (int i = 0; i < specs; i++) {
        if (spec[i].words)
            fprintf(out, "complete -c %s -n '__fish_seen_subcommand_from %s' -a '%s'\n", p->name,
                    spec[i].name, spec[i].words);
        for (int k = 0; k < spec[i].options; k++)
            fish_option(out, p, &spec[i], &spec[i].option[k]);
    }
}

/* --- the command --- */

static const struct opt options[] = {{0}};
static const struct opt words[] = {
    {"shell", .help = "which shell: bash, zsh or fish", OPT_CALL(take_shell), .values = each_shell},
    {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "bash|zsh|fish",
    .doc = "Print a script for bash, zsh or fish that completes commands, options and "
           "their values.\vmake install installs all three.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Complete in this bash", "eval \"$(railgauge completion bash)\""),
            OPT_EXAMPLE("Install for zsh", "railgauge completion zsh >_railgauge"),
            OPT_EXAMPLE("Install for fish", "railgauge completion fish >railgauge.fish"),
            {0}},
    .exits = "Exit codes: 0 good, 64 usage, 74 I/O.",
};

struct described {
    const char *name, *help;
    const struct command *command;
};
#define ROW(x, name, group, help) {name, help, &x##_command},
static const struct described all[] = {COMMANDS(ROW)}, of_calibrate[] = {CALIBRATE_COMMANDS(ROW)};
#undef ROW

static int cmd_completion(int argc, char **argv, struct err *err)
{
    static void (*const put[])(FILE * out, const struct program *p, const struct spec *spec,
                               int specs) = {
        [SHELL_BASH] = put_bash, [SHELL_ZSH] = put_zsh, [SHELL_FISH] = put_fish};
    static const struct program programs[] = {{"railgauge", "_railgauge"},
                                              {CALIBRATE_PROGRAM, "_railgauge_calibrate"}};
    bool calibrate = !strncmp(argv[0], CALIBRATE_PROGRAM, strlen(CALIBRATE_PROGRAM));
    const struct described *of = calibrate ? of_calibrate : all;
    int n = (int)(calibrate ? sizeof(of_calibrate) : sizeof(all)) / (int)sizeof(*all);
    struct spec spec[sizeof(all) / sizeof(*all)];
    struct args a = {0};

    (void)err;
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    for (int i = 0; i < n; i++)
        describe(&spec[i], of[i].name, of[i].help, of[i].command);
    put[a.shell](stdout, &programs[calibrate], spec, n);
    for (int i = 0; i < n; i++)
        done(&spec[i]);
    return EXIT_GOOD;
}

const struct command completion_command = {&command, cmd_completion};
