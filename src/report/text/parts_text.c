/* SPDX-License-Identifier: BSD-3-Clause */
/* parts_text.c - faulty parts as blocks of text, the same on every screen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "report/text/report.h"

enum { INDENT = 14 }; /* of the texts behind their labels */

static void fact(FILE *out, const char *label, const char *text)
{
    char *line = text && *text ? mem_printf("  %-*s%s", INDENT - 2, label, text) : NULL;

    if (line)
        table_wrap(out, INDENT, "%s", line);
    free(line);
}

/* Return the bytes up to the next "; " outside of parentheses. */
static int item(const char *text)
{
    int n = 0, depth = 0;

    for (; text[n] && (depth > 0 || strncmp(text + n, "; ", 2) != 0); n++)
        depth += (text[n] == '(') - (text[n] == ')');
    return n;
}

/* Print the items of a list "one; two", each on a line of its own; numbered: steps in their order. */
static void list(FILE *out, const char *label, const char *text, bool numbered)
{
    bool many = text[item(text)] != '\0';

    for (int i = 1, n; *text; i++, text += n + (text[n] ? 2 : 0)) {
        n = item(text);
        char *line = numbered && many
                         ? mem_printf("  %-*s%d. %.*s", INDENT - 2, i > 1 ? "" : label, i, n, text)
                         : mem_printf("  %-*s%.*s", INDENT - 2, i > 1 ? "" : label, n, text);
        table_wrap(out, numbered && many ? INDENT + 3 : INDENT, "%s", line);
        free(line);
    }
}

static void cost(FILE *out, const struct part_row *r, const char *job)
{
    char *text = isnan(r->cost) ? NULL
                 : isinf(r->cost)
                     ? mem_strdup("no training step ends")
                     : mem_printf("%s: a training step takes %.1f %% longer with this part alone",
                                  job, 100 * r->cost);

    fact(out, "cost", text);
    free(text);
}

static void block(FILE *out, const struct parts *p, const struct part_row *r, bool brief)
{
    bool all = !strcmp(r->over, "everything");
    char speed[PART_SPEED],
        *line = mem_printf("%s: %s, confidence %s", r->name, part_words(r, speed),
                           confidence_name[r->confidence]);
    char *over =
        mem_printf("traffic over %s%s", strncmp(r->over, "all ", 4) ? "tier " : "", r->over);

    table_wrap_marked(out, 2, strlen(r->name), line);
    fact(out, "where", r->where);
    fact(out, "affects", all ? "all traffic" : over);
    fact(out, "evidence", r->why);
    fact(out, "counters", r->trouble);
    if (!brief) {
        cost(out, r, p->job);
        list(out, "next step", r->next, true);
        fact(out, "lower layer", r->below ? r->below->text : NULL);
        list(out, "not known", r->missing, false);
    }
    free(line);
    free(over);
}

/* Return "1 slow part found", "3 faulty parts found: 1 dead, 2 slow" or "No slow part found". */
static char *found(const struct parts *p)
{
    static const char *const kind[] = {"dead", "wrong", "late", "slow"};
    int count[4] = {0}, kinds = 0;
    char *text = mem_strdup("");

    for (int i = 0; i < p->rows; i++)
        count[p->row[i].state == STATE_DEAD    ? 0
              : p->row[i].state == STATE_WRONG ? 1
              : p->row[i].state == STATE_LATE  ? 2
                                               : 3]++;
    for (int k = 0; k < 4; k++)
        if (count[k])
            text = mem_append(text, "%s%d %s", kinds++ ? ", " : "", count[k],
                              k == 1 ? "with wrong data" : kind[k]);
    char *line = !p->rows    ? mem_strdup("No slow part found")
                 : kinds > 1 ? mem_printf("%d faulty parts found: %s", p->rows, text)
                 : count[1]
                     ? mem_printf("%d part%s with wrong data found", p->rows, units_s(p->rows))
                     : mem_printf("%s part%s found", text, units_s(p->rows));
    free(text);
    return line;
}

void parts_text(FILE *out, const struct parts *p, int most, bool brief, const char *note)
{
    char *line = found(p);

    if (note)
        table_wrap(out, 2, "%s%s", line, note);
    free(line);
    for (int i = 0; i < p->rows && (!most || i < most); i++) {
        fputs(i || note ? "\n" : "", out);
        block(out, p, &p->row[i], brief);
    }
    for (int i = 0; i < p->onlies; i++) {
        fputs(i || note || p->rows ? "\n" : "", out);
        table_wrap(out, 2, "%s", p->only[i]);
    }
}
