/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_peers.c - who is whose peer, what most of them have, and who has not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/lint/lint_parts.h"

/* Minorities of so many are named one by one; so many values without a majority are listed. */
enum { ALONE = 4, LISTED = 8 };

static int count_of(const struct topo *t, enum lint_what what)
{
    const int count[] = {t->hosts, t->gpus, t->nics, t->endpoints};

    return count[what];
}

static int host_of(const struct topo *t, enum lint_what what, int i)
{
    return what == LINT_HOSTS  ? i
           : what == LINT_GPUS ? t->gpu[i].host
           : what == LINT_NICS ? t->nic[i].host
                               : t->endpoint[i].place.at[LEVEL_HOST];
}

/* How an object is called: with its host, or alone. */
static char *name_of(const struct topo *t, enum lint_what what, int i)
{
    const char *host = t->host[host_of(t, what, i)].name;

    switch (what) {
    case LINT_GPUS:
        return mem_printf("%s GPU %d", host, t->gpu[i].index);
    case LINT_NICS:
        return mem_printf("%s %s", host, t->nic[i].name);
    case LINT_ENDPOINTS:
        return mem_printf("%s %s %d", host, t->endpoint[i].kind == ENDPOINT_GPU ? "GPU" : "socket",
                          t->endpoint[i].local);
    default:
        return mem_strdup(host);
    }
}

/* Objects with the same word are peers; NULL: it has none. */
static char *peers_of(const struct lint_view *v, enum lint_what what, int i)
{
    const struct topo *t = v->t;
    int k = v->host[host_of(t, what, i)].kind;

    switch (what) {
    case LINT_GPUS:
        return mem_printf("%s", t->gpu[i].model);
    case LINT_NICS:
        return t->nic[i].rdma ? mem_printf("%d %s", k, t->nic[i].name) : NULL;
    case LINT_ENDPOINTS:
        return mem_printf("%d %d %d", k, (int)t->endpoint[i].kind, t->endpoint[i].local);
    default:
        return mem_printf("%d", k);
    }
}

/* --- majority and minorities --- */

/* One check at work. */
struct run {
    struct lint *l;
    struct lint_view *v;
    const struct lint_check *c;
    bool *said, *above; /* by object: named by this check, by the row above */
};

struct told {
    int peers, i;
    double number;
    char text[LINT_TEXT];
};

static bool same_value(const struct lint_check *c, const struct told *a, const struct told *b)
{
    if (!c->words && c->tolerance > 0)
        return fabs(a->number - b->number) <= c->tolerance * fmax(fabs(a->number), 1e-9);
    return !strcmp(a->text, b->text);
}

static const struct lint_check *sorted_by; /* qsort() has no context; set before each sort */

static int by_value(const void *x, const void *y)
{
    const struct told *a = x, *b = y;
    int order = sorted_by->words ? strcmp(a->text, b->text)
                                 : (a->number > b->number) - (a->number < b->number);

    if (a->peers != b->peers)
        return a->peers < b->peers ? -1 : 1;
    return order ? order : a->i < b->i ? -1 : a->i > b->i;
}

static char *value_text(const struct lint_check *c, const char *value)
{
    return c->words ? mem_printf("%s %s", c->unit, value) : mem_printf("%s %s", value, c->unit);
}

static void say(const struct run *r, const char *what, const char *text)
{
    if (r->c->note)
        lint_note(r->l, r->c->kind, what, "%s", text);
    else
        lint_add(r->l, r->c->kind, what, "%s", text);
}

/* The row above named it with this value already: the cause is that one's. */
static bool said_above(const struct run *r, const struct told *x)
{
    char text[LINT_TEXT];

    return r->c->again && r->above[x->i] && r->c[-1].get(r->v, x->i, text) &&
           !strcmp(text, x->text);
}

static void mark(const struct run *r, const struct told *x)
{
    r->said[x->i] = true;
    if (r->c->what == LINT_GPUS && !strcmp(r->c->kind, "nvlink"))
        r->v->named[x->i] = true;
}

static void say_one(const struct run *r, const char *who, const struct told *x,
                    const struct told *usual, int most, bool detailed)
{
    const struct lint_check *c = r->c;
    char *value = value_text(c, x->text);
    char *more = c->detail && detailed ? c->detail(r->v, x->i, usual->i) : NULL;
    char *text =
        mem_printf("%s: %s where %d %s%s %s %s%s%s", who, value, most,
                   c->what == LINT_HOSTS ? "host" : "other", most == 1 ? "" : "s",
                   most == 1 ? "has" : "have", usual->text, more ? ": " : "", more ? more : "");

    say(r, who, text);
    free(text);
    free(more);
    free(value);
}

/* n objects that have x's value where `most` have `usual`. */
static void say_odd(const struct run *r, const struct told *x, int n, const struct told *usual,
                    int most)
{
    const struct told **odd = mem_calloc((size_t)n, sizeof(*odd));
    char **name = NULL;
    int names = 0;

    for (int i = 0; i < n; i++)
        if (!said_above(r, &x[i])) {
            odd[names] = &x[i];
            MEM_PUSH(name, names) = name_of(r->v->t, r->c->what, x[i].i);
            mark(r, &x[i]);
        }
    for (int i = 0; i < names && names <= ALONE; i++)
        say_one(r, name[i], odd[i], usual, most, true);
    if (names > ALONE) {
        char *who = hostlist_fold(name, names);
        say_one(r, who, x, usual, most, false);
        free(who);
    }
    free(odd);
    hostlist_free(name, names);
}

/* Peers that do not agree and of whom no kind is more than half. */
static void say_split(const struct run *r, const struct told *x, int n)
{
    char *text = mem_strdup(""), *first = name_of(r->v->t, r->c->what, x->i);
    int above = 0, values = 0;

    for (int i = 0, j; i < n && values <= LISTED; i = j, values++) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        char *value = value_text(r->c, x[i].text), *name = name_of(r->v->t, r->c->what, x[i].i);
        char *longer = values == LISTED ? mem_printf("%s, ...", text)
                                        : mem_printf("%s%s%d %s %s (%s%s)", text, i ? ", " : "",
                                                     j - i, j - i == 1 ? "has" : "have", value,
                                                     name, j - i > 1 ? ", ..." : "");
        free(text);
        free(value);
        free(name);
        text = longer;
    }
    for (int i = 0; i < n; i++) {
        above += said_above(r, &x[i]);
        r->said[x[i].i] = true;
    }
    char *whole = mem_printf("no majority among %d: %s", n, text);
    if (above < n)
        say(r, first, whole);
    free(whole);
    free(first);
    free(text);
}

static void judge_peers(const struct run *r, const struct told *x, int n)
{
    int most = 0, usual = 0;

    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        if (j - i > most) {
            most = j - i;
            usual = i;
        }
    }
    if (most == n)
        return;
    if (2 * most <= n) {
        say_split(r, x, n);
        return;
    }
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        if (i != usual)
            say_odd(r, x + i, j - i, &x[usual], most);
    }
}

static void run_check(const struct run *r)
{
    const struct lint_check *c = r->c;
    int count = count_of(r->v->t, c->what), n = 0;
    struct told *x = mem_calloc((size_t)count + 1, sizeof(*x));

    for (int i = 0; i < count; i++) {
        char *peers = peers_of(r->v, c->what, i);
        if (peers && c->get(r->v, i, x[n].text)) {
            x[n].peers = topo_add_group(&r->v->words, LEVEL_LEAF, peers);
            x[n].number = c->words ? 0 : strtod(x[n].text, NULL);
            x[n++].i = i;
        }
        free(peers);
    }
    sorted_by = c;
    qsort(x, (size_t)n, sizeof(*x), by_value);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && x[j].peers == x[i].peers; j++)
            ;
        judge_peers(r, x + i, j - i);
    }
    free(x);
}

void lint_peers(struct lint *l, struct lint_view *v)
{
    bool *above = NULL;

    for (int i = 0; i < lint_checks; i++) {
        const struct lint_check *c = &lint_check[i];
        bool *said = mem_calloc((size_t)count_of(v->t, c->what) + 1, sizeof(*said));
        run_check(&(struct run){l, v, c, said, above});
        free(above);
        above = said;
    }
    free(above);
}
