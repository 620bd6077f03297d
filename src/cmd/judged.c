/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/judged_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "report/text/report.h"

/* --- reference --- */

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

/* Preset name of the matrix's GPU, or NULL.  The caller frees. */
static char *gpu_preset(const struct matrix *m)
{
    const struct topo *t = &m->topo;

    return t->endpoints && t->endpoint[0].kind == ENDPOINT_GPU && *t->endpoint[0].model
               ? fabric_of_gpu(t->endpoint[0].model)
               : NULL;
}

/* Refuse figures of other GPUs, which are not comparable. */
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

/* *name stays NULL if there is no reference. */
static int open_reference(struct matrix *ref, char **name, const struct judged_args *a,
                          const struct matrix *m, struct err *err)
{
    char *preset = NULL;
    int rc = 0;

    if (a->against && is_matrix(a->against)) {
        rc = matrix_load(ref, a->against, MATRIX_WHOLE, err);
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

/* --- verdict in words --- */

/* First row that decides the verdict. */
static const struct accept_row *reason(const struct accept *a)
{
    for (int i = 0; i < a->rows; i++)
        if (a->row[i].is == a->verdict && a->verdict != ACCEPT_PASS &&
            (a->verdict != ACCEPT_UNKNOWN || accept_lacks(&a->row[i])))
            return &a->row[i];
    return NULL;
}

/* The verdict in one sentence: number of checks, and the worst of them.  The caller frees. */
static char *verdict_line(const struct accept *a)
{
    static const struct {
        const char *one, *many;
    } verb[] = {{"passes", "pass"},
                {"warns", "warn"},
                {"fails", "fail"},
                {"could not be judged", "could not be judged"}};
    const struct accept_row *r = reason(a);
    int n = a->count[a->verdict];
    char *line = mem_printf("%s: %d of %d checks %s", accept_name[a->verdict], n, a->rows,
                            units_plural(n, verb[a->verdict].one, verb[a->verdict].many));

    char *why = r ? accept_text(r) : NULL;
    if (why)
        line = mem_append(line, "; %s", why);
    free(why);
    return line;
}

const char *const judged_unit[] = {"count", "share", "Bps", "s"};

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

/* The most urgent come first. */
static const enum accept_is order[] = {ACCEPT_FAIL, ACCEPT_WARN, ACCEPT_UNKNOWN, ACCEPT_PASS};
enum { SORTED = sizeof(order) / sizeof(*order) };

json_t *judged_json(const struct accept *a)
{
    static const struct table_column columns[] = {
        {"verdict", NULL, "text"}, {"check", NULL, "text"},  {"what", NULL, "text"},
        {"value", NULL, "%.9g"},   {"low", NULL, "%.9g"},    {"high", NULL, "%.9g"},
        {"limit", NULL, "%.9g"},   {"unit", NULL, "text"},   {"of", NULL, "text"},
        {"why", NULL, "text"},     {"source", NULL, "text"}, {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < SORTED * a->rows; i++) {
        const struct accept_row *r = &a->row[i % a->rows];
        const struct limit_check *c = &limit_check[r->limit->check];
        if (r->is == order[i / a->rows])
            table_add(&t, accept_name[r->is], c->name, r->what, r->value, r->lo, r->hi, r->bound,
                      judged_unit[c->unit], r->of, r->why, r->limit->source);
    }
    return table_rows(&t);
}

static void add_check(struct table *t, const struct accept_row *r)
{
    const enum limit_unit unit = limit_check[r->limit->check].unit;
    char value[LIMIT_TEXT], bound[LIMIT_TEXT], limit[LIMIT_TEXT + 4];
    char interval[2 * LIMIT_TEXT + 4];
    bool whole = r->is != ACCEPT_PASS;
    char *what = mem_printf("%s%s%s%s%s", r->what, whole && *r->of ? "; limit: " : "",
                            whole ? r->of : "", whole && *r->why ? "; " : "", whole ? r->why : "");

    snprintf(limit, sizeof(limit), "%s %s", limit_check[r->limit->check].least ? ">=" : "<=",
             limit_value_text(bound, unit, r->bound));
    table_add(t, what, isfinite(r->value) ? limit_value_text(value, unit, r->value) : NULL,
              interval_text(interval, unit, r), isfinite(r->bound) ? limit : NULL);
    free(what);
}

/* Print the checks with one result as a table. */
static void print_checks(const struct accept *a, enum accept_is is)
{
    static const char *const title[ACCEPT_IS_COUNT] = {[ACCEPT_PASS] = "passed",
                                                       [ACCEPT_WARN] = "warnings",
                                                       [ACCEPT_FAIL] = "failed",
                                                       [ACCEPT_UNKNOWN] = "not judged"};
    char head[32];
    const struct table_column columns[] = {{NULL, head, "text"},
                                           {NULL, "measured", "figure"},
                                           {NULL, "95 % interval", "figure"},
                                           {NULL, "limit", "figure"},
                                           {0}};
    struct table t;

    snprintf(head, sizeof(head), "%s (%d)", title[is], a->count[is]);
    table_open(&t, columns);
    for (int i = 0; i < a->rows; i++)
        if (a->row[i].is == is)
            add_check(&t, &a->row[i]);
    putchar('\n');
    table_print(stdout, &t, 0);
    table_free(&t);
}

/* --- racks --- */

/* Returns "NIC mlx5_1 of r00n04 (GPU 1); ...", the parts of a rack, or "".  The caller frees. */
static char *parts_in(const struct parts *p, int rack)
{
    char *names = mem_strdup("");

    for (int i = 0; i < p->rows; i++)
        for (int k = 0; k < p->row[i].places; k++)
            if (p->row[i].place[k].at[LEVEL_RACK] == rack) {
                names = mem_append(names, "%s%s", *names ? "; " : "", p->row[i].name);
                break;
            }
    return names;
}

json_t *judged_racks(const struct judged *j)
{
    static const struct table_column columns[] = {
        {"rack", NULL, "text"}, {"verdict", NULL, "text"}, {"parts", NULL, "text"}, {0}};
    const struct names *rack = &j->parts.topo.group[LEVEL_RACK];
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < rack->count; i++) {
        char *parts = parts_in(&j->parts, i);
        table_add(&t, rack->name[i], accept_name[accept_rack(&j->accept, &j->parts, i)], parts);
        free(parts);
    }
    return table_rows(&t);
}

/* Print "racks: 6 of 8 pass; rack-02 fails, rack-05 warns". */
static void print_racks(const struct judged *j)
{
    static const char *const verb[ACCEPT_IS_COUNT] = {
        [ACCEPT_WARN] = "warns", [ACCEPT_FAIL] = "fails", [ACCEPT_UNKNOWN] = "is not judged"};
    const struct names *rack = &j->parts.topo.group[LEVEL_RACK];
    char *others = mem_strdup("");
    int good = 0, told = 0;

    for (int i = 0; i < rack->count; i++) {
        enum accept_is is = accept_rack(&j->accept, &j->parts, i);
        good += is == ACCEPT_PASS;
        if (is == ACCEPT_PASS || told++ >= JUDGED_STEPS)
            continue;
        others = mem_append(others, "%s %s %s", told > 1 ? "," : ";", rack->name[i], verb[is]);
    }
    if (told > JUDGED_STEPS)
        others = mem_append(others, " and %d more (--json)", told - JUDGED_STEPS);
    if (rack->count > 1)
        table_wrap(stdout, 2, "racks: %d of %d pass%s", good, rack->count, others);
    free(others);
}

void judged_print(const struct judged *j, const char *campaign, bool all)
{
    const struct accept *a = &j->accept;
    char *seen = matrix_seen_text(&j->in.m);

    table_wrap_marked(stdout, 2, strlen(accept_name[a->verdict]), j->line);
    table_wrap(stdout, 2, "%s compared with %s, limits: %s", campaign,
               j->against ? j->against : "no reference", j->limits_name);
    for (int i = 0; i < SORTED; i++)
        if (a->count[order[i]] && (all || order[i] != ACCEPT_PASS))
            print_checks(a, order[i]);
    if (j->parts.rows + j->parts.onlies)
        putchar('\n');
    parts_text(stdout, &j->parts, JUDGED_STEPS, false, NULL);
    putchar('\n');
    if (a->count[ACCEPT_PASS] && !all)
        printf("passed: %d check%s, listed with --all\n", a->count[ACCEPT_PASS],
               units_s(a->count[ACCEPT_PASS]));
    print_racks(j);
    table_wrap(stdout, 2, "checked: %s", seen ? seen : "not known");
    free(seen);
}

const char *const judged_style[] = {"railgauge", "nagios", NULL};

/* label=value;warn;crit as in the guidelines of monitoring plugins; "N:" is the range from N on. */
void judged_nagios(enum accept_is verdict, const char *line, const struct accept *a)
{
    static const char *const word[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

    printf("RAILGAUGE %s - %s", word[verdict], strchr(line, ' ') + 1);
    for (int i = 0, n = 0; a && i < a->rows; i++) {
        const struct accept_row *r = &a->row[i];
        const struct limit_check *c = &limit_check[r->limit->check];
        if (isfinite(r->value) && isfinite(r->bound))
            printf("%s'%s'=%.9g%s;;%.9g%s", n++ ? " " : " | ", r->what, r->value,
                   c->unit == LIMIT_TIME ? "s" : "", r->bound, c->least ? ":" : "");
    }
    putchar('\n');
}

/* --- complete --- */

static const struct input_ask ask = {INPUT_MATRIX, INPUT_MATRIX, INPUT_POINTS | INPUT_TOPO};

void judged_init(struct judged *j)
{
    memset(j, 0, sizeof(*j));
    input_init(&j->in);
    input_below_init(&j->below);
    matrix_init(&j->reference);
}

int judged_open(struct judged *j, const struct judged_args *a, struct err *err)
{
    if (input_open(&j->in, &a->in, &ask, err) < 0 ||
        input_below_open(&j->below, &a->in, &j->in, err) < 0 ||
        open_reference(&j->reference, &j->against, a, &j->in.m, err) < 0 ||
        (a->limits ? limits_load(&j->limits, a->limits, err)
                   : limits_builtin(&j->limits, j->against, err)) < 0)
        return -1;
    j->limits_name = a->limits ? a->limits : j->limits.title;
    const struct parts_input parts = {.m = &j->in.m,
                                      .topo = &j->in.t,
                                      .points = j->in.has & INPUT_POINTS ? &j->in.p : NULL,
                                      .reference = j->against ? &j->reference : NULL,
                                      .reference_name = j->against,
                                      .below = j->below.is};
    if (parts_list(&j->parts, &parts, err) < 0)
        return -1;
    accept_judge(&j->accept,
                 &(struct accept_input){.measured = &j->in.m,
                                        .parts = &j->parts,
                                        .points = parts.points,
                                        .topo = j->in.t.endpoints ? &j->in.t : NULL,
                                        .reference = parts.reference,
                                        .reference_name = j->against,
                                        .why = "no preset is known for this machine; --against "
                                               "names one, or another campaign",
                                        .limits = &j->limits});
    j->line = verdict_line(&j->accept);
    return 0;
}

void judged_free(struct judged *j)
{
    parts_free(&j->parts);
    accept_free(&j->accept);
    limits_free(&j->limits);
    matrix_free(&j->reference);
    input_below_free(&j->below);
    input_free(&j->in);
    free(j->against);
    free(j->line);
    memset(j, 0, sizeof(*j));
}

json_t *judged_seen(const struct judged *j)
{
    const struct matrix *m = &j->in.m;
    json_t *list = json_array();

    for (int i = 0; i < m->seens; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:f}", "part", seen_name[m->seen[i].kind],
                                        "parts", m->seen[i].parts, "judged", m->seen[i].judged));
    return list;
}
