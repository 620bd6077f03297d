/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"
#include "report/text/report.h"

enum { FIGURE = 48, TOGETHER = CASE_COMBINATION + 128, COUNTED = 128 };

static const char *const kind_title[CASE_KINDS] = {"predicted times", "memory of a GPU",
                                                   "arithmetic of the published figures"};

static const char *const basis_title[CASE_BASES] = {
    "of jobs without any step that was known", "of jobs with a setting from a known figure",
    "of jobs with steps that constants were fitted to"};

static char *published(char buf[FIGURE], const struct case_claim *k)
{
    char figure[FIGURE - 10];

    case_figure(figure, sizeof(figure), k->unit, k->unit->fits ? 2 - k->published : k->published);
    snprintf(buf, FIGURE, "%s%s", k->at_least ? "at least " : "", figure);
    return buf;
}

static char *ours(char buf[FIGURE], const struct case_claim *k)
{
    return case_figure(buf, FIGURE, k->unit, k->ours);
}

/* What is known beforehand is said beside the verdict. */
static const char *known(const struct case_claim *k)
{
    return k->kind != CASE_TIME || k->basis == CASE_PREDICTED ? ""
           : k->basis == CASE_FITTED                          ? " (fitted)"
                                                              : " (anchored)";
}

static void claim_text(FILE *out, const struct case_claim *k)
{
    char said[FIGURE], got[FIGURE];

    fprintf(out, "  %s\n    published %s, ours %s: %s%s%s%s\n    %s\n", k->text, published(said, k),
            ours(got, k), case_verdict_name[k->verdict], known(k),
            case_unexpected(k) ? "; expected: " : "",
            case_unexpected(k) ? case_verdict_name[k->expect] : "", k->reason);
    if (k->note)
        fprintf(out, "    %s\n", k->note);
}

static void job_text(FILE *out, const struct case_job *j)
{
    char sec[UNITS_TEXT];

    fprintf(out, "  job %s: %s on %d GPUs, step %s, %.0f GB", j->name, j->opts.model, j->gpus,
            units_seconds_text(sec, j->sec), j->bytes / 1e9);
    if (j->capacity > 0)
        fprintf(out, " of %.0f", j->capacity / 1e9);
    fputc('\n', out);
}

static char *together(char buf[TOGETHER], const struct casefile *c)
{
    snprintf(buf, TOGETHER, "%d of the %d claims that can hold do with %s%s", c->held, c->held_of,
             c->held_by,
             c->held < c->held_of ? "; no values of the unknowns make all of them true" : "");
    return buf;
}

static void case_text(FILE *out, const struct casefile *c)
{
    char text[TOGETHER];

    fprintf(out, "%s\n%s, %s\n", c->title, c->publication, c->date);
    if (c->url)
        fprintf(out, "%s\n", c->url);
    for (int i = 0; i < c->assumes; i++)
        fprintf(out, "  assumed: %s\n", c->assumed[i]);
    for (int i = 0; i < c->unknowns; i++) {
        const struct case_unknown *u = &c->unknown[i];
        fprintf(out, "  unknown: %s:", u->key);
        for (int v = 0; v < u->values; v++)
            fprintf(out, " %s", u->value[v]);
        fprintf(out, " (%s)\n", u->why);
    }
    for (int i = 0; i < c->solves; i++)
        fprintf(out, "  solved: %s = %.4g (%s)\n", c->solve[i].key, c->solve[i].found,
                c->solve[i].why);
    for (int i = 0; i < c->jobs; i++)
        job_text(out, &c->job[i]);
    for (int i = 0; i < c->claims; i++)
        claim_text(out, &c->claim[i]);
    if (c->unknowns)
        fprintf(out, "  together: %s\n", together(text, c));
    fputc('\n', out);
}

/* Print text without bars, which would end the cell. */
static void bar_free(FILE *out, const char *text)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, out);
}

static void case_markdown(FILE *out, const struct casefile *c)
{
    char text[FIGURE], all[TOGETHER];

    fprintf(out, "| **");
    if (c->url)
        fputc('[', out);
    bar_free(out, c->title);
    if (c->url)
        fprintf(out, "](%s)", c->url);
    fprintf(out, "** (%s) | | | |\n", c->date);
    for (int i = 0; i < c->claims; i++) {
        const struct case_claim *k = &c->claim[i];
        fputs("| ", out);
        bar_free(out, k->text);
        fprintf(out, " | %s", published(text, k));
        fprintf(out, " | %s | %s%s", ours(text, k), case_verdict_name[k->verdict], known(k));
        if (k->verdict != CASE_REPRODUCED) {
            fputs(": ", out);
            bar_free(out, k->reason);
        }
        fputs(" |\n", out);
    }
    if (c->held < c->held_of)
        fprintf(out, "| all of these together | | | %s |\n", together(all, c));
}

/* "12 reproduced, 3 consistent"; NULL: no claim has a verdict. */
static char *counted(char buf[COUNTED], const int of[CASE_VERDICTS])
{
    size_t used = 0;

    for (int v = 0; v < CASE_VERDICTS; v++)
        if (of[v] > 0)
            used += (size_t)snprintf(buf + used, COUNTED - used, "%s%d %s", used ? ", " : "", of[v],
                                     case_verdict_name[v]);
    return used ? buf : NULL;
}

void cases_text(FILE *out, const struct casefile *c, int n, bool markdown)
{
    struct case_counts counts = cases_count(c, n);
    char buf[COUNTED];

    if (markdown)
        fputs("| claim | published | ours | verdict |\n|---|---|---|---|\n", out);
    for (int i = 0; i < n; i++)
        (markdown ? case_markdown : case_text)(out, &c[i]);
    for (int k = 0; k < CASE_KINDS; k++) {
        if (counted(buf, counts.of[k]))
            fprintf(out, markdown ? "| **%s** | | | %s |\n" : "%s: %s\n", kind_title[k], buf);
        for (int b = 0; k == CASE_TIME && b < CASE_BASES; b++)
            if (counted(buf, counts.times[b]))
                fprintf(out, markdown ? "| %s | | | %s |\n" : "  %s: %s\n", basis_title[b], buf);
    }
}
