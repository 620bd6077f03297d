/* SPDX-License-Identifier: BSD-3-Clause */
/* accept.c - railgauge accept: one verdict of a campaign, against limits and a reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input.h"
#include "verdict/accept.h"

enum style { STYLE_OWN, STYLE_NAGIOS };
static const char *const style_name[] = {"railgauge", "nagios", NULL};

struct args {
    const char *against, *limits, *output;
    int style; /* enum style */
    bool list;
    struct input_args in;
};

static const struct opt options[] = {
    {"against", 0, "PRESET|MATRIX|DIR", "what shares are of; else the preset of the GPUs seen",
     OPT_INTO(struct args, against)},
    {"limits", 0, "FILE", "these limits instead of those of railgauge",
     OPT_INTO(struct args, limits)},
    {"output", 'o', "FILE", "write the verdict as JSON here", OPT_INTO(struct args, output)},
    {"exit-style", 0, "NAME", "railgauge or nagios: 0 1 2 3 and one line with figures",
     OPT_WORD(struct args, style, style_name)},
    {"list-checks", 0, NULL, "print the checks that a limits file may have and exit",
     OPT_INTO(struct args, list)},
    INPUT_JSON(struct args, in.json),
    INPUT_QUIET(struct args, in.quiet),
    {0},
};

static const struct opt words[] = {{"campaign", OPT_INTO(struct args, in.file)}, {0}};

static int check(void *args, struct err *err)
{
    const struct args *a = args;

    return a->list || a->in.file ? 0 : err_usage(err, "give a campaign's directory or a matrix");
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = check,
    .usage = "DIR|MATRIX",
    .doc = "Judge a campaign: each figure with its interval beside its limit, and one verdict."
           "\vA limit whose measurement or reference is missing is UNKNOWN, and the exit code says "
           "so.\n\n"
           "  railgauge accept campaign\n"
           "  railgauge accept campaign --against gb200-nvl72\n"
           "  railgauge accept campaign --against last-month --limits site.json\n"
           "  railgauge accept campaign --exit-style nagios\n\n" EXIT_CODES(
               "1 a check fails, 2 could not judge, ", ""),
};

/* --- what shares are of --- */

static int preset_reference(struct matrix *ref, char **name, const char *preset,
                            const struct matrix *m, struct err *err)
{
    struct fabric f;
    int rc = fabric_load(&f, preset, err);

    if (rc < 0)
        return -1;
    int racks = m->topo.hosts / (f.hosts_per_rack > 0 ? f.hosts_per_rack : 1);
    rc = matrix_from_fabric(ref, &f, racks > 0 ? racks : 1, err);
    *name = mem_strdup(f.name);
    fabric_free(&f);
    return rc;
}

static bool is_matrix(const char *path)
{
    struct stat st;
    char *text = NULL;
    size_t len;

    if (stat(path, &st) < 0)
        return false;
    if (S_ISDIR(st.st_mode))
        return true;
    bool is = file_read(&text, &len, path, (size_t)1 << 28, NULL) == 0 &&
              strstr(text, "\"" MATRIX_FORMAT "\"");
    free(text);
    return is;
}

/* The GPU of a matrix as its preset calls it, or NULL; the caller frees. */
static char *gpu_preset(const struct matrix *m)
{
    const struct topo *t = &m->topo;

    return t->endpoints && t->endpoint[0].kind == ENDPOINT_GPU && *t->endpoint[0].model
               ? fabric_of_gpu(t->endpoint[0].model)
               : NULL;
}

/* Figures of other GPUs say nothing of these. */
static int refuse_other(const struct matrix *m, const struct matrix *ref, const char *name,
                        struct err *err)
{
    char *a = gpu_preset(m), *b = gpu_preset(ref);
    int rc = 0;

    if (a && b && strcmp(m->topo.endpoint[0].model, ref->topo.endpoint[0].model) != 0 &&
        strcmp(a, b) != 0)
        rc = err_data(err, "--against %s: that is of %s, the campaign of %s", name,
                      ref->topo.endpoint[0].model, m->topo.endpoint[0].model);
    free(a);
    free(b);
    return rc;
}

/* *name stays NULL where nothing is known to compare with. */
static int open_reference(struct matrix *ref, char **name, const struct args *a,
                          const struct matrix *m, struct err *err)
{
    char *preset = NULL;
    int rc = 0;

    if (a->against && is_matrix(a->against)) {
        rc = matrix_load(ref, a->against, err);
        *name = mem_strdup(a->against);
    } else if (a->against)
        rc = preset_reference(ref, name, a->against, m, err);
    else {
        preset = m->fabric && fabric_shipped(m->fabric) ? mem_strdup(m->fabric) : gpu_preset(m);
        rc = preset ? preset_reference(ref, name, preset, m, err) : 0;
    }
    free(preset);
    return rc == 0 && a->against ? refuse_other(m, ref, a->against, err) : rc;
}

/* --- what is printed --- */

/* The first row that the verdict rests on. */
static const struct accept_row *reason(const struct accept *a)
{
    for (int i = 0; i < a->rows; i++)
        if (a->row[i].is == a->verdict && a->verdict != ACCEPT_PASS &&
            !(a->verdict == ACCEPT_UNKNOWN && a->row[i].limit->optional))
            return &a->row[i];
    return NULL;
}

/* The verdict in one sentence: how many checks, and the worst of them; the caller frees. */
static char *verdict_line(const struct accept *a)
{
    static const struct {
        const char *one, *many;
    } verb[] = {{"passes", "pass"},
                {"warns", "warn"},
                {"fails", "fail"},
                {"could not be judged", "could not be judged"}};
    const struct accept_row *r = reason(a);
    char value[LIMIT_TEXT], bound[LIMIT_TEXT];
    int n = a->count[a->verdict];
    char *line = mem_printf("%s: %d of %d checks %s", accept_name[a->verdict], n, a->rows,
                            units_plural(n, verb[a->verdict].one, verb[a->verdict].many));

    if (!r)
        return line;
    enum limit_unit unit = limit_check[r->limit->check].unit;
    if (a->verdict == ACCEPT_UNKNOWN)
        return mem_append(line, "; %s: %s", r->what, r->why);
    return mem_append(line, "; %s: %s, limit %s%s%s", r->what,
                      limit_value_text(value, unit, r->value),
                      limit_value_text(bound, unit, r->bound), *r->of ? ", " : "", r->of);
}

static const char *const unit_key[] = {"count", "share", "Bps", "s"};

static char *interval_text(char buf[2 * LIMIT_TEXT + 4], enum limit_unit unit,
                           const struct accept_row *r)
{
    char lo[LIMIT_TEXT], hi[LIMIT_TEXT];

    if (!isfinite(r->lo) || r->lo == r->hi)
        return NULL;
    snprintf(buf, 2 * LIMIT_TEXT + 4, "%s to %s", limit_value_text(lo, unit, r->lo),
             limit_value_text(hi, unit, r->hi));
    return buf;
}

/* What needs a person comes first. */
static const enum accept_is order[] = {ACCEPT_FAIL, ACCEPT_WARN, ACCEPT_UNKNOWN, ACCEPT_PASS};
enum { SORTED = sizeof(order) / sizeof(*order) };

static void fill(struct table *t, const struct accept *a)
{
    static const struct table_column columns[] = {
        {"verdict", "verdict", "text"}, {"check", NULL, "text"},         {"what", "check", "text"},
        {NULL, "measured", "text"},     {NULL, "95 % interval", "text"}, {NULL, "limit", "text"},
        {"value", NULL, "%.9g"},        {"low", NULL, "%.9g"},           {"high", NULL, "%.9g"},
        {"limit", NULL, "%.9g"},        {"unit", NULL, "text"},          {"of", "of", "text"},
        {"why", "why", "text"},         {"source", NULL, "text"},        {0}};
    char value[LIMIT_TEXT], bound[LIMIT_TEXT], limit[LIMIT_TEXT + 4];
    char interval[2 * LIMIT_TEXT + 4];

    table_open(t, columns);
    for (int i = 0; i < SORTED * a->rows; i++) {
        const struct accept_row *r = &a->row[i % a->rows];
        if (r->is != order[i / a->rows])
            continue;
        const struct limit_check *c = &limit_check[r->limit->check];
        snprintf(limit, sizeof(limit), "%s %s",
                 c->least ? ">=" : "<=", limit_value_text(bound, c->unit, r->bound));
        table_add(t, accept_name[r->is], c->name, r->what,
                  isfinite(r->value) ? limit_value_text(value, c->unit, r->value) : NULL,
                  interval_text(interval, c->unit, r), isfinite(r->bound) ? limit : NULL, r->value,
                  r->lo, r->hi, r->bound, unit_key[c->unit], r->of, r->why, r->limit->source);
    }
}

static json_t *report(const struct accept *a, const char *line, const struct args *args,
                      const char *against, const struct table *t)
{
    return json_pack("{s:s, s:i, s:o, s:s, s:s, s:s, s:s?, s:s?, s:i, s:i, s:i, s:i, s:O}",
                     "format", "railgauge-accept", "version", 1, "provenance", json_provenance(),
                     "verdict", accept_name[a->verdict], "line", line, "campaign", args->in.file,
                     "against", against, "limits_file", args->limits, "passed",
                     a->count[ACCEPT_PASS], "warnings", a->count[ACCEPT_WARN], "failed",
                     a->count[ACCEPT_FAIL], "unknown", a->count[ACCEPT_UNKNOWN], "checks", t->rows);
}

static const char *nagios_word(const struct accept *a)
{
    static const char *const word[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

    return word[a->verdict];
}

/* label=value;warn;crit as the guidelines of monitoring plugins have it; "N:" is from N on. */
static void print_nagios(const struct accept *a, const char *line)
{
    printf("RAILGAUGE %s - %s", nagios_word(a), strchr(line, ' ') + 1);
    for (int i = 0, n = 0; i < a->rows; i++) {
        const struct accept_row *r = &a->row[i];
        const struct limit_check *c = &limit_check[r->limit->check];
        if (isfinite(r->value) && isfinite(r->bound))
            printf("%s'%s'=%.9g%s;;%.9g%s", n++ ? " " : " | ", r->what, r->value,
                   c->unit == LIMIT_TIME ? "s" : "", r->bound, c->least ? ":" : "");
    }
    putchar('\n');
}

static int nagios_code(const struct accept *a)
{
    return (int)a->verdict;
}

static void print_text(const struct accept *a, const char *line, const struct args *args,
                       const char *against, const char *title, const struct table *t)
{
    puts(line);
    printf("%s against %s, limits: %s\n\n", args->in.file, against ? against : "no reference",
           args->limits ? args->limits : title);
    table_print(stdout, t, 0);
    printf("\n%d pass, %d warn, %d fail, %d unknown\n", a->count[ACCEPT_PASS],
           a->count[ACCEPT_WARN], a->count[ACCEPT_FAIL], a->count[ACCEPT_UNKNOWN]);
}

static int show(const struct accept *a, const struct args *args, const char *against,
                const char *title, struct err *err)
{
    char *line = verdict_line(a);
    struct table t;

    fill(&t, a);
    bool own = args->style == STYLE_OWN;
    int rc =
        json_answer(report(a, line, args, against, &t), args->output, own && args->in.json, err);
    if (rc == 0 && !own)
        print_nagios(a, line);
    else if (rc == 0 && !args->in.json && !args->in.quiet)
        print_text(a, line, args, against, title, &t);
    table_free(&t);
    free(line);
    return rc;
}

static void list_checks(void)
{
    for (int i = 0; i < CHECK_COUNT; i++)
        printf("%-15s %-8s %s, %s\n", limit_check[i].name, unit_key[limit_check[i].unit],
               limit_check[i].what, limit_check[i].least ? "at_least" : "at_most");
}

static const struct input_ask ask = {INPUT_MATRIX, INPUT_MATRIX, INPUT_POINTS};

static int judge(const struct args *a, struct input *in, int *code, struct err *err)
{
    struct matrix ref;
    struct limits limits = {0};
    struct accept verdict = {0};
    char *name = NULL;

    matrix_init(&ref);
    int rc = input_open(in, &a->in, &ask, err);
    if (rc == 0)
        rc = open_reference(&ref, &name, a, &in->m, err);
    if (rc == 0)
        rc = a->limits ? limits_load(&limits, a->limits, err) : limits_builtin(&limits, name, err);
    if (rc == 0) {
        accept_judge(&verdict,
                     &(struct accept_input){.measured = &in->m,
                                            .points = in->has & INPUT_POINTS ? &in->p : NULL,
                                            .reference = name ? &ref : NULL,
                                            .reference_name = name,
                                            .why = "no preset is known for this machine; --against "
                                                   "names one, or another campaign",
                                            .limits = &limits});
        rc = show(&verdict, a, name, limits.title, err);
        *code = a->style == STYLE_NAGIOS ? nagios_code(&verdict) : accept_code(&verdict);
    }
    accept_free(&verdict);
    limits_free(&limits);
    matrix_free(&ref);
    free(name);
    return rc;
}

int cmd_accept(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct input in;
    int code = EXIT_GOOD;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.list) {
        list_checks();
        return EXIT_GOOD;
    }
    input_init(&in);
    int rc = judge(&a, &in, &code, err);
    input_free(&in);
    return rc < 0 ? -1 : code;
}
