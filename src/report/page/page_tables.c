/* SPDX-License-Identifier: BSD-3-Clause */
/* page_tables.c - tables of a page: checks, coverage, counters, rates of GPUs, environment. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/taint.h"
#include "report/page/page_impl.h"
#include "topo/gpu.h"
#include "topo/lint/lint.h"

/* --- checks --- */

static const char *const is_class[ACCEPT_IS_COUNT] = {"pass", "warn", "fail", "unknown"};
static const char *const is_sign[ACCEPT_IS_COUNT] = {"\u2713", "!", "\u2715", "?"};

/* Draw the interval on its own scale: the bound in the centre, 20 % of it to either side. */
static bool interval_picture(FILE *out, const struct accept_row *r)
{
    enum { WIDTH = 96, MIDDLE = WIDTH / 2 };
    double span = fabs(r->bound) * 0.2, at[3] = {r->lo, r->value, r->hi};

    if (!(span > 0) || !isfinite(r->value) || !isfinite(r->lo) || !isfinite(r->hi))
        return false;
    for (int i = 0; i < 3; i++)
        at[i] = MIDDLE + fmax(-1, fmin(1, (at[i] - r->bound) / span)) * (MIDDLE - 4);
    html(out,
         "<svg class=\"bar %s\" viewBox=\"0 0 96 10\" width=\"96\" height=\"10\" "
         "aria-hidden=\"true\"><path "
         "class=\"axis\" d=\"M0 5H96\"/><path class=\"limit\" d=\"M48 0V10\"/><path class=\"span\" "
         "d=\"M%.1f 5H%.1f\"/><circle cx=\"%.1f\" cy=\"5\" r=\"2.6\"/></svg>",
         is_class[r->is], at[0], at[2], at[1]);
    return true;
}

static void check_row(FILE *out, const struct accept_row *r)
{
    const struct limit_check *c = &limit_check[r->limit->check];
    char value[LIMIT_TEXT] = "", lo[LIMIT_TEXT], hi[LIMIT_TEXT], bound[LIMIT_TEXT] = "";

    if (isfinite(r->value))
        limit_value_text(value, c->unit, r->value);
    if (isfinite(r->bound))
        limit_value_text(bound, c->unit, r->bound);
    html(out,
         "<tr class=\"%s\"><td class=\"is\" data-v=\"%d\"><span aria-hidden=\"true\">%s</span> "
         "%s</td><th "
         "scope=\"row\">%s%s%s%s</th><td class=\"n\" data-v=\"%.9g\">%s</td><td class=\"n\">",
         is_class[r->is], (int)r->is, is_sign[r->is], accept_name[r->is], r->what,
         *r->why ? " (" : "", r->why, *r->why ? ")" : "", r->value, *value ? value : "-");
    bool exact = !isfinite(r->lo) || r->lo == r->hi;
    if (!exact)
        html(out, "%s to %s", limit_value_text(lo, c->unit, r->lo),
             limit_value_text(hi, c->unit, r->hi));
    if (!interval_picture(out, r) && exact)
        html(out, "-");
    html(out, "</td><td class=\"n\">%s%s</td><td class=\"why\">%s%s%s</td></tr>\n",
         !*bound    ? "-"
         : c->least ? "\u2265 "
                    : "\u2264 ",
         bound, r->of, *r->of ? "; " : "", r->limit->source);
}

static char *checks_heading(const struct accept *a)
{
    int bad = a->count[ACCEPT_FAIL], unknown = a->count[ACCEPT_UNKNOWN];

    if (a->count[ACCEPT_PASS] == a->rows && a->rows)
        return mem_printf("All %d checks pass", a->rows);
    char *text = mem_printf("%d of %d checks %s", bad ? bad : a->count[ACCEPT_PASS], a->rows,
                            bad ? units_plural(bad, "fails", "fail")
                                : units_plural(a->count[ACCEPT_PASS], "passes", "pass"));
    if (a->count[ACCEPT_WARN])
        text = mem_append(text, ", %d %s", a->count[ACCEPT_WARN],
                          units_plural(a->count[ACCEPT_WARN], "warns", "warn"));
    return unknown ? mem_append(text, ", %d could not be judged", unknown) : text;
}

void page_checks(FILE *out, const struct page_facts *f)
{
    static const enum accept_is order[] = {ACCEPT_FAIL, ACCEPT_WARN, ACCEPT_UNKNOWN, ACCEPT_PASS};
    const struct accept *a = f->in->accept;

    html_section(out, "checks", checks_heading(a));
    html(
        out,
        "<p class=\"lead\">A check passes or fails only with its whole interval on one side of its "
        "limit. Compared with %s; limits: %s.</p>\n",
        f->in->against ? f->in->against : "nothing: no reference is known", f->in->limits_name);
    html_table(out, "checktable", "Checks, those that need a person first",
               "Verdict|Check|#Measured|#95 % interval|#Limit|Where the limit comes from");
    for (int k = 0; k < ACCEPT_IS_COUNT; k++)
        for (int i = 0; i < a->rows; i++)
            if (a->row[i].is == order[k])
                check_row(out, &a->row[i]);
    html_table_end(out);
    html_end(out);
}

/* --- coverage --- */

static void partners(const struct page_facts *f, int *least, int *most, int *none)
{
    *least = *most = *none = 0;
    for (int i = 0; i < f->t->endpoints; i++) {
        int n = f->end[i].partners;
        *least = i == 0 || n < *least ? n : *least;
        *most = n > *most ? n : *most;
        *none += n == 0;
    }
}

static void tier_rows(FILE *out, const struct page_facts *f)
{
    char n[PLOT_TEXT], of[PLOT_TEXT], share[PERCENT_TEXT], rate[UNITS_TEXT], time[UNITS_TEXT];
    char spread[PERCENT_TEXT], loaded[PERCENT_TEXT];

    for (int i = 0; i < f->m->tiers; i++) {
        const struct tier *t = &f->m->tier[i];
        double Bps = matrix_rate(f->m, i, DIR_UNI), alpha = t->curve[DIR_ONEWAY].alpha;
        if (!(t->possible > 0))
            continue;
        html(out,
             "<tr><th scope=\"row\">%s</th><td class=\"n\" data-v=\"%.0f\">%s of %s</td><td "
             "class=\"n\">%s</td><td "
             "class=\"n\">%d</td><td class=\"n\" data-v=\"%.6g\">%s</td><td class=\"n\" "
             "data-v=\"%.6g\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
             t->rule.name, t->measured, plot_count(n, lround(t->measured), ""),
             plot_count(of, lround(t->possible), ""),
             percent_text(share, t->measured / t->possible), t->partners, Bps,
             Bps > 0 ? units_rate_text(rate, Bps) : "-", alpha,
             alpha > 0 ? units_seconds_text(time, alpha) : "-",
             percent_text(spread, t->pairs ? t->spread : NAN), percent_text(loaded, t->loaded));
    }
}

static void verified(FILE *out, const struct points *p)
{
    int checked = 0, wrong = 0, failed = 0, tainted = 0;
    char n[4][PLOT_TEXT];

    for (int i = 0; p && i < p->count; i++) {
        checked += p->point[i].checked;
        wrong += p->point[i].wrong;
        failed += p->point[i].stop == STOP_FAILED;
        tainted += taint_is(&p->point[i]);
    }
    if (p)
        html(out,
             "<p>%s, %s of them with their data verified: %s wrong; %s failed, %s tainted.</p>\n",
             plot_count(n[0], p->count, "point"), plot_count(n[1], checked, ""),
             plot_count(n[2], wrong, ""), plot_count(n[3], failed, ""),
             plot_count((char[PLOT_TEXT]){0}, tainted, ""));
    else
        html(out, "<p>Points are not at hand: points.tsv of the campaign would tell how many, and "
                  "which of their data was verified.</p>\n");
}

/* Numbers of parts with enough partners to be judged. */
static void seen_rows(FILE *out, const struct matrix *m)
{
    char judged[PLOT_TEXT], parts[PLOT_TEXT], share[PERCENT_TEXT];

    if (!m->seens)
        return;
    html_table(out, "seentable", "Parts that met enough others to be judged",
               "Kind|#Judged|#Of|#Share");
    for (int i = 0; i < m->seens; i++) {
        const struct seen_parts *s = &m->seen[i];
        html(out,
             "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td class=\"n\">%s</td><td "
             "class=\"n\" data-v=\"%.6g\">%s</td></tr>\n",
             seen_name[s->kind], plot_count(judged, lround(s->judged), ""),
             plot_count(parts, lround(s->parts), ""), s->judged / s->parts,
             percent_text(share, s->judged / s->parts));
    }
    html_table_end(out);
}

static char *coverage_heading(const struct page_facts *f)
{
    int least, most, none;
    char n[PLOT_TEXT];

    if (!f->pairs)
        return mem_strdup("What was measured of pairs is not at hand");
    partners(f, &least, &most, &none);
    if (none)
        return mem_printf("%s %s in no measured pair", plot_count(n, none, "endpoint"),
                          units_plural(none, "is", "are"));
    return least == most
               ? mem_printf("Every endpoint was measured, in %d pairs", most)
               : mem_printf("Every endpoint was measured, in %d to %d pairs", least, most);
}

void page_coverage(FILE *out, const struct page_facts *f)
{
    html_section(out, "coverage", coverage_heading(f));
    verified(out, f->in->p);
    seen_rows(out, f->m);
    html_table(
        out, "tiertable", "Kinds of pairs and what they give",
        "Tier|#Pairs measured|#Share|#Partners|#Bandwidth|#Latency|#Spread|#Under load, of alone");
    tier_rows(out, f);
    html_table_end(out);
    if (f->hw->unseens) {
        html_table(out, "unseentable", "What could not be seen", "What|Why");
        for (int i = 0; i < f->hw->unseens; i++)
            html(out, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", f->hw->unseen[i].what,
                 f->hw->unseen[i].why);
        html_table_end(out);
    }
    html_end(out);
}

/* --- counters and other findings --- */

static bool is_taint(const struct finding *g)
{
    return !strcmp(g->kind, "tainted") || !strcmp(g->kind, "busy");
}

static char *counters_heading(const struct page_facts *f, int bad, int taints)
{
    int known = f->hw->gpus;
    char n[PLOT_TEXT];

    if (taints)
        return mem_printf("Measuring was disturbed: %s", plot_count(n, taints, "finding"));
    if (bad)
        return mem_printf("%d %s odd before anything was measured", bad,
                          units_plural(bad, "part is", "parts are"));
    return mem_strdup(known ? "Counters and links: nothing odd"
                            : "Counters of GPUs were not to be read");
}

void page_counters(FILE *out, const struct page_facts *f)
{
    struct lint lint = {0};
    int taints = 0;

    if (!f->simulated || f->hw->gpus)
        lint_hosts(&lint, f->hw);
    for (int i = 0; i < f->m->findings; i++)
        taints += is_taint(&f->m->finding[i]);
    html_section(out, "counters", counters_heading(f, lint_bad(&lint), taints));
    if (f->m->findings) {
        html_table(out, "findingtable", "What measuring found beside the parts", "Kind|Finding");
        for (int i = 0; i < f->m->findings; i++)
            html(out, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", f->m->finding[i].kind,
                 f->m->finding[i].text);
        html_table_end(out);
    }
    if (lint.findings) {
        html_table(out, "linttable", "The odd one out among hosts, GPUs and NICs",
                   "Kind|Part|What is odd");
        for (int i = 0; i < lint.findings; i++)
            html(out, "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td></tr>\n",
                 lint.finding[i].kind, lint.finding[i].what, lint.finding[i].text);
        html_table_end(out);
    }
    if (!f->m->findings && !lint.findings)
        html(out, "<p>%s</p>\n",
             f->simulated ? "A simulated fabric has no counters." : "No finding.");
    lint_free(&lint);
    html_end(out);
}

/* --- compute --- */

static const char *const alone_name[ALONE_COUNT] = {
    "memory, copied", "memory, read",  "from the host",           "to the host",
    "memory latency", "kernel launch", "kernel launch in a graph"};

static void alone_rows(FILE *out, const struct compute_rates *c)
{
    char text[UNITS_TEXT], share[PERCENT_TEXT];

    for (int i = 0; i < ALONE_COUNT; i++)
        if (c->alone[i] > 0)
            html(out,
                 "<tr><th scope=\"row\">%s</th><td></td><td class=\"n\" data-v=\"%.6g\">%s</td><td "
                 "class=\"n\">%s</td><td></td></tr>\n",
                 alone_name[i], c->alone[i],
                 i < ALONE_LATENCY ? units_rate_text(text, c->alone[i])
                                   : units_seconds_text(text, c->alone[i]),
                 percent_text(share, c->share[i] > 0 ? c->share[i] : NAN));
}

/* "989 TFLOP/s" */
static char *flops_text(char buf[UNITS_TEXT], double flops)
{
    bool tera = flops >= 1e12;

    snprintf(buf, UNITS_TEXT, "%.3g %cFLOP/s", flops / (tera ? 1e12 : 1e9), tera ? 'T' : 'G');
    return buf;
}

void page_compute(FILE *out, const struct page_facts *f)
{
    const struct compute_rates *c = &f->m->compute;
    char share[PERCENT_TEXT], spread[PERCENT_TEXT], count[PLOT_TEXT], rate[UNITS_TEXT];
    const struct gemm_rate *best = NULL;

    for (int i = 0; i < c->gemms; i++)
        best = !best || c->gemm[i].flops > best->flops ? &c->gemm[i] : best;
    html_section(out, "compute",
                 best ? mem_printf("%s %s %s in %s", plot_count(count, best->devices, "device"),
                                   units_plural(best->devices, "reaches", "reach"),
                                   flops_text(rate, best->flops), best->dtype)
                 : c->flops > 0 ? mem_printf("A device computes %s", flops_text(rate, c->flops))
                                : mem_strdup("What GPUs compute was not measured"));
    if (!best && !(c->flops > 0))
        html(out, "<p>railgauge probe --compute measures products of matrices, memory and the way "
                  "to the host.</p>\n");
    if (c->source)
        html(out, "<p>%s</p>\n", c->source);
    if (c->gemms || c->devices) {
        html_table(out, "computetable", "Rates of devices on their own",
                   "What|Shape|#Rate|#Of the data sheet|#Spread");
        for (int i = 0; i < c->gemms; i++) {
            const struct gemm_rate *g = &c->gemm[i];
            html(out,
                 "<tr><th scope=\"row\">product, %s</th><td>%.0f x %.0f x %.0f</td><td class=\"n\" "
                 "data-v=\"%.6g\">%.4g TFLOP/s</td><td class=\"n\">%s</td><td "
                 "class=\"n\">%s</td></tr>\n",
                 g->dtype, g->m, g->n, g->k, g->flops, g->flops / 1e12,
                 percent_text(share, g->share > 0 ? g->share : NAN),
                 percent_text(spread, g->spread));
        }
        for (int i = 0; i < c->kernels; i++) {
            const struct gemm_rate *g = &c->kernel[i];
            html(out,
                 "<tr><th scope=\"row\">%s, %s</th><td>%.0f x %.0f x %.0f</td><td class=\"n\" "
                 "data-v=\"%.6g\">%.4g T%s</td><td class=\"n\"></td><td class=\"n\">%s</td></tr>\n",
                 g->kind, g->dtype, g->m, g->n, g->k, g->flops, g->flops / 1e12,
                 g->k > 1 ? "FLOP/s" : "B/s", percent_text(spread, g->spread));
        }
        alone_rows(out, c);
        html_table_end(out);
    }
    html_end(out);
}

/* --- environment --- */

static void value_row(FILE *out, const char *key, const json_t *value)
{
    char *text = NULL;

    if (json_is_string(value))
        text = mem_strdup(json_string_value(value));
    else if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++)
            text = mem_append(text, "%s%s", text ? " " : "",
                              json_string_value(json_array_get(value, i))
                                  ? json_string_value(json_array_get(value, i))
                                  : "");
    else
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    html(out, "<tr><th scope=\"row\">%s</th><td><code>%s</code></td></tr>\n", key, text);
    free(text);
}

/* Distinct texts of the GPUs with their counts: "570.86 (72)". */
static void gpu_row(FILE *out, const struct page_facts *f, const char *key, size_t at)
{
    struct names seen = {0};
    int *count = mem_ints(f->hw->gpus, 0);
    char *text = NULL;

    for (int i = 0; i < f->hw->gpus; i++) {
        const char *s = (const char *)&f->hw->gpu[i] + at;
        if (*s)
            count[names_add(&seen, s)]++;
    }
    for (int i = 0; i < seen.count; i++)
        text = mem_append(text, "%s%s (%d)", text ? ", " : "", seen.name[i], count[i]);
    if (text)
        html(out, "<tr><th scope=\"row\">%s</th><td><code>%s</code></td></tr>\n", key, text);
    free(text);
    free(count);
    names_free(&seen);
}

static void provenance_rows(FILE *out, const json_t *provenance)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)provenance, key, value)
    {
        if (!json_is_object(value))
            value_row(out, key, value);
    }
}

static void environment_rows(FILE *out, const json_t *provenance, const char *member)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(provenance, member), key, value)
    {
        value_row(out, key, value);
    }
}

static char *environment_heading(const struct page_facts *f)
{
    const char *nccl = json_string_value(json_object_get(f->provenance, "nccl")),
               *mpi = json_string_value(json_object_get(f->provenance, "mpi"));
    const char *driver = f->hw->gpus ? f->hw->gpu[0].driver : "";

    if (!nccl && !mpi && !*driver)
        return mem_strdup(f->simulated ? "Environment: railgauge " RG_VERSION " alone"
                                       : "Environment");
    const char *name = nccl && isdigit((unsigned char)*nccl) ? "NCCL " : "";
    return mem_printf("Environment: %s%.*s%s%.*s%s%s%s", name, nccl ? (int)strcspn(nccl, ",") : 0,
                      nccl ? nccl : "", nccl && mpi ? ", " : "", mpi ? (int)strcspn(mpi, ",") : 0,
                      mpi ? mpi : "", *driver && (nccl || mpi) ? ", " : "",
                      *driver ? "driver " : "", driver);
}

void page_environment(FILE *out, const struct page_facts *f)
{
    html_section(out, "environment", environment_heading(f));
    html_table(out, "environmenttable",
               "Versions, the command as typed and the variables that matter", "What|Value");
    gpu_row(out, f, "GPUs", offsetof(struct gpu, model));
    gpu_row(out, f, "driver", offsetof(struct gpu, driver));
    provenance_rows(out, f->provenance);
    environment_rows(out, f->provenance, "environment");
    environment_rows(out, f->provenance, "environment_set");
    html_table_end(out);
    html_end(out);
}
