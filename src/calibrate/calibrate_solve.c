/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_solve.c - fixed numbers and effects at the maximum of a mixed model's posterior
 * (calibrate.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calibrate/calibrate.h"

static const double tails = 4; /* degrees of freedom of the residuals' t distribution */
/* usual deviation of a factor's effects, with the weight of usual_levels levels */
static const double usual_spread = 0.05;
static const double usual_levels = 2;
static const double least_spread = 0.003, least_rest = 0.01;

/* --- a symmetric positive definite matrix A = U' U, its upper half by rows --- */

/* Factorise A.  Zero columns cost nothing, so numbers with few partners come first.  False: A is
 * not positive definite. */
static bool factorize(double *a, int n)
{
    int *at = mem_ints(n, 0);
    bool ok = true;

    for (int k = 0; k < n && ok; k++) {
        double *row = &a[(size_t)k * n];
        int count = 0;
        ok = row[k] > 0;
        row[k] = sqrt(row[k]);
        for (int i = k + 1; i < n; i++)
            if (row[i] != 0) {
                row[i] /= row[k];
                at[count++] = i;
            }
        for (int i = 0; i < count; i++) {
            double *other = &a[(size_t)at[i] * n], by = row[at[i]];
            for (int j = i; j < count; j++)
                other[at[j]] -= by * row[at[j]];
        }
    }
    free(at);
    return ok;
}

/* Replace b by U'^-1 b, starting at its first nonzero number. */
static void forward(const double *u, int n, int first, double *b)
{
    for (int k = first; k < n; k++) {
        const double *row = &u[(size_t)k * n];
        if (b[k] == 0)
            continue;
        double by = b[k] /= row[k];
        for (int i = k + 1; i < n; i++)
            b[i] -= row[i] * by;
    }
}

static void substitute(const double *u, int n, double *b)
{
    forward(u, n, 0, b);
    for (int k = n - 1; k >= 0; k--) {
        for (int i = k + 1; i < n; i++)
            b[k] -= u[(size_t)k * n + i] * b[i];
        b[k] /= u[(size_t)k * n + k];
    }
}

/* Returns the k-th diagonal number of A's inverse; work: n numbers. */
static double inverse_at(const double *u, int n, int k, double *work)
{
    double sum = 0;

    memset(work, 0, (size_t)n * sizeof(*work));
    work[k] = 1;
    forward(u, n, k, work);
    for (int i = k; i < n; i++)
        sum += work[i] * work[i];
    return sum;
}

/* --- the model linearised at a point --- */

/* State kept between rounds, for n numbers: fixed ones, then effects. */
struct solving {
    struct mixed *m;
    int n;
    int *place; /* row in the matrix of each number: effects of few rows first, fixed ones last */
    double *matrix, *step, *variance, *trial, *sum, *ahead, *work;
};

static double precision(const struct mixed *m, int k)
{
    double width = k < m->fixed ? m->width[k] : m->spread[m->factor[k - m->fixed]];

    return 1 / (width * width);
}

static double prior(const struct mixed *m, int k)
{
    return k < m->fixed ? m->prior[k] : 0;
}

static void sums_of(const struct mixed *m, const double *x, double *sum)
{
    for (int i = 0; i < m->rows; i++) {
        sum[i] = 0;
        for (int s = 0; s < m->slots; s++) {
            int at = m->slot[(size_t)i * m->slots + s];
            sum[i] += at < 0 ? 0 : x[m->fixed + at];
        }
    }
}

static void ask(struct solving *s, const double *x, double *residual)
{
    sums_of(s->m, x, s->sum);
    s->m->ask(s->m->ctx, x, s->sum, residual);
}

/* Set derivatives by each fixed number and by the sum of effects; the residuals are for m->x. */
static void differentiate(struct solving *s)
{
    const double h = 1e-3;
    struct mixed *m = s->m;

    ask(s, m->x, m->residual);
    memcpy(s->trial, m->x, (size_t)s->n * sizeof(*s->trial));
    for (int k = 0; k <= m->fixed; k++) {
        if (k < m->fixed)
            s->trial[k] += h;
        else
            for (int i = 0; i < m->rows; i++)
                s->sum[i] += h;
        m->ask(m->ctx, s->trial, s->sum, s->ahead);
        for (int i = 0; i < m->rows; i++) {
            double d = (s->ahead[i] - m->residual[i]) / h;
            if (k < m->fixed)
                m->slope[(size_t)i * m->fixed + k] = d;
            else
                m->share[i] = d;
        }
        if (k < m->fixed)
            s->trial[k] = m->x[k];
    }
}

/* List the numbers of row i and its derivatives by them. */
static int gradient(const struct mixed *m, int i, int *at, double *d)
{
    int n = 0;

    for (int k = 0; k < m->fixed; k++)
        if (m->slope[(size_t)i * m->fixed + k] != 0) {
            at[n] = k;
            d[n++] = m->slope[(size_t)i * m->fixed + k];
        }
    for (int s = 0; s < m->slots; s++)
        if (m->slot[(size_t)i * m->slots + s] >= 0) {
            at[n] = m->fixed + m->slot[(size_t)i * m->slots + s];
            d[n++] = m->share[i];
        }
    return n;
}

/* Returns the weight of a residual: a t distribution as a mixture of normal ones (Lange et al.
 * 1989). */
static double trust(const struct mixed *m, double residual)
{
    double z = residual / m->rest;

    return (tails + 1) / (tails + z * z);
}

/* Take one step of the linear model from x, in place; its residuals are m->residual when x is m->x.
 * left: rows left out; NULL: none.  False: the equations cannot be solved. */
static bool linear_step(struct solving *s, double *x, const bool *left)
{
    const struct mixed *m = s->m;
    int n = s->n, most = m->fixed + m->slots, *at = mem_ints(most, 0);
    double *d = mem_calloc((size_t)most + 1, sizeof(*d));

    memset(s->matrix, 0, (size_t)n * (size_t)n * sizeof(*s->matrix));
    for (int k = 0; k < n; k++) {
        s->matrix[(size_t)s->place[k] * n + s->place[k]] = precision(m, k);
        s->step[s->place[k]] = precision(m, k) * (prior(m, k) - x[k]);
    }
    for (int i = 0; i < m->rows; i++) {
        if (left && left[i])
            continue;
        int count = gradient(m, i, at, d);
        double r = m->residual[i];
        for (int k = 0; k < count; k++)
            r += d[k] * (x[at[k]] - m->x[at[k]]);
        double w = m->weight[i] * trust(m, r) / (m->rest * m->rest);
        for (int k = 0; k < count; k++) {
            int row = s->place[at[k]];
            s->step[row] -= w * d[k] * r;
            for (int j = 0; j < count; j++)
                if (s->place[at[j]] >= row)
                    s->matrix[(size_t)row * n + s->place[at[j]]] += w * d[k] * d[j];
        }
    }
    bool ok = factorize(s->matrix, n);
    if (ok)
        substitute(s->matrix, n, s->step);
    for (int k = 0; ok && k < n; k++)
        x[k] += s->step[s->place[k]];
    free(at);
    free(d);
    return ok;
}

static void variances(struct solving *s)
{
    for (int k = 0; k < s->n; k++)
        s->variance[k] = inverse_at(s->matrix, s->n, s->place[k], s->work);
}

/* Update the deviations of factors and of the rest from the values x and their variances: the
 * evidence's fixed point (MacKay 1992). */
static void deviations(struct solving *s, const double *x)
{
    struct mixed *m = s->m;
    double *sum = mem_calloc((size_t)m->factors + 1, sizeof(*sum));
    double *determined = mem_calloc((size_t)m->factors + 1, sizeof(*determined));
    double weights = 0, squares = 0;
    int most = m->fixed + m->slots, *at = mem_ints(most, 0);
    double *d = mem_calloc((size_t)most + 1, sizeof(*d));

    variances(s);
    for (int k = 0; k < s->n; k++) {
        double by_rows = fmax(0, 1 - s->variance[k] * precision(m, k));
        if (k < m->fixed)
            continue;
        sum[m->factor[k - m->fixed]] += x[k] * x[k];
        determined[m->factor[k - m->fixed]] += by_rows;
    }
    for (int f = 0; f < m->factors; f++)
        m->spread[f] =
            fmax(least_spread, sqrt((sum[f] + usual_levels * usual_spread * usual_spread) /
                                    (determined[f] + usual_levels)));
    for (int i = 0; i < m->rows; i++) {
        double r = m->residual[i], open = 0;
        int count = gradient(m, i, at, d), first = s->n;
        memset(s->work, 0, (size_t)s->n * sizeof(*s->work));
        for (int k = 0; k < count; k++) {
            r += d[k] * (x[at[k]] - m->x[at[k]]);
            s->work[s->place[at[k]]] += d[k];
            first = s->place[at[k]] < first ? s->place[at[k]] : first;
        }
        forward(s->matrix, s->n, first, s->work); /* variance of the model's value for the row */
        for (int k = first; k < s->n; k++)
            open += s->work[k] * s->work[k];
        squares += m->weight[i] * trust(m, r) * (r * r + open);
        weights += m->weight[i];
    }
    m->rest = fmax(least_rest, sqrt(squares / weights));
    free(sum);
    free(determined);
    free(at);
    free(d);
}

/* Returns minus the log of the posterior. */
static double badness(const struct mixed *m, const double *x, const double *residual, int n)
{
    double sum = 0;

    for (int i = 0; i < m->rows; i++) {
        double z = residual[i] / m->rest;
        sum += m->weight[i] * (tails + 1) / 2 * log1p(z * z / tails);
    }
    for (int k = 0; k < n; k++)
        sum += precision(m, k) * (x[k] - prior(m, k)) * (x[k] - prior(m, k)) / 2;
    return isnan(sum) ? INFINITY : sum;
}

/* Move from m->x towards x, halving the step until it improves.  Returns the distance moved. */
static double move(struct solving *s, const double *x)
{
    struct mixed *m = s->m;
    double was = badness(m, m->x, m->residual, s->n), moved = 0;

    for (double part = 1; part > 1e-3; part /= 2) {
        for (int k = 0; k < s->n; k++)
            s->trial[k] = m->x[k] + part * (x[k] - m->x[k]);
        ask(s, s->trial, s->ahead);
        if (!(badness(m, s->trial, s->ahead, s->n) < was))
            continue;
        for (int k = 0; k < s->n; k++) {
            moved = fmax(moved, fabs(s->trial[k] - m->x[k]));
            m->x[k] = s->trial[k];
        }
        memcpy(m->residual, s->ahead, (size_t)m->rows * sizeof(*m->residual));
        break;
    }
    return moved;
}

static void order(struct solving *s)
{
    const struct mixed *m = s->m;
    int *rows = mem_ints(m->effects, 0), next = 0;

    s->place = mem_ints(s->n, 0);
    for (int i = 0; i < m->rows * m->slots; i++)
        if (m->slot[i] >= 0)
            rows[m->slot[i]]++;
    for (int count = 0; count <= m->rows; count++)
        for (int k = 0; k < m->effects; k++)
            if (rows[k] == count)
                s->place[m->fixed + k] = next++;
    for (int k = 0; k < m->fixed; k++)
        s->place[k] = next++;
    free(rows);
}

static void begin(struct solving *s, struct mixed *m)
{
    int n = m->fixed + m->effects;

    *s = (struct solving){.m = m, .n = n};
    s->matrix = mem_calloc((size_t)n * (size_t)n + 1, sizeof(*s->matrix));
    s->step = mem_calloc((size_t)n + 1, sizeof(*s->step));
    s->variance = mem_calloc((size_t)n + 1, sizeof(*s->variance));
    s->trial = mem_calloc((size_t)n + 1, sizeof(*s->trial));
    s->sum = mem_calloc((size_t)m->rows + 1, sizeof(*s->sum));
    s->ahead = mem_calloc((size_t)m->rows + 1, sizeof(*s->ahead));
    s->work = mem_calloc((size_t)n + 1, sizeof(*s->work));
    order(s);
}

static void end(struct solving *s)
{
    free(s->matrix);
    free(s->step);
    free(s->variance);
    free(s->trial);
    free(s->sum);
    free(s->ahead);
    free(s->work);
    free(s->place);
}

bool mixed_solve(struct mixed *m)
{
    enum { ROUNDS = 12, INNER = 3 };
    struct solving s;
    bool whole = true;

    begin(&s, m);
    double *x = mem_calloc((size_t)s.n + 1, sizeof(*x)), moved = 1;
    for (int f = 0; f < m->factors; f++)
        m->spread[f] = 2 * usual_spread;
    m->rest = usual_spread;
    for (int round = 0; round < ROUNDS && moved > 1e-4 && whole; round++) {
        differentiate(&s);
        memcpy(x, m->x, (size_t)s.n * sizeof(*x));
        for (int i = 0; i < INNER && linear_step(&s, x, NULL); i++)
            deviations(&s, x);
        moved = move(&s, x);
        whole = !m->go_on || m->go_on(m->ctx, (round + 1.0) / ROUNDS);
    }
    differentiate(&s);
    memcpy(x, m->x, (size_t)s.n * sizeof(*x));
    if (linear_step(&s, x, NULL))
        variances(&s);
    for (int k = 0; k < s.n; k++)
        m->error[k] = sqrt(s.variance[k]);
    free(x);
    end(&s);
    return whole;
}

void mixed_without(struct mixed *m, const bool *left, double *x, double *error)
{
    enum { INNER = 2 };
    struct solving s;

    begin(&s, m);
    memcpy(x, m->x, (size_t)s.n * sizeof(*x));
    memcpy(error, m->error, (size_t)s.n * sizeof(*error));
    for (int i = 0; i < INNER && linear_step(&s, x, left); i++)
        ;
    for (int i = 0; i < m->rows; i++)
        for (int k = 0; k < m->slots && left[i]; k++) {
            int at = m->slot[(size_t)i * m->slots + k];
            if (at >= 0 && error[m->fixed + at] == m->error[m->fixed + at])
                error[m->fixed + at] =
                    sqrt(inverse_at(s.matrix, s.n, s.place[m->fixed + at], s.work));
        }
    end(&s);
}
