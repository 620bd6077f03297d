/* SPDX-License-Identifier: BSD-3-Clause */
/* page_parts.c - the parts to act on, the most important first, a card each; and their racks. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/page/page_impl.h"

/* Show the four directions of an endpoint below each other. */
static void ways(FILE *out, const struct page_facts *f, int endpoint)
{
    char share[PERCENT_TEXT], lo[PERCENT_TEXT], hi[PERCENT_TEXT], n[PLOT_TEXT];

    html(out, "<table class=\"ways\"><caption>Its pairs: median share of expected, 95 %% "
              "interval</caption><tbody>\n");
    for (int k = 0; k < WAYS; k++) {
        const struct page_share *s = &f->end[endpoint].way[k];
        if (!s->n)
            continue;
        html(out,
             "<tr><th scope=\"row\">%s</th><td><svg class=\"bar %s\" viewBox=\"0 0 120 10\" "
             "width=\"120\" height=\"10\" aria-hidden=\"true\"><path class=\"axis\" d=\"M0 "
             "5H120\"/><path class=\"fill\" d=\"M0 5H%.1f\"/><path class=\"limit\" d=\"M%.1f "
             "0V10\"/></svg></td><td class=\"n\"><strong>%s</strong></td><td class=\"n\">%s to "
             "%s, %s</td></tr>\n",
             way_name[k], s->mid < f->limit ? "fail" : "pass", 100 * fmin(1.2, s->mid),
             100 * f->limit, percent_text(share, s->mid), percent_text(lo, s->lo),
             percent_text(hi, s->hi), plot_count(n, s->n, "pair"));
    }
    html(out, "</tbody></table>\n");
}

static void title(FILE *out, const struct part_row *r, int number)
{
    char speed[PART_SPEED], lo[PERCENT_TEXT], hi[PERCENT_TEXT], share[PERCENT_TEXT];
    bool slow = r->state == STATE_SLOW;

    html(out,
         "<header><span class=\"mark\" aria-hidden=\"true\">%s</span><h3>%s <span "
         "class=\"sub\">%d: %s, %s%s%s; confidence %s</span></h3><p "
         "class=\"figure\"><strong>%s</strong>",
         page_mark_look[page_mark_of(r)].sign, r->name, number, part_kind_name[r->kind],
         part_state_name[r->state], *r->over ? " over " : "", r->over,
         confidence_name[r->confidence],
         slow ? percent_text(share, r->factor) : part_speed(r, speed));
    if (slow)
        html(out, "of %s", r->kind == PART_KIND_FABRIC ? "the reference" : "its like");
    if (slow && isfinite(r->lo) && isfinite(r->hi))
        html(out, ", %s to %s", percent_text(lo, r->lo), percent_text(hi, r->hi));
    html(out, "</p></header>\n");
}

static void place(FILE *out, const struct part_row *r)
{
    if (!*r->where && !*r->missing)
        return;
    html(out, "<dl class=\"place\">");
    if (*r->where)
        html(out, "<div><dt>Place</dt><dd>%s</dd></div>", r->where);
    if (*r->missing)
        html(out, "<div class=\"missing\"><dt>Not known</dt><dd>%s</dd></div>", r->missing);
    html(out, "</dl>\n");
}

static void evidence(FILE *out, const struct page_facts *f, const struct part_row *r)
{
    char pairs[PLOT_TEXT], partners[PLOT_TEXT];

    html(out, "<h4>Evidence</h4>\n<p>%s with %s, %d measured alone</p>\n",
         plot_count(pairs, r->pairs, "pair"), plot_count(partners, r->partners, "partner"),
         r->alone);
    if (r->exception >= 0)
        html(out, "<p>%s</p>\n", f->m->exception[r->exception].why);
    if (r->below)
        html(out, "<p><strong>Below:</strong> %s</p>\n", r->below->text);
    if (*r->trouble)
        html(out, "<p><strong>Counters:</strong> %s</p>\n", r->trouble);
    if (r->places == 1 && r->place[0].endpoint >= 0)
        ways(out, f, r->place[0].endpoint);
}

/* Button that shows the endpoint's row of the map; needs scripts. */
static void show(FILE *out, const struct page_facts *f, const struct part_row *r)
{
    int endpoint = r->places ? r->place[0].endpoint : -1;

    for (int i = 0; endpoint < 0 && r->places && i < f->t->endpoints; i++)
        if (topo_at(f->t, i, LEVEL_HOST) == r->place[0].host)
            endpoint = i;
    if (endpoint >= 0 && f->pairs && f->blocks > 1)
        html(out,
             "<p><button class=\"plain\" type=\"button\" data-block=\"%d\" hidden>its pairs in the "
             "map</button></p>\n",
             f->end[endpoint].block);
}

/* Write "+3.1 %", "no step ends" or "". */
static char *part_cost(const struct part_row *r, char buf[PART_SPEED])
{
    if (isinf(r->cost))
        snprintf(buf, PART_SPEED, "no step ends");
    else
        snprintf(buf, PART_SPEED, isnan(r->cost) ? "%s" : "%s%.1f %%", "+", 100 * r->cost);
    if (isnan(r->cost))
        *buf = '\0';
    return buf;
}

static void card(FILE *out, const struct page_facts *f, const struct part_row *r, int number)
{
    const char *job = f->in->parts->job;
    char cost[PART_SPEED];

    html(out, "<article class=\"part %s\" id=\"part-%d\">\n", page_mark_look[page_mark_of(r)].css,
         number);
    title(out, r, number);
    place(out, r);
    html(out, "<div class=\"cols\"><div>");
    evidence(out, f, r);
    html(out, "</div><div><h4>Next step</h4>\n<p>%s</p>\n<p class=\"from\">%s</p>\n", r->next,
         r->source);
    if (*part_cost(r, cost) && job)
        html(out, "<h4>What it costs</h4>\n<p><strong>%s</strong>, %s, with this part only</p>\n",
             cost, job);
    show(out, f, r);
    html(out, "</div></div>\n</article>\n");
}

void page_parts(FILE *out, const struct page_facts *f)
{
    const struct parts *p = f->in->parts;
    char n[PLOT_TEXT];

    html_section(out, "parts",
                 p->rows ? mem_printf("%s to act on, worst first", plot_count(n, p->rows, "part"))
                         : mem_strdup("No part stands out from its like"));
    for (int i = 0; i < p->rows; i++)
        card(out, f, &p->row[i], i + 1);
    for (int i = 0; i < p->onlies; i++)
        html(out, "<p class=\"lead\">%s</p>\n", p->only[i]);
    html_end(out);
}

/* --- racks in elevation: a row per host, from below; a cell per endpoint.  If there are many
 * racks, those without a marked part are shown as tiles --- */

enum {
    RACKS_DRAWN = 16,  /* with more racks, unmarked ones are tiles */
    RACKS_MARKED = 24, /* largest number of marked racks drawn */
    LEFT = 30,
    CELLS = 120,
    NAME_MOST = 5, /* length of a row's name */
    ROW = 13
};

struct rack_picture {
    const struct page_facts *f;
    const struct page_block *b;
    int cols, *used; /* number of cells per row so far */
};

/* Length of the common start of a block's host names, up to their number. */
static size_t common(const struct page_facts *f, const struct page_block *b)
{
    const char *first = f->t->host[b->host[0]].name;
    size_t n = strlen(first);

    for (int i = 1; i < b->hosts; i++) {
        const char *name = f->t->host[b->host[i]].name;
        size_t k = 0;
        while (k < n && name[k] == first[k])
            k++;
        n = k;
    }
    while (n && isdigit((unsigned char)first[n - 1]))
        n--;
    return b->hosts > 1 ? n : 0;
}

static int columns(const struct page_facts *f, const struct page_block *b)
{
    int *used = mem_ints(b->hosts, 0), most = 1;

    for (int i = 0; i < b->count; i++) {
        int n = ++used[f->end[f->order[b->first + i]].row];
        most = n > most ? n : most;
    }
    free(used);
    return most;
}

/* Draw equal cells as one path, to keep a rack small; marked cells carry their sign. */
static void cells(FILE *out, struct rack_picture *p, enum page_mark mark, bool seen)
{
    const double w = (double)CELLS / p->cols, gap = w > 4 ? 1 : 0.3;
    int n = 0;

    memset(p->used, 0, (size_t)p->b->hosts * sizeof(int));
    for (int i = 0; i < p->b->count; i++) {
        const struct page_end *e = &p->f->end[p->f->order[p->b->first + i]];
        double x = LEFT + w * p->used[e->row]++, y = ROW * (p->b->hosts - 1 - e->row) + 1;
        if (e->mark != mark || (mark == MARK_NONE && (e->partners > 0) != seen))
            continue;
        if (n++ == 0)
            html(out, "<path class=\"%s\" d=\"", seen ? page_mark_look[mark].css : "none");
        html(out, "M%.5g %.4gh%.4gv%dh-%.4gz", x, y, w - gap, ROW - 2, w - gap);
    }
    if (n)
        html(out, "\"/>\n");
}

static void signs(FILE *out, struct rack_picture *p)
{
    const double w = (double)CELLS / p->cols;

    memset(p->used, 0, (size_t)p->b->hosts * sizeof(int));
    for (int i = 0; i < p->b->count; i++) {
        const struct page_end *e = &p->f->end[p->f->order[p->b->first + i]];
        double x = LEFT + w * (p->used[e->row]++ + 0.5);
        if (e->mark > MARK_BEHIND && w >= 9)
            html(out, "<text class=\"sign\" x=\"%.5g\" y=\"%d\">%s</text>\n", x,
                 ROW * (p->b->hosts - 1 - e->row) + ROW - 4, page_mark_look[e->mark].sign);
    }
}

/* Name rows by slot, or by the differing part of the host names. */
static void row_names(FILE *out, const struct rack_picture *p)
{
    size_t skip = common(p->f, p->b);

    for (int i = 0; i < p->b->hosts; i++) {
        const char *name = p->f->t->host[p->b->host[i]].name;
        int slot = page_slot(p->f, p->b, i);
        char end[16] = "";
        if (slot < 0 && strlen(name) - skip <= NAME_MOST)
            snprintf(end, sizeof(end), "%s", name + skip);
        else
            snprintf(end, sizeof(end), "%d", slot < 0 ? i : slot);
        html(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT - 4,
             ROW * (p->b->hosts - 1 - i) + ROW - 3, end);
    }
}

static void rack(FILE *out, const struct page_facts *f, int number)
{
    const struct page_block *b = &f->block[number];
    struct rack_picture p = {f, b, columns(f, b), mem_ints(b->hosts, 0)};
    char least[PERCENT_TEXT], marked[PLOT_TEXT];

    if (b->marked)
        snprintf(marked, sizeof(marked), "%d at fault", b->marked);
    else if (b->behind)
        snprintf(marked, sizeof(marked), "%d behind a slow part", b->behind);
    else
        snprintf(marked, sizeof(marked), "none at fault");
    percent_text(least, b->least);
    html(out,
         "<figure class=\"rack%s\"><figcaption><strong>%s</strong> %s</figcaption>\n<svg "
         "viewBox=\"0 0 "
         "%d %d\" role=\"img\" tabindex=\"0\" data-block=\"%d\" data-cols=\"%d\" data-left=\"%d\" "
         "aria-label=\"%s: "
         "%d "
         "hosts, %d endpoints, %s; slowest %s of expected\">\n",
         b->marked ? " hit" : "", b->name, b->marked + b->behind ? marked : least, LEFT + CELLS + 1,
         ROW * b->hosts + 1, number, p.cols, LEFT, b->name, b->hosts, b->count, marked, least);
    row_names(out, &p);
    cells(out, &p, MARK_NONE, true);
    cells(out, &p, MARK_NONE, false);
    for (enum page_mark m = MARK_BEHIND; m < MARKS; m++)
        cells(out, &p, m, true);
    signs(out, &p);
    html(out, "</svg></figure>\n");
    free(p.used);
}

static void tile(FILE *out, const struct page_facts *f, int number)
{
    const struct page_block *b = &f->block[number];
    char least[PERCENT_TEXT];

    html(out, "<li class=\"%s\" data-block=\"%d\">%s <small>%s</small></li>\n",
         b->marked + b->behind ? "hit" : "free", number, b->name, percent_text(least, b->least));
}

static char *heading(const struct page_facts *f, int marked)
{
    char n[PLOT_TEXT], rest[PLOT_TEXT];
    const char *noun = f->racks ? "rack" : "group";
    int other = f->blocks - marked;

    if (!f->blocks)
        return mem_strdup("No endpoint to draw");
    if (!marked && f->blocks == 1)
        return mem_printf("%s holds no endpoint at fault", f->block[0].name);
    if (!marked)
        return mem_printf("None of %s holds an endpoint at fault", plot_count(n, f->blocks, noun));
    for (int i = 0; i < f->blocks; i++)
        if (marked == 1 && f->block[i].marked)
            return other ? mem_printf("%s holds all endpoints at fault; %s without",
                                      f->block[i].name, plot_count(rest, other, noun))
                         : mem_printf("%s holds all endpoints at fault", f->block[i].name);
    return other ? mem_printf("%s hold the endpoints at fault, %d are without",
                              plot_count(n, marked, noun), other)
                 : mem_printf("Endpoints at fault are in all of %s", plot_count(n, marked, noun));
}

static void legend(FILE *out)
{
    html(out,
         "<p class=\"legend\"><span><span class=\"key ok\"></span>%s</span> <span><span "
         "class=\"key none\"></span>not measured</span>",
         page_mark_look[MARK_NONE].word);
    for (enum page_mark m = MARK_BEHIND; m < MARKS; m++)
        html(out, " <span><span class=\"key %s\">%s</span>%s</span>", page_mark_look[m].css,
             page_mark_look[m].sign, page_mark_look[m].word);
    html(out, "</p>\n");
}

void page_racks(FILE *out, const struct page_facts *f)
{
    int marked = 0, drawn = 0;

    for (int i = 0; i < f->blocks; i++)
        marked += f->block[i].marked > 0;
    html_section(out, "racks", heading(f, marked));
    html(out,
         "<p class=\"lead\">A row is a host, from below in the order of %s; a cell is an endpoint, "
         "coloured by the worst part that it is in.</p>\n<div class=\"racks\">\n",
         f->blocks && f->block[0].slots ? "slots" : "names");
    for (int i = 0; i < f->blocks; i++)
        if (f->blocks <= RACKS_DRAWN || (f->block[i].marked && drawn++ < RACKS_MARKED))
            rack(out, f, i);
    html(out, "</div>\n");
    if (f->blocks > RACKS_DRAWN) {
        html(out,
             "<ul class=\"tiles\" aria-label=\"%s, each with its slowest endpoint's share of "
             "expected\">\n",
             f->racks ? "racks" : "groups");
        for (int i = 0; i < f->blocks; i++)
            tile(out, f, i);
        html(out, "</ul>\n");
    }
    legend(out);
    html(out, "<p id=\"rackread\" class=\"read\" aria-live=\"polite\" hidden></p>\n");
    html_end(out);
}
