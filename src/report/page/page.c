/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - the page from top to bottom: head, band, sections, files, signatures, data. */
#include "report/page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/page/page_impl.h"

/* Embed style and script from the files beside this one (Makefile). */
#define EMBED(name, file)                                                                          \
    __asm__(".section .rodata\n" #name ":\n.incbin \"" file "\"\n.byte 0\n.previous\n");           \
    extern const char name[]
EMBED(page_css, "src/report/page/page.css");
EMBED(page_js, "src/report/page/page.js");

/* --- head --- */

static char *title_of(const struct page_facts *f)
{
    const struct page *in = f->in;
    char racks[PLOT_TEXT], ends[PLOT_TEXT];
    const char *model = f->t->endpoints ? f->t->endpoint[0].model : "";

    if (in->title)
        return mem_strdup(in->title);
    plot_count(ends, f->t->endpoints,
               f->t->endpoints && f->t->endpoint[0].kind == ENDPOINT_GPU ? "GPU" : "endpoint");
    return f->racks
               ? mem_printf("%s, %s%s%s", plot_count(racks, f->t->group[LEVEL_RACK].count, "rack"),
                            ends, *model ? ", " : "", model)
               : mem_printf("%s%s%s", ends, *model ? ", " : "", model);
}

static void head(FILE *out, const struct page_facts *f, const char *title)
{
    char script[HTML_HASH], style[HTML_HASH];

    html(out,
         "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
         "'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta name=\"generator\" content=\"railgauge " RG_VERSION "\">\n"
         "<title>%s: %s</title>\n<style>",
         html_hash(script, page_js, strlen(page_js)), html_hash(style, page_css, strlen(page_css)),
         accept_name[f->in->accept->verdict], title);
    fputs(page_css, out);
    html(out, "</style>\n</head>\n");
}

/* --- band with the verdict --- */

static void fact(FILE *out, const char *name, const char *value)
{
    if (value && *value)
        html(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
}

static const char *time_of(const json_t *provenance)
{
    const char *text = json_string_value(json_object_get(provenance, "time_utc"));

    return text ? text : "";
}

static char *measured_text(const struct page_facts *f)
{
    double measured = 0, possible = 0;
    char n[PLOT_TEXT], of[PLOT_TEXT], share[PERCENT_TEXT];

    for (int i = 0; i < f->m->tiers; i++) {
        measured += f->m->tier[i].measured;
        possible += f->m->tier[i].possible;
    }
    return possible > 0 ? mem_printf("%s of %s (%s)", plot_count(n, lround(measured), ""),
                                     plot_count(of, lround(possible), "pair"),
                                     percent_text(share, measured / possible))
                        : NULL;
}

/* "2026-11-23 16:34:19 to 16:34:21 UTC" */
static char *when(const char *began, const char *ended)
{
    enum { DAY = 10, TIME = 8, ALL = DAY + 1 + TIME };
    bool both = strlen(began) > ALL && strcmp(began, ended) != 0, day = strncmp(began, ended, DAY);

    if (strlen(ended) <= ALL)
        return NULL;
    if (!both)
        return mem_printf("%.*s %.*s UTC", DAY, ended, TIME, ended + DAY + 1);
    return mem_printf("%.*s %.*s to %.*s%s%.*s UTC", DAY, began, TIME, began + DAY + 1,
                      day ? DAY : 0, ended, day ? " " : "", TIME, ended + DAY + 1);
}

static void facts(FILE *out, const struct page_facts *f)
{
    const struct accept *a = f->in->accept;
    char ends[PLOT_TEXT], hosts[PLOT_TEXT];
    char *text;

    html(out, "<dl class=\"facts\">\n");
    text = mem_printf("%s on %s", plot_count(ends, f->t->endpoints, "endpoint"),
                      plot_count(hosts, f->t->hosts, "host"));
    fact(out, "Tested", text);
    free(text);
    text = mem_printf("%s, transport %s", f->m->fabric ? f->m->fabric : "of no preset",
                      f->m->transport ? f->m->transport : "not known");
    fact(out, "Fabric", text);
    free(text);
    text = when(time_of(f->provenance), time_of(f->m->provenance));
    fact(out, "When", text);
    free(text);
    text = matrix_seen_text(f->m);
    if (!text)
        text = measured_text(f);
    fact(out, "Seen", text);
    free(text);
    text = mem_printf("%s; limits: %s", f->in->against ? f->in->against : "no reference",
                      f->in->limits_name);
    fact(out, "Judged against", text);
    free(text);
    text = mem_printf("%d pass, %d warn, %d fail, %d unknown", a->count[ACCEPT_PASS],
                      a->count[ACCEPT_WARN], a->count[ACCEPT_FAIL], a->count[ACCEPT_UNKNOWN]);
    fact(out, "Checks", text);
    free(text);
    html(out, "</dl>\n");
}

static const char *const verdict_sign[ACCEPT_IS_COUNT] = {"\u2713", "!", "\u2715", "?"};
static const char *const verdict_class[ACCEPT_IS_COUNT] = {"pass", "warn", "fail", "unknown"};

/* The sentence without its first word, which is shown beside it. */
static const char *sentence(const char *line)
{
    const char *colon = strchr(line, ':');

    return colon && colon[1] == ' ' ? colon + 2 : line;
}

/* First parts by name, each a link to its card. */
static void to_act_on(FILE *out, const struct parts *p)
{
    enum { MOST = 4 };
    char speed[PART_SPEED], share[PERCENT_TEXT];

    if (!p->rows)
        return;
    html(out, "<p class=\"act\">To act on: ");
    for (int i = 0; i < p->rows && i < MOST; i++) {
        const struct part_row *r = &p->row[i];
        html(out, "%s<a href=\"#part-%d\">%s</a> (%s)", i ? ", " : "", i + 1, r->name,
             r->state == STATE_SLOW ? percent_text(share, r->factor) : part_speed(r, speed));
    }
    if (p->rows > MOST)
        html(out, " and %d more", p->rows - MOST);
    html(out, "</p>\n");
}

static void band(FILE *out, const struct page_facts *f, const char *title)
{
    enum accept_is v = f->in->accept->verdict;

    html(out,
         "<body>\n<a class=\"skip\" href=\"#parts\">to the parts</a>\n<header class=\"band "
         "%s\">\n<div "
         "class=\"wide\">\n<p class=\"what\">%s</p>\n<h1><span class=\"sign\" "
         "aria-hidden=\"true\">%s</span> "
         "%s</h1>\n<p class=\"line\">%s</p>\n",
         verdict_class[v], title, verdict_sign[v], accept_name[v], sentence(f->in->line));
    to_act_on(out, f->in->parts);
    if (f->simulated)
        html(out,
             "<p class=\"note\"><strong>A simulation, no measurement.</strong> The rates are those "
             "of "
             "%s with the noise and the faults that were asked for: this page says nothing of a "
             "real "
             "machine.</p>\n",
             f->m->fabric ? f->m->fabric : "a preset");
    facts(out, f);
    html(out, "</div>\n</header>\n");
}

static const struct {
    const char *id, *name;
    void (*write)(FILE *out, const struct page_facts *f);
} section[] = {
    {"parts", "Parts", page_parts},
    {"checks", "Checks", page_checks},
    {"racks", "Racks", page_racks},
    {"map", "Pairs", page_map},
    {"collectives", "Collectives", page_curves},
    {"history", "History", page_history},
    {"coverage", "Coverage", page_coverage},
    {"counters", "Counters", page_counters},
    {"compute", "Compute", page_compute},
    {"environment", "Environment", page_environment},
};
enum { SECTIONS = sizeof(section) / sizeof(*section) };

/* --- files --- */

static void file_row(FILE *out, const char *dir, const char *name)
{
    char *path = dir ? file_join(dir, name) : mem_strdup(name), size[PLOT_TEXT];
    char hash[HTML_HEX];
    size_t len;

    if (html_file_hex(hash, &len, path) == 0)
        html(out,
             "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td><code>%s</code></td></tr>\n",
             name, plot_count(size, (long)len, ""), hash);
    free(path);
}

static void files(FILE *out, const struct page_facts *f)
{
    static const char *const name[] = {"campaign.json", "topology.json", "plan.tsv",
                                       "points.tsv",    "matrix.json",   "prediction.json"};
    struct stat st;
    bool dir = stat(f->in->path, &st) == 0 && S_ISDIR(st.st_mode);

    html_section(out, "files", mem_strdup("Files that this page rests on"));
    html_table(out, "filetable", "What sha256sum says of each", "File|#Bytes|SHA-256");
    for (size_t i = 0; dir && i < sizeof(name) / sizeof(*name); i++)
        file_row(out, f->in->path, name[i]);
    if (!dir)
        file_row(out, NULL, f->in->path);
    html_table_end(out);
    html_end(out);
}

static void signatures(FILE *out)
{
    static const char *const who[] = {"Tested by", "For the supplier", "Accepted by"};

    html(out, "<section id=\"signatures\" aria-labelledby=\"h-signatures\">\n<h2 "
              "id=\"h-signatures\">Signatures</h2>\n<div class=\"sign-lines\">\n");
    for (int i = 0; i < 3; i++)
        html(out, "<p><span class=\"rule\"></span>%s: name, place, date</p>\n", who[i]);
    html(out, "</div>\n");
    html_end(out);
}

void page_write(FILE *out, const struct page_facts *f, json_t *data)
{
    char *title = title_of(f);

    head(out, f, title);
    band(out, f, title);
    html(out, "<nav aria-label=\"Sections\"><ul class=\"wide\">\n");
    for (int i = 0; i < SECTIONS; i++)
        if (f->in->history || section[i].write != page_history)
            html(out, "<li><a href=\"#%s\">%s</a></li>\n", section[i].id, section[i].name);
    html(out, "<li><a href=\"#files\">Files</a></li>\n</ul></nav>\n<main class=\"wide\">\n");
    for (int i = 0; i < SECTIONS; i++)
        section[i].write(out, f);
    files(out, f);
    signatures(out);
    html(out,
         "</main>\n<footer class=\"wide\">railgauge " RG_VERSION ", %s</footer>\n"
         "<div id=\"tip\" role=\"status\" hidden></div>\n"
         "<script type=\"application/json\" id=\"data\">",
         time_of(f->m->provenance));
    html_json(out, data);
    html(out, "</script>\n<script>");
    fputs(page_js, out);
    html(out, "</script>\n</body>\n</html>\n");
    free(title);
}
