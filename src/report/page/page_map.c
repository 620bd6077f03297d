/* SPDX-License-Identifier: BSD-3-Clause */
/* page_map.c - pairs: the map of shares, the slowest pairs as a table, and the tail of each
 * tier. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/page/page_impl.h"

enum { ENDS_MOST = 96, HOSTS_MOST = 200, WORST_ROWS = 20, OF_PART = 5, TAIL_TIERS = 6 };
enum { STILL_LEFT = 84, STILL_TOP = 20, STILL_SIDE = 640 };

/* Shares at which a colour begins; the first begins at 0, the sixth is the expected range. */
static const double step[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1.05, 1.15};
enum { STEP_NORMAL = 5, STEPS = sizeof(step) / sizeof(*step), STEP_WRONG, STEP_DEAD };

static int colour_of(double share)
{
    int k = 0;

    while (k < STEPS && share >= step[k])
        k++;
    return k;
}

/* --- map without a script: groups are endpoints, hosts or blocks --- */

struct still {
    int *group; /* indexed by endpoint */
    int groups;
    signed char *at; /* colour step of the worst pair; -1: not measured */
};

/* Order of badness: wrong data, no data, slow. */
static int badness(int k)
{
    return k == STEP_WRONG ? STEPS + 2 : k == STEP_DEAD ? STEPS + 1 : STEPS - k;
}

static void make_still(struct still *s, const struct page_facts *f)
{
    int n = f->t->endpoints;

    s->group = mem_ints(n, 0);
    bool ends = n <= ENDS_MOST, hosts = !ends && f->t->hosts <= HOSTS_MOST;
    for (int i = 0, host = -1; i < n; i++) { /* in the order of pictures */
        int id = f->order[i], at = topo_at(f->t, id, LEVEL_HOST);
        s->groups += ends || (hosts && at != host) ||
                     (!ends && !hosts && f->block[f->end[id].block].first == i);
        s->group[id] = s->groups - 1;
        host = at;
    }
    s->at = mem_calloc((size_t)s->groups * (size_t)s->groups, 1);
    memset(s->at, -1, (size_t)s->groups * (size_t)s->groups);
    for (int i = 0; i < f->pairs; i++) {
        const struct page_pair *p = &f->pair[i];
        if (p->by_nic && f->by_nic < f->pairs)
            continue;
        signed char *at =
            &s->at[(size_t)s->group[p->src] * (size_t)s->groups + (size_t)s->group[p->dst]];
        int k = p->wrong ? STEP_WRONG : isnan(p->share) ? STEP_DEAD : colour_of(p->share);
        if (*at == -1 || badness(k) > badness(*at))
            *at = (signed char)k;
    }
}

/* Draw the cells of a step as runs along their rows; the expected range is the background. */
static void draw_step(FILE *out, const struct still *s, int k)
{
    int n = 0;

    for (int y = 0; y < s->groups; y++)
        for (int x = 0, len; x < s->groups; x += len) {
            const signed char *row = &s->at[(size_t)y * (size_t)s->groups];
            for (len = 1; x + len < s->groups && row[x + len] == row[x]; len++)
                ;
            if (row[x] != k)
                continue;
            if (n++ == 0)
                html(out, "<path class=\"h%d\" d=\"", k);
            html(out, "M%d %dh%dv1h-%dz", x, y, len, len);
        }
    if (n)
        html(out, "\"/>\n");
}

/* Draw the names of blocks at their starts, as far as there is room. */
static void still_names(FILE *out, const struct still *s, const struct page_facts *f, double cell)
{
    double row = -1e9, col = -1e9;

    for (int i = 0; i < f->blocks; i++) {
        double at = cell * s->group[f->order[f->block[i].first]];
        if (at - row >= 12)
            html(out, "<text x=\"%d\" y=\"%.1f\">%s</text>", STILL_LEFT - 4,
                 STILL_TOP + (row = at) + 9, f->block[i].name);
        if (at - col >= 54)
            html(out, "<text class=\"from\" x=\"%.1f\" y=\"%d\">%s</text>\n",
                 STILL_LEFT + (col = at), STILL_TOP - 6, f->block[i].name);
    }
}

static void still_map(FILE *out, const struct page_facts *f)
{
    struct still s = {0};

    make_still(&s, f);
    double cell = (double)STILL_SIDE / s.groups;
    html(out,
         "<svg id=\"still\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"share of expected, row "
         "sends to column; the slowest pairs are in the table below\">\n",
         STILL_LEFT + STILL_SIDE, STILL_TOP + STILL_SIDE);
    still_names(out, &s, f, cell);
    html(out,
         "<g transform=\"translate(%d %d) scale(%.6g)\"><rect class=\"h%d\" width=\"%d\" "
         "height=\"%d\"/>\n",
         STILL_LEFT, STILL_TOP, cell, STEP_NORMAL, s.groups, s.groups);
    for (int k = 0; k <= STEP_DEAD; k++)
        if (k != STEP_NORMAL)
            draw_step(out, &s, k);
    html(out, "</g></svg>\n");
    free(s.group);
    free(s.at);
}

static void legend(FILE *out, const struct page_facts *f)
{
    char limit[PERCENT_TEXT], all[PLOT_TEXT], kept[PLOT_TEXT];

    html(out, "<div class=\"scale\"><ul>\n");
    for (int k = STEPS; k >= 0; k--)
        html(out, "<li><span class=\"key h%d\"></span>%s%.0f %%%s</li>\n", k,
             k == 0 ? "below " : "from ", 100 * step[k ? k - 1 : 0],
             k == STEP_NORMAL ? ", as expected" : "");
    html(out,
         "<li><span class=\"key h%d\">\u2715</span>wrong data</li>\n<li><span class=\"key "
         "h%d\">\u2205</span>no data</li></ul>\n<p>100 %% is what the "
         "middle pair of its tier gives; slow is below %s. Deep: measured; pale: inferred from its "
         "tier and the parts on its way. A cell of several pairs shows the slowest.</p>\n",
         STEP_WRONG, STEP_DEAD, percent_text(limit, f->limit));
    int keep = f->keep[0] + f->keep[1];
    if (keep < f->pairs)
        html(out,
             "<p>Of %s this page keeps %s: all that are slow or wrong and a sample of the "
             "others.</p>\n",
             plot_count(all, f->pairs, "measured pair"), plot_count(kept, keep, ""));
    html(out, "</div>\n");
}

/* --- slowest pairs --- */

static int by_share(const void *x, const void *y)
{
    const struct page_pair *a = *(const struct page_pair *const *)x,
                           *b = *(const struct page_pair *const *)y;

    if (a->wrong != b->wrong)
        return b->wrong - a->wrong;
    return (a->share > b->share) - (a->share < b->share);
}

static void pair_row(FILE *out, const struct page_facts *f, const struct page_pair *p)
{
    char src[300], dst[300], share[PERCENT_TEXT], lo[PERCENT_TEXT], hi[PERCENT_TEXT],
        rate[UNITS_TEXT];

    html(out,
         "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td><td class=\"n\" "
         "data-v=\"%.6g\">%s</td>",
         page_endpoint(f, p->src, src), page_endpoint(f, p->dst, dst),
         f->m->tier[p->tier].rule.name, p->wrong ? -1 : p->share,
         p->wrong ? "wrong data" : percent_text(share, p->share));
    if (isfinite(p->lo) && isfinite(p->share))
        html(out, "<td class=\"n\">%s to %s</td><td class=\"n\" data-v=\"%.6g\">%s</td>",
             percent_text(lo, p->lo), percent_text(hi, p->hi), p->share * f->expected[p->tier],
             units_rate_text(rate, p->share * f->expected[p->tier]));
    else
        html(out, "<td class=\"n\">-</td><td class=\"n\">-</td>");
    html(out, "<td>%s</td></tr>\n", p->alone ? "alone" : "beside others");
}

static void slowest(FILE *out, const struct page_facts *f)
{
    const struct page_pair **v = mem_calloc((size_t)f->pairs, sizeof(*v));
    int *told = mem_ints(f->in->parts->rows, 0);

    for (int i = 0; i < f->pairs; i++)
        v[i] = &f->pair[i];
    qsort(v, (size_t)f->pairs, sizeof(*v), by_share);
    html(out, "<details><summary>The slowest pairs as a table</summary>\n");
    html_table(out, "pairtable", "Wrong data first, then by share; five of a part",
               "Sends|Receives|Tier|#Share|#95 % interval|#Bandwidth|Measured");
    for (int i = 0, rows = 0; i < f->pairs && rows < WORST_ROWS; i++) {
        int a = f->end[v[i]->src].part, b = f->end[v[i]->dst].part, part = a > b ? a : b;
        if (part >= 0 && told[part]++ >= OF_PART)
            continue;
        pair_row(out, f, v[i]);
        rows++;
    }
    html_table_end(out);
    html(out, "</details>\n");
    free(told);
    free(v);
}

/* --- tail of each tier --- */

enum { WIDTH = 320, HEIGHT = 200, X0 = 44, X1 = 310, Y0 = 16, Y1 = 166 };

struct tail {
    double *v;
    int n;
    double from, to, floor; /* range of shares; smallest fraction on the vertical axis */
};

static double x_of(const struct tail *t, double share)
{
    return X0 + (X1 - X0) * (fmax(t->from, fmin(t->to, share)) - t->from) / (t->to - t->from);
}

static double y_of(const struct tail *t, double part)
{
    return Y1 + (Y0 - Y1) * (1 - log10(fmax(part, t->floor)) / log10(t->floor));
}

/* Draw ranks 1, 2, 3 ... with increasing steps, because a log axis cannot show more. */
static void tail_line(FILE *out, const struct tail *t, double *v, int n, const char *kind)
{
    if (n == 0)
        return;
    stats_sort(v, n);
    html(out, "<path class=\"%s\" d=\"M%.1f %.1f", kind, x_of(t, v[0]), (double)Y1);
    for (int k = 1, by = 1; k <= n; k += by) {
        html(out, "V%.1fH%.1f", y_of(t, (double)k / n), x_of(t, v[k < n ? k : n - 1]));
        by = k / 12 + 1;
    }
    html(out, "V%d\"/>\n", Y0);
}

static void tail_axes(FILE *out, const struct tail *t, double limit)
{
    for (int p = 0; p >= log10(t->floor) - 1e-9; p--)
        html(out,
             "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">%g "
             "%%</text>\n",
             X0, y_of(t, pow(10, p)), X1, X0 - 5, y_of(t, pow(10, p)) + 4, 100 * pow(10, p));
    for (double x = t->from; x <= t->to + 1e-9; x += t->to - t->from > 0.6 ? 0.2 : 0.1)
        html(out, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%.0f %%</text>\n", x_of(t, x), Y1 + 16,
             100 * x);
    html(out,
         "<path class=\"limit\" d=\"M%.1f %dV%d\"/><text class=\"limit\" x=\"%.1f\" y=\"%d\">limit "
         "%.0f %%</text>\n",
         x_of(t, limit), Y0, Y1, x_of(t, limit) - 4, Y0 - 5, 100 * limit);
}

static void tail_panel(FILE *out, const struct page_facts *f, int tier)
{
    struct tail t = {mem_calloc((size_t)f->pairs + 1, sizeof(double)), 0, 0.8, 1.1, 1};
    double *good = mem_calloc((size_t)f->pairs + 1, sizeof(double));
    char n[PLOT_TEXT], slow[PLOT_TEXT], least[PERCENT_TEXT];
    int goods = 0, below = 0;

    for (int i = 0; i < f->pairs; i++) {
        const struct page_pair *p = &f->pair[i];
        if (p->tier != tier || isnan(p->share))
            continue;
        t.v[t.n++] = p->share;
        below += p->share < f->limit;
        if (p->clean)
            good[goods++] = p->share;
    }
    if (t.n) {
        stats_sort(t.v, t.n);
        t.from = fmax(0, fmin(0.8, floor(t.v[0] * 10 - 0.3) / 10));
        t.to = fmin(2, fmax(1.1, ceil(stats_quantile(t.v, t.n, 0.999) * 10) / 10));
        t.floor = pow(10, floor(log10(1.0 / t.n) + 1e-9));
        t.floor = fmin(t.floor, 0.1);
        html(out,
             "<figure class=\"panel\"><figcaption><strong>%s</strong> %s, %s below the limit; "
             "slowest %s</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"how "
             "many pairs of tier %s are at most how fast\">\n",
             f->m->tier[tier].rule.name, plot_count(n, t.n, "pair"), plot_count(slow, below, ""),
             percent_text(least, t.v[0]), WIDTH, HEIGHT, f->m->tier[tier].rule.name);
        tail_axes(out, &t, f->limit);
        if (goods < t.n)
            tail_line(out, &t, good, goods, "line healthy");
        tail_line(out, &t, t.v, t.n, "line all");
        html(out,
             "<text class=\"x\" x=\"%d\" y=\"%d\">share of expected "
             "bandwidth</text></svg></figure>\n",
             (X0 + X1) / 2, HEIGHT - 3);
    }
    free(good);
    free(t.v);
}

static char *tail_heading(const struct page_facts *f)
{
    double least = INFINITY, healthy = INFINITY;
    char text[PERCENT_TEXT];

    for (int i = 0; i < f->pairs; i++) {
        const struct page_pair *p = &f->pair[i];
        least = fmin(least, p->share);
        if (p->clean)
            healthy = fmin(healthy, p->share);
    }
    if (!isfinite(healthy))
        return mem_strdup("Every measured pair passes a part at fault");
    return healthy > least
               ? mem_printf("Without the parts at fault the slowest pair reaches %s",
                            percent_text(text, healthy))
               : mem_printf("The slowest pair reaches %s of expected", percent_text(text, least));
}

/* --- the section --- */

static char *heading(const struct page_facts *f)
{
    char n[PLOT_TEXT], w[PLOT_TEXT];
    int odd = f->slow + f->wrong + f->failed;

    if (!f->pairs)
        return mem_strdup("No pair's bandwidth is at hand");
    if (!odd)
        return mem_printf("No slow one among %s", plot_count(n, f->pairs, "measured pair"));
    char *text = mem_printf("%s", plot_count(n, f->slow, "slow pair"));
    if (f->wrong)
        text = mem_append(text, ", %s", plot_count(w, f->wrong, "pair with wrong data"));
    if (f->wrong > 1) { /* "pairs with wrong data" */
        free(text);
        text = mem_printf("%s, %s pairs with wrong data", n, plot_count(w, f->wrong, ""));
    }
    if (f->failed)
        text = mem_append(text, ", %s without data", plot_count(w, f->failed, ""));
    return f->slow_clean ? mem_append(text, "; no part explains %s of the slow",
                                      plot_count(w, f->slow_clean, ""))
                         : mem_append(text, ", all on the way of a part at fault");
}

void page_map(FILE *out, const struct page_facts *f)
{
    char size[UNITS_TEXT];

    html_section(out, "map", heading(f));
    if (!f->pairs) {
        html(out, "<p>points.tsv of the campaign has them.</p>\n");
        html_end(out);
        return;
    }
    html(out,
         "<p class=\"lead\">Row sends to column, messages of %s.<span class=\"script\"> Point at a "
         "cell, or focus the map and use the arrow keys; Enter or a click opens two groups, Escape "
         "goes back.</span></p>\n"
         "<div class=\"controls\" hidden><label>from <select id=\"from\"></select></label> "
         "<label>to <select id=\"to\"></select></label> <label><input type=\"checkbox\" "
         "id=\"only\"> measured only</label> <label id=\"bynic\"><input type=\"checkbox\" "
         "id=\"nics\"> through the NICs</label> <button id=\"whole\" type=\"button\">whole "
         "map</button></div>\n"
         "<div class=\"mapbox\"><div class=\"mapframe\"><canvas id=\"heat\" tabindex=\"0\" "
         "role=\"application\" aria-label=\"map of pairs, row sends to column\" "
         "aria-describedby=\"mapread\" hidden></canvas>\n",
         units_bytes_text(size, f->bytes));
    still_map(out, f);
    html(out, "</div>\n");
    legend(out, f);
    html(out, "</div>\n<p id=\"mapread\" class=\"read\" aria-live=\"polite\" hidden></p>\n");
    slowest(out, f);
    char *text = tail_heading(f);
    html(out,
         "<h3 id=\"tail\">%s</h3>\n<p class=\"lead\">The part of a tier's pairs that is at most so "
         "fast, on a logarithmic axis. Solid: all; dashed: that pass no part at fault.</p>\n<div "
         "class=\"panels\">\n",
         text);
    free(text);
    for (int i = 0; i < f->m->tiers && i < TAIL_TIERS; i++)
        tail_panel(out, f, i);
    html(out, "</div>\n");
    html_end(out);
}
