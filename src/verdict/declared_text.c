/* SPDX-License-Identifier: BSD-3-Clause */
/* declared_text.c - comparisons of groupings in words, as a list of differences, as JSON. */
#include "verdict/declared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"

static const char *const relation_name[RELATIONS] = {"nothing in common", "equal", "finer",
                                                     "coarser", "crossing"};

enum { SAID = 3, DIFF_GROUPS = 64 }; /* number of misfits in the sentence; groups in the list */

/* Returns "measured with rack1 (9 of 9 pairs at 770 GB/s); swap suspected with node14" for misfit
 * i.  The caller frees. */
static char *misfit_text(const struct declared *d, const struct comparison *c, int i)
{
    const struct grouping *a = &d->grouping[c->a], *b = &d->grouping[c->b];
    const struct misfit *m = &c->how.misfit[i];
    const char *verb = b->source == SOURCE_MEASURED ? "measured" : "there";
    char *text = NULL;

    text = mem_append(text, "%s with %.100s", verb,
                      m->with >= 0 ? a->name[m->with] : b->name[m->seen]);
    if (c->evidence[i])
        text = mem_append(text, " (%s)", c->evidence[i]);
    if (m->swap >= 0)
        text = mem_append(text, "; swap suspected with %s", d->topo.host[m->swap].name);
    return text;
}

static void say_misfits(char **text, const struct declared *d, const struct comparison *c)
{
    const struct grouping *a = &d->grouping[c->a];

    for (int i = 0, said = 0; i < c->how.misfits; i++) {
        const struct misfit *m = &c->how.misfit[i];
        if (m->swap >= 0 && m->swap < m->host) /* printed with the first host of the swap */
            continue;
        if (said == SAID) {
            *text = mem_append(*text, "; ...");
            break;
        }
        char *words = misfit_text(d, c, i);
        *text = mem_append(*text, "%s%s holds %s, %s", said++ ? "; " : "", a->name[m->in],
                           d->topo.host[m->host].name, words);
        free(words);
    }
}

static void say_relation(char **text, const struct declared *d, const struct comparison *c)
{
    const struct grouping *a = &d->grouping[c->a], *b = &d->grouping[c->b];

    switch (c->how.relation) {
    case RELATION_EQUAL:
        *text =
            mem_append(*text, "equal: the same %d groups of %d hosts", c->how.same, c->how.hosts);
        break;
    case RELATION_FINER:
        *text = mem_append(*text, "finer: %d group%s, each inside one of %d", a->groups,
                           units_s(a->groups), b->groups);
        break;
    case RELATION_COARSER:
        *text =
            mem_append(*text, "coarser: %d groups that hold %d whole ones", a->groups, b->groups);
        break;
    default:
        *text = mem_append(*text, "crossing: %d of %d hosts %s elsewhere: ", c->how.misfits,
                           c->how.hosts, c->how.misfits == 1 ? "is" : "are");
        say_misfits(text, d, c);
        break;
    }
    if (c->differ && c->how.relation != RELATION_CROSSING)
        *text = mem_append(
            *text, "; %d of them are the same, so the others are mistakes, not another level",
            c->how.same);
}

char *declared_sentence(const struct declared *d, const struct comparison *c)
{
    char *a = grouping_title(&d->grouping[c->a]), *b = grouping_title(&d->grouping[c->b]),
         *text = NULL;

    text = mem_append(text, "%s against %s: ", a, b);
    say_relation(&text, d, c);
    free(a);
    free(b);
    return text;
}

/* True if a later comparison has a misfit for this host.  Later comparisons win, because a rack is
 * a better place than a domain of the same hosts. */
static bool said_later(const struct declared *d, const struct comparison *c, int host)
{
    for (const struct comparison *x = c + 1; x < d->comparison + d->comparisons; x++)
        for (int i = 0; i < x->how.misfits && x->b < d->measured; i++)
            if (x->how.misfit[i].host == host)
                return true;
    return false;
}

char *declared_misplaced(const struct declared *d, int *hosts)
{
    char *text = mem_strdup("");

    *hosts = 0;
    for (const struct comparison *c = d->comparison;
         d->comparisons && c < d->comparison + d->comparisons; c++)
        for (int i = 0; i < c->how.misfits && c->b < d->measured; i++) {
            const struct misfit *m = &c->how.misfit[i];
            const char *in = d->grouping[c->a].name[m->in];
            if (said_later(d, c, m->host))
                continue;
            if (++*hosts <= SAID)
                text = mem_append(text, "%s%s is declared in %.100s, measured with %.100s",
                                  *text ? "; " : "", d->topo.host[m->host].name, in,
                                  m->with >= 0 ? d->grouping[c->a].name[m->with]
                                               : d->grouping[c->b].name[m->seen]);
        }
    if (*hosts > SAID)
        text = mem_append(text, "; ...");
    return text;
}

/* --- the list of differences --- */

/* Returns the hosts of group g in both groupings, folded; NULL: none. */
static char *hosts(const struct declared *d, const struct comparison *c, int g)
{
    const struct grouping *a = &d->grouping[c->a], *b = &d->grouping[c->b];
    char **name = mem_calloc((size_t)d->topo.hosts + 1, sizeof(*name)), *text = NULL;
    int n = 0;

    for (int h = 0, i = 0; h < d->topo.hosts; h++) {
        while (i < c->how.misfits && c->how.misfit[i].host < h)
            i++;
        bool misfit = i < c->how.misfits && c->how.misfit[i].host == h;
        if (a->of[h] == g && b->of[h] >= 0 && !misfit)
            name[n++] = d->topo.host[h].name;
    }
    if (n)
        text = hostlist_fold(name, n);
    free(name);
    return text;
}

static bool concerns(const struct comparison *c, int g)
{
    for (int i = 0; i < c->how.misfits; i++)
        if (c->how.misfit[i].in == g || c->how.misfit[i].with == g)
            return true;
    return false;
}

static void diff_group(char **text, const struct declared *d, const struct comparison *c, int g)
{
    const struct grouping *a = &d->grouping[c->a];
    char *both = hosts(d, c, g);

    *text = mem_append(*text, "@@ %s @@\n", a->name[g]);
    if (both)
        *text = mem_append(*text, " %s\n", both);
    free(both);
    for (int i = 0; i < c->how.misfits; i++) {
        const struct misfit *m = &c->how.misfit[i];
        if (m->in == g) {
            char *words = misfit_text(d, c, i);
            *text = mem_append(*text, "-%s   %s\n", d->topo.host[m->host].name, words);
            free(words);
        } else if (m->with == g) {
            *text = mem_append(*text, "+%s   declared in %s\n", d->topo.host[m->host].name,
                               a->name[m->in]);
        }
    }
}

/* Print nested groups that differ: groups of a that are split or that share a group of b. */
static void diff_nested(char **text, const struct declared *d, const struct comparison *c)
{
    const struct grouping *a = &d->grouping[c->a], *b = &d->grouping[c->b];
    bool finer = c->how.relation == RELATION_FINER;
    const struct grouping *whole = finer ? b : a, *part = finer ? a : b;

    for (int g = 0; g < whole->groups; g++) {
        int parts = 0, last = -1;
        char *names = NULL;
        for (int p = 0; p < part->groups; p++)
            for (int h = 0; h < d->topo.hosts; h++)
                if (part->of[h] == p && whole->of[h] == g && last != p) {
                    names = mem_append(names, "%c%s\n", finer ? '-' : '+', part->name[p]);
                    last = p;
                    parts++;
                }
        if (parts > 1)
            *text = mem_append(*text, "@@ %d in one @@\n%s%c%s\n", parts, names, finer ? '+' : '-',
                               whole->name[g]);
        free(names);
    }
}

char *declared_diff(const struct declared *d, const struct comparison *c)
{
    const struct grouping *a = &d->grouping[c->a];
    char *ta = grouping_title(a), *tb = grouping_title(&d->grouping[c->b]), *text = NULL;
    int shown = 0;

    text = mem_append(text, "--- %s\n+++ %s\n", ta, tb);
    free(ta);
    free(tb);
    if (c->how.relation != RELATION_CROSSING)
        diff_nested(&text, d, c);
    for (int g = 0; g < a->groups && shown < DIFF_GROUPS; g++)
        if (concerns(c, g)) {
            diff_group(&text, d, c, g);
            shown++;
        }
    if (shown == DIFF_GROUPS)
        text = mem_append(text, "...\n");
    return text;
}

/* --- result --- */

static bool any_differs(const struct declared *d)
{
    for (int i = 0; i < d->comparisons; i++)
        if (d->comparison[i].differ)
            return true;
    return false;
}

int declared_code(const struct declared *d)
{
    return any_differs(d)                     ? EXIT_BELOW
           : d->comparisons && !d->unmeasured ? EXIT_GOOD
                                              : EXIT_UNJUDGED;
}

/* --- JSON --- */

static json_t *grouping_json(const struct declared *d, const struct grouping *g)
{
    json_t *groups = json_array();

    for (int i = 0; i < g->groups; i++) {
        char *text = groups_fold(&d->topo, g->of, i);
        json_array_append_new(groups, json_pack("{s:s, s:s}", "name", g->name[i], "hosts", text));
        free(text);
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:i}", "source", source_name[g->source], "origin",
                     g->origin, "level", level_name[g->level], "groups", groups, "unknown_hosts",
                     g->strangers);
}

static json_t *host_name(const struct declared *d, int host)
{
    return host < 0 ? json_null() : json_string(d->topo.host[host].name);
}

static json_t *misfits_json(const struct declared *d, const struct comparison *c)
{
    const struct grouping *a = &d->grouping[c->a], *b = &d->grouping[c->b];
    json_t *list = json_array();

    for (int i = 0; i < c->how.misfits; i++) {
        const struct misfit *m = &c->how.misfit[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:o, s:o}", "host", d->topo.host[m->host].name,
                            "in", a->name[m->in], "belongs_to",
                            m->with < 0 ? json_null() : json_string(a->name[m->with]), "with",
                            b->name[m->seen], "evidence",
                            c->evidence[i] ? json_string(c->evidence[i]) : json_null(), "swap",
                            host_name(d, m->swap)));
    }
    return list;
}

json_t *declared_json(const struct declared *d)
{
    json_t *groupings = json_array(), *comparisons = json_array();
    int code = declared_code(d);

    for (int i = 0; i < d->groupings; i++)
        json_array_append_new(groupings, grouping_json(d, &d->grouping[i]));
    for (int i = 0; i < d->comparisons; i++) {
        const struct comparison *c = &d->comparison[i];
        json_array_append_new(
            comparisons,
            json_pack("{s:i, s:i, s:s, s:b, s:i, s:i, s:f, s:s, s:o}", "declared", c->a, "against",
                      c->b, "relation", relation_name[c->how.relation], "differ", c->differ,
                      "hosts", c->how.hosts, "equal_groups", c->how.same, "together",
                      c->how.together, "text", c->text, "misfits", misfits_json(d, c)));
    }
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "format", "railgauge-declared", "version", 1,
                     "agree", code == EXIT_UNJUDGED ? json_null() : json_boolean(code == EXIT_GOOD),
                     "unmeasured", d->unmeasured ? json_string(d->unmeasured) : json_null(),
                     "groupings", groupings, "comparisons", comparisons);
}
