/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong data.  Endpoints that send or receive wrong data are named before the noise model judges speeds. */
#include "fit/fit_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* --- wrong data: the common member of the wrong points --- */

/* A verified point as evidence.  Sending in one direction (OP_PAIR_BW) separates sender and receiver; in other
 * operations every member receives. */
struct witness {
    const struct point *p;
    const int *members;
    int size;
    bool explained;
};

/* One endpoint as sender or as receiver: all its checks, and the failed checks. */
struct role {
    int met, wrong;
    int partner; /* partner in its wrong pairs; -1: none, -2: several */
};

struct jury {
    struct fit *f;
    struct witness *witness;
    int witnesses;
    struct role *role; /* [2 * endpoint + receives] */
};

static void jury_open(struct jury *j, struct fit *f)
{
    *j = (struct jury){.f = f};
    j->role = mem_calloc(2 * (size_t)f->m->topo.endpoints, sizeof(*j->role));
    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        bool pair = op_is_pair(p->op);
        const struct round *r = pair || !p->checked ? NULL : fit_round(f, p->round, p->group);
        const struct plan_group *g = r ? &r->group[p->group] : NULL;
        if (p->checked && (g || pair))
            MEM_PUSH(j->witness, j->witnesses) =
                (struct witness){p, g ? g->members : NULL, g ? g->size : 2, false};
    }
}

static int member(const struct witness *w, int i)
{
    return w->members ? w->members[i] : i ? w->p->dst : w->p->src;
}

/* Role of the i-th member. */
static int role_of(const struct witness *w, int i)
{
    return 2 * member(w, i) + !(w->p->op == OP_PAIR_BW && i == 0);
}

static void count_roles(struct jury *j)
{
    for (int i = 0; i < 2 * j->f->m->topo.endpoints; i++)
        j->role[i] = (struct role){0, 0, -1};
    for (int k = 0; k < j->witnesses; k++) {
        const struct witness *w = &j->witness[k];
        for (int i = 0; i < w->size && !w->explained; i++) {
            struct role *r = &j->role[role_of(w, i)];
            int partner = member(w, 1 - i % 2);
            r->met++;
            r->wrong += w->p->wrong;
            if (w->p->wrong && op_is_pair(w->p->op))
                r->partner = r->partner == -1 || r->partner == partner ? partner : -2;
        }
    }
}

/* Log probability bound that a healthy role fails this often, if it fails like the checks without it: exp(-n
 * KL(share, usual)), a bound on a binomial tail (Chernoff 1952).  0: fails no more often than those checks.  The
 * number of failures alone is not evidence: an endpoint in more groups has more failures. */
static double unlikely(const struct role *r, int checks, int wrong)
{
    /* Krichevsky and Trofimov 1981: half a failure more, so that no rate is 0. */
    double usual = (wrong - r->wrong + 0.5) / (checks - r->met + 1.0),
           share = (double)r->wrong / r->met;

    if (share <= usual)
        return 0;
    double kl = share * log(share / usual);
    if (share < 1)
        kl += (1 - share) * log((1 - share) / (1 - usual));
    return -r->met * kl;
}

/* Return the role whose checks fail most clearly more often than the checks without it; -1: none.  A role whose
 * wrong pairs all have the same partner is no candidate: the cause is the partner or the pair. */
static int culprit(const struct jury *j)
{
    static const double alpha = 0.05; /* for all candidates together (Bonferroni) */
    int worst = -1, candidates = 0, checks = 0, wrong = 0;
    double least = 0;

    for (int k = 0; k < j->witnesses; k++) {
        checks += !j->witness[k].explained;
        wrong += !j->witness[k].explained && j->witness[k].p->wrong;
    }
    for (int i = 0; i < 2 * j->f->m->topo.endpoints; i++) {
        const struct role *r = &j->role[i];
        if (r->partner != -2)
            continue;
        double p = unlikely(r, checks, wrong);
        candidates++;
        if (p < least || (p == least && worst >= 0 && r->met < j->role[worst].met)) {
            least = p;
            worst = i;
        }
    }
    return least < log(alpha / (candidates + !candidates)) ? worst : -1;
}

/* Mark points that the part explains.  Returns one of their notes. */
static const char *settle(struct jury *j, int a, int b)
{
    const char *note = "";

    for (int k = 0; k < j->witnesses; k++) {
        struct witness *w = &j->witness[k];
        bool has_a = false, has_b = b < 0;
        for (int i = 0; i < w->size; i++) {
            has_a = has_a || member(w, i) == a;
            has_b = has_b || member(w, i) == b;
        }
        if (!has_a || !has_b || w->explained || (b >= 0 && w->size > 2))
            continue;
        w->explained = true;
        note = w->p->wrong && w->p->note ? w->p->note : note;
    }
    return note;
}

/* Number of different partners with which a pair of this endpoint had wrong data. */
static int wrong_partners(const struct jury *j, int a, int *alone)
{
    bool *met = mem_calloc((size_t)j->f->m->topo.endpoints, sizeof(*met));
    int n = 0;

    *alone = 0;
    for (int k = 0; k < j->witnesses; k++) {
        const struct witness *w = &j->witness[k];
        int x = member(w, 0), y = member(w, 1), other = x == a ? y : x;
        if (w->size != 2 || !w->p->wrong || (x != a && y != a))
            continue;
        *alone += w->p->flows == 1;
        n += !met[other];
        met[other] = true;
    }
    free(met);
    return n;
}

static void name_endpoint(struct jury *j, int role)
{
    static const char *const does[] = {"sent", "received"};
    const struct role r = j->role[role];
    int a = role / 2, alone, partners = wrong_partners(j, a, &alone);

    const char *note = settle(j, a, -1);
    MEM_PUSH(j->f->m->exception, j->f->m->exceptions) =
        (struct exception){.part = PART_ENDPOINT,
                           .a = a,
                           .b = -1,
                           .tier = -1,
                           .wrong = true,
                           .state = STATE_WRONG,
                           .share = (double)r.wrong / r.met,
                           .evidence = r.wrong,
                           .partners = partners,
                           .alone = alone < r.wrong ? alone : r.wrong,
                           .why = mem_printf("%s wrong data in %d of %d checks%s%s", does[role % 2],
                                             r.wrong, r.met, *note ? ": " : "", note)};
}

/* Name a pair for wrong data that no endpoint explains. */
static void name_pair(struct jury *j, int first)
{
    int a = member(&j->witness[first], 0), b = member(&j->witness[first], 1), met = 0, wrong = 0;

    for (int k = 0; k < j->witnesses; k++) {
        const struct witness *w = &j->witness[k];
        int x = member(w, 0), y = member(w, 1);
        bool of = w->size == 2 && !w->explained && ((x == a && y == b) || (x == b && y == a));
        met += of;
        wrong += of && w->p->wrong;
    }
    const char *note = settle(j, a, b);
    MEM_PUSH(j->f->m->exception, j->f->m->exceptions) = (struct exception){
        .part = PART_PAIR,
        .a = a,
        .b = b,
        .tier = -1,
        .wrong = true,
        .state = STATE_WRONG,
        .share = (double)wrong / met,
        .evidence = wrong,
        .partners = 1,
        .why = mem_printf("wrong data in %d of %d checks, with others there was none or too few to "
                          "tell the end%s%s",
                          wrong, met, *note ? ": " : "", note)};
}

static bool any_wrong(const struct points *p)
{
    bool any = false;

    for (int i = 0; i < p->count && !any; i++)
        any = p->point[i].wrong;
    return any;
}

void parts_broken(struct fit *f)
{
    struct jury j;
    int role, rest = 0;

    if (!any_wrong(f->points))
        return;
    jury_open(&j, f);
    count_roles(&j);
    while ((role = culprit(&j)) >= 0) {
        name_endpoint(&j, role);
        count_roles(&j);
    }
    for (int k = 0; k < j.witnesses; k++)
        if (j.witness[k].p->wrong && !j.witness[k].explained && j.witness[k].size == 2)
            name_pair(&j, k);
    for (int k = 0; k < j.witnesses; k++)
        rest += j.witness[k].p->wrong && !j.witness[k].explained;
    if (rest)
        matrix_find(
            f->m, "wrong_data",
            "%d collective measurements gave wrong data, but no pair did, so the part at fault "
            "is unknown",
            rest);
    free(j.witness);
    free(j.role);
}
