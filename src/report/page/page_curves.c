/* SPDX-License-Identifier: BSD-3-Clause */
/* page_curves.c - curves.  Collectives: bus bandwidth over size, a small picture per operation and
 * shape, with the curve of a healthy fabric.  History: figures over campaigns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "matrix/reference.h"
#include "report/page/page_impl.h"

enum {
    SHAPES = 6,
    WIDTH = 230,
    BELOW = 22,
    X0 = 40,
    X1 = 224,
    Y0 = 8,
    Y1 = 106,
    S0 = 128,
    S1 = 164
};

struct curves {
    const struct page_facts *f;
    struct reference reference;
    struct shape shape[SHAPES];
    int shapes, all;
    double from, to, lo, hi; /* bytes, B/s */
    double least, most;      /* shares of the reference at the largest sizes; NAN: none */
    const struct collective *last;
};

static double rate(const struct collective *c, double bytes, double sec)
{
    return sec > 0 ? bytes / sec * op_bus_factor(c->op, c->shape.ranks) : NAN;
}

/* Time on a healthy fabric at each point of a curve, s; NAN: not known.  The caller frees. */
static double *expected(const struct curves *v, const struct collective *c, char words[80])
{
    int n = c->curve.points, *ids = shape_group(&v->f->m->topo, &c->shape);
    struct cost *cost = mem_calloc((size_t)n, sizeof(*cost));
    double *sec = mem_calloc((size_t)n, sizeof(*sec));

    for (int i = 0; i < n; i++)
        sec[i] = c->curve.point[i].bytes;
    reference_of_curve(&v->reference, c, ids, sec, n, cost);
    for (int i = 0; i < n; i++) {
        bool known = !isnan(reference_share(&cost[i], curve_time(&c->curve, sec[i])));
        if (known && words)
            reference_words(&v->reference, &cost[i], words);
        sec[i] = known ? cost[i].sec : NAN;
    }
    free(cost);
    free(ids);
    return sec;
}

static bool drawn(const struct collective *c)
{
    return !op_is_pair(c->op) && c->curve.points > 1;
}

static int by_shape(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;

    if (a->ranks != b->ranks)
        return a->ranks - b->ranks;
    return a->domains - b->domains;
}

/* Choose shapes from small to large; if there are many, both ends and some evenly between. */
static void choose(struct curves *v)
{
    struct shape *all = NULL;
    int n = 0;

    for (int i = 0; i < v->f->m->collectives; i++) {
        const struct collective *c = &v->f->m->collective[i];
        bool seen = !drawn(c);
        for (int k = 0; k < n && !seen; k++)
            seen = shape_equal(&all[k], &c->shape);
        if (!seen)
            MEM_PUSH(all, n) = c->shape;
    }
    if (n)
        qsort(all, (size_t)n, sizeof(*all), by_shape);
    v->all = n;
    v->shapes = n < SHAPES ? n : SHAPES;
    for (int i = 0; i < v->shapes; i++)
        v->shape[i] = all[n <= SHAPES ? i : (int)lround(i * (n - 1) / (SHAPES - 1.0))];
    free(all);
}

static void measure(struct curves *v)
{
    for (int i = 0; i < v->f->m->collectives; i++) {
        const struct collective *c = &v->f->m->collective[i];
        if (!drawn(c))
            continue;
        double *want = expected(v, c, NULL);
        for (int k = 0; k < c->curve.points; k++) {
            const struct curve_point *p = &c->curve.point[k];
            double r = rate(c, p->bytes, p->sec), e = rate(c, p->bytes, want[k]);
            v->from = fmin(v->from, p->bytes);
            v->to = fmax(v->to, p->bytes);
            v->lo = fmin(v->lo, r);
            v->hi = fmax(v->hi, fmax(r, e));
            if (k == c->curve.points - 1 && e > 0) {
                v->least = fmin(v->least, r / e);
                v->most = fmax(v->most, r / e);
            }
        }
        free(want);
    }
    v->hi = plot_nice(v->hi * 1.05, true);
    v->lo = plot_nice(fmax(v->lo, v->hi / 1e4), false);
}

static double x_of(const struct curves *v, double bytes)
{
    return v->to > v->from ? X0 + (X1 - X0) * log(bytes / v->from) / log(v->to / v->from) : X0;
}

/* NAN below the axis. */
static double y_of(const struct curves *v, double Bps)
{
    return Bps >= v->lo ? Y1 + (Y0 - Y1) * log(Bps / v->lo) / log(v->hi / v->lo) : NAN;
}

/* Vertical position of a share of the reference, 50 % to 150 %. */
static double y_of_share(double share)
{
    return isfinite(share) ? S1 + (S0 - S1) * (fmax(0.5, fmin(1.5, share)) - 0.5) : NAN;
}

/* bottom: lower edge of the share or, if no reference is known, of the bandwidth. */
static void axes(FILE *out, const struct curves *v, int bottom)
{
    static const double mark[] = {1024, 1 << 20, 1 << 30};
    static const char *const name[] = {"1 KiB", "1 MiB", "1 GiB"};
    char text[UNITS_TEXT];

    for (double p = pow(10, ceil(log10(v->lo) - 1e-9)); p <= v->hi * 1.001; p *= 10)
        html(out,
             "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"y\" x=\"%d\" "
             "y=\"%.1f\">%g</text>\n",
             X0, y_of(v, p), X1, X0 - 4, y_of(v, p) + 3.5, p / 1e9);
    for (int i = 0; i < 3; i++)
        if (mark[i] >= v->from && x_of(v, mark[i]) < X1 - 30)
            html(out,
                 "<path class=\"grid\" d=\"M%.1f %dV%dM%.1f %dV%d\"/><text class=\"x\" x=\"%.1f\" "
                 "y=\"%d\">%s</text>\n",
                 x_of(v, mark[i]), Y0, Y1, x_of(v, mark[i]), bottom == S1 ? S0 : Y1, bottom,
                 x_of(v, mark[i]), bottom + 13, name[i]);
    html(out, "<text class=\"x\" x=\"%d\" y=\"%d\">%s</text>\n", X1 - 12, bottom + 13,
         units_bytes_text(text, v->to));
}

/* Visible part of a curve: positions on the page by size, NAN where nothing is visible. */
struct trace {
    int n;
    double *x, *got, *lo, *hi, *want, *share;
};

static struct trace trace(const struct curves *v, const struct collective *c, char words[80])
{
    int n = c->curve.points;
    double *sec = expected(v, c, words), *all = mem_calloc((size_t)n, 6 * sizeof(double));
    struct trace t = {n, all, all + n, all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n};

    for (int i = 0; i < n; i++) {
        const struct curve_point *p = &c->curve.point[i];
        t.x[i] = x_of(v, p->bytes);
        t.got[i] = y_of(v, rate(c, p->bytes, p->sec));
        t.lo[i] = p->n ? y_of(v, fmax(v->lo, rate(c, p->bytes, p->hi))) : NAN;
        t.hi[i] = p->n ? y_of(v, fmax(v->lo, rate(c, p->bytes, p->lo))) : NAN;
        t.want[i] = y_of(v, rate(c, p->bytes, sec[i]));
        t.share[i] = y_of_share(sec[i] / p->sec);
    }
    free(sec);
    return t;
}

static void line(FILE *out, const struct trace *t, const double *y, const char *kind)
{
    bool pen = false;

    html(out, "<path class=\"%s\" d=\"M0 0", kind);
    for (int i = 0; i < t->n; i++) {
        if (isfinite(y[i]))
            html(out, "%s%.1f %.1f", pen ? "L" : "M", t->x[i], y[i]);
        pen = isfinite(y[i]);
    }
    html(out, "\"/>\n");
}

static void band(FILE *out, const struct trace *t)
{
    int from = 0;

    while (from < t->n && isnan(t->got[from]))
        from++;
    if (from == t->n || isnan(t->lo[from]))
        return;
    html(out, "<path class=\"interval\" d=\"M");
    for (int i = from; i < t->n; i++)
        html(out, "%.1f %.1fL", t->x[i], t->lo[i]);
    for (int i = t->n - 1; i >= from; i--)
        html(out, "%.1f %.1f%c", t->x[i], t->hi[i], i > from ? 'L' : 'z');
    html(out, "\"/>\n");
}

static void panel(FILE *out, const struct curves *v, const struct collective *c)
{
    char top[UNITS_TEXT], words[80] = "";
    struct trace t = trace(v, c, words);
    double bytes = c->curve.point[t.n - 1].bytes;
    int bottom = *words ? S1 : Y1;

    html(out,
         "<figure class=\"small\"><figcaption><strong>%s</strong> %s<br>%s%s</figcaption>\n<svg "
         "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s: bus bandwidth "
         "against message size, and its share of the reference\">\n",
         op_name(c->op), units_rate_text(top, rate(c, bytes, c->curve.point[t.n - 1].sec)),
         *words ? "beside " : "no reference is known", words, WIDTH, bottom + BELOW,
         op_name(c->op));
    axes(out, v, bottom);
    band(out, &t);
    line(out, &t, t.want, "reference");
    line(out, &t, t.got, "line all");
    if (*words)
        html(out,
             "<path class=\"grid strong\" d=\"M%d %.1fH%d\"/><text class=\"y\" x=\"%d\" "
             "y=\"%.1f\">100 %%</text><text class=\"y\" x=\"%d\" y=\"%d\">50 %%</text>\n",
             X0, y_of_share(1), X1, X0 - 4, y_of_share(1) + 3, X0 - 4, S1 + 3);
    line(out, &t, t.share, "line all");
    html(out, "</svg></figure>\n");
    free(t.x);
}

static void shape_row(FILE *out, const struct curves *v, const struct shape *s)
{
    char ranks[PLOT_TEXT], domains[PLOT_TEXT];
    bool done[OP_COUNT] = {false};

    html(out, "<h3>%s in %s of %d</h3>\n<div class=\"smalls\">\n",
         plot_count(ranks, s->ranks, "rank"), plot_count(domains, s->domains, "domain"),
         s->per_domain);
    for (int i = 0; i < v->f->m->collectives; i++) {
        const struct collective *c = &v->f->m->collective[i];
        if (!drawn(c) || !shape_equal(&c->shape, s) || done[c->op])
            continue;
        done[c->op] = true;
        panel(out, v, c);
    }
    html(out, "</div>\n");
}

static char *heading(const struct curves *v)
{
    char lo[PERCENT_TEXT], hi[PERCENT_TEXT];

    if (!v->shapes)
        return mem_strdup("No collective was measured");
    if (!isfinite(v->least))
        return mem_strdup("Collectives: no reference is known for these groups");
    return mem_printf("Large collectives reach %s to %s of what is expected",
                      percent_text(lo, v->least), percent_text(hi, v->most));
}

void page_curves(FILE *out, const struct page_facts *f)
{
    struct curves v = {.f = f, .from = INFINITY, .lo = INFINITY, .least = NAN, .most = NAN};

    reference_open(&v.reference, f->m);
    choose(&v);
    measure(&v);
    html_section(out, "collectives", heading(&v));
    if (v.shapes)
        html(out,
             "<p class=\"lead\">Bus bandwidth in GB/s against message size on one logarithmic "
             "scale: "
             "measured with its 95 %% interval, dashed what a healthy fabric would give. Below it "
             "the "
             "share of that.%s</p>\n",
             v.all > v.shapes ? " Some of many groups are shown." : "");
    for (int i = 0; i < v.shapes; i++)
        shape_row(out, &v, &v.shape[i]);
    html_end(out);
    reference_free(&v.reference);
}

/* --- history --- */

static const char *const change_word[CHANGE_COUNT] = {"same", "worse", "better", "unsure"};
static const char *const drift_word[CHANGE_COUNT] = {"none", "falling", "rising", "unsure"};
static const char *const change_class[CHANGE_COUNT] = {"pass", "fail", "pass", "unknown"};

/* Draw a figure's speed over the campaigns, 90 % to 110 % of its baseline, with intervals. */
static void speed_picture(FILE *out, const struct history *h, const struct history_figure *g)
{
    enum { WIDE = 160, HIGH = 30 };
    double step = (WIDE - 8.0) / (h->campaigns > 1 ? h->campaigns - 1 : 1);

    html(out,
         "<svg class=\"speeds\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
         "aria-hidden=\"true\"><path class=\"grid strong\" d=\"M0 15H160\"/>",
         WIDE, HIGH, WIDE, HIGH);
    for (int k = 0; k < h->campaigns; k++) {
        const struct history_value *v = &g->at[k];
        double y[3] = {v->lo, v->speed, v->hi};
        if (!isfinite(v->speed) || !isfinite(v->lo) || !isfinite(v->hi))
            continue;
        for (int i = 0; i < 3; i++)
            y[i] = HIGH / 2.0 * (1 - fmax(-1, fmin(1, (y[i] - 1) / 0.1)));
        html(
            out,
            "<path class=\"span\" d=\"M%.1f %.1fV%.1f\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>",
            4 + step * k, y[0], y[2], 4 + step * k, y[1]);
    }
    html(out, "</svg>");
}

static void history_row(FILE *out, const struct history *h, const struct history_figure *g)
{
    const struct history_value *last = &g->at[h->campaigns - 1];
    char before[UNITS_TEXT], now[UNITS_TEXT];
    enum change worst = g->now == CHANGE_WORSE || g->drift == CHANGE_WORSE ? CHANGE_WORSE : g->now;
    char *(*text)(char buf[UNITS_TEXT], double x) = g->rate ? units_rate_text : units_seconds_text;

    html(
        out,
        "<tr class=\"%s\"><td class=\"is\">%s</td><td>%s</td><th scope=\"row\">%s</th><td "
        "class=\"n\" data-v=\"%.6g\">%s</td><td class=\"n\" data-v=\"%.6g\">%s</td><td class=\"n\" "
        "data-v=\"%.6g\">%+.1f %%</td><td>",
        change_class[worst], change_word[g->now], drift_word[g->drift], g->what, g->baseline,
        text(before, g->baseline), last->value, text(now, last->value), last->speed,
        100 * (last->speed - 1));
    speed_picture(out, h, g);
    html(out, "</td></tr>\n");
}

static void history_parts(FILE *out, const struct history *h)
{
    if (!h->parts)
        return;
    html_table(out, "oldpartstable", "Parts, and their speed in each campaign, the oldest first",
               "Change|Part|Speeds");
    for (int i = 0; i < h->parts; i++) {
        const struct history_part *p = &h->part[i];
        html(out, "<tr><td>%s</td><th scope=\"row\">%s</th><td>",
             p->returned ? "returned" : part_change_name[p->is], p->what);
        for (int k = 0; k < h->campaigns; k++)
            html(out, "%s%s", k ? ", " : "", p->speed[k]);
        html(out, "</td></tr>\n");
    }
    html_table_end(out);
}

static void history_versions(FILE *out, const struct history *h)
{
    int rows = 0;

    for (int i = 0; i < h->versions.rows; i++)
        for (int k = 1; k < h->campaigns; k++) {
            const struct version_row *r = &h->versions.row[i];
            if (!strcmp(r->value[k - 1], r->value[k]))
                continue;
            if (rows++ == 0)
                html_table(out, "versiontable", "Versions that changed",
                           "Version|Before|After|From");
            html(out, "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                 r->what, r->value[k - 1], r->value[k], h->campaign[k]->path);
        }
    if (rows)
        html_table_end(out);
}

void page_history(FILE *out, const struct page_facts *f)
{
    const struct history *h = f->in->history;
    char n[PLOT_TEXT];

    if (!h)
        return;
    html_section(out, "history", history_line(h));
    html(
        out,
        "<p class=\"lead\">This campaign beside the median of %s before it; the picture has all of "
        "them from 90 %% to 110 %% of that.</p>\n",
        plot_count(n, h->campaigns - 1, "campaign"));
    html_table(out, "historytable", "Figures of points that all campaigns have",
               "Now|Drift|Figure|#Baseline|#Last|#Speed|Campaigns");
    for (int i = 0; i < 2 * h->figures; i++) { /* figures that got worse come first */
        const struct history_figure *g = &h->figure[i % h->figures];
        bool worse = g->now == CHANGE_WORSE || g->drift == CHANGE_WORSE;
        if (worse == (i < h->figures))
            history_row(out, h, g);
    }
    html_table_end(out);
    history_parts(out, h);
    history_versions(out, h);
    for (int i = 0; i < h->lefts; i++)
        html(out, "<p>Left out: %s: %s</p>\n", h->left[i].path, h->left[i].why);
    html_end(out);
}
