/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int stats_order(const double *x, const double *y, int n)
{
    int i = 0;

    while (i < n - 1 && x[i] == y[i])
        i++;
    return (x[i] > y[i]) - (x[i] < y[i]);
}

static int by_ints(const int *x, const int *y, int n)
{
    while (n > 1 && *x == *y) {
        x++;
        y++;
        n--;
    }
    return (*x > *y) - (*x < *y);
}

int stats_by_int(const void *a, const void *b)
{
    return by_ints(a, b, 1);
}

int stats_by_2ints(const void *a, const void *b)
{
    return by_ints(a, b, 2);
}

enum { RADIX_FROM = 512 }; /* radix sort is faster from this number of values on */

/* Unsigned number in the order of v (Herf 2001): its bits, reversed for negative values. */
static uint64_t order_key(const double *v)
{
    uint64_t bits;

    memcpy(&bits, v, sizeof(bits));
    return bits ^ (bits >> 63 ? ~0ULL : 1ULL << 63);
}

enum { KEY_BYTES = sizeof(uint64_t) };

/* Turn the counts of byte values into start positions; true: all keys have the same byte. */
static bool begin(int *count, int n)
{
    int at = 0;

    for (int i = 0; i < 256; i++) {
        int here = count[i];
        if (here == n)
            return true;
        count[i] = at;
        at += here;
    }
    return false;
}

/* Radix sort, byte by byte from the lowest; bytes equal in all keys are skipped. */
static void radix_sort(double *v, int n)
{
    int count[KEY_BYTES][256] = {{0}};
    double *spare = mem_calloc((size_t)n, sizeof(*spare)), *from = v, *to = spare;

    for (int i = 0; i < n; i++) {
        uint64_t key = order_key(&v[i]);
        for (int b = 0; b < KEY_BYTES; b++)
            count[b][key >> 8 * b & 255]++;
    }
    for (int b = 0; b < KEY_BYTES; b++) {
        int *c = count[b];
        if (begin(c, n))
            continue;
        for (int i = 0; i < n; i++)
            to[c[order_key(&from[i]) >> 8 * b & 255]++] = from[i];
        double *other = from;
        from = to;
        to = other;
    }
    if (from != v)
        memcpy(v, from, (size_t)n * sizeof(*v));
    free(spare);
}

enum { INSERT_TO = 32 };

/* Fastest for few values. */
static void insertion_sort(double *v, int n)
{
    for (int i = 1, k; i < n; i++) {
        double x = v[i];
        for (k = i; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

void stats_sort(double *v, int n)
{
    int i = 1;

    while (i < n && v[i - 1] <= v[i])
        i++;
    if (i >= n)
        return;
    if (n >= RADIX_FROM)
        radix_sort(v, n);
    else if (n <= INSERT_TO)
        insertion_sort(v, n);
    else
        qsort(v, (size_t)n, sizeof(*v), by_value);
}

struct ranked { /* 12 bytes: there may be millions */
    uint64_t key;
    int at;
} __attribute__((packed, aligned(4)));

/* Stable radix sort.  Returns the sorted half of r[2 * n]. */
static struct ranked *rank(struct ranked *r, int n)
{
    int count[KEY_BYTES][256] = {{0}}, byte[KEY_BYTES] = {0}, bytes = 0;
    struct ranked *from = r, *to = r + n;
    uint64_t differs = 0;

    for (int i = 0; i < n; i++)
        differs |= r[i].key ^ r[0].key;
    for (int b = 0; b < KEY_BYTES; b++)
        if (differs >> 8 * b & 255)
            byte[bytes++] = b;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < bytes; k++)
            count[byte[k]][r[i].key >> 8 * byte[k] & 255]++;
    for (int k = 0; k < bytes; k++) {
        const int b = byte[k];
        begin(count[b], n);
        for (int i = 0; i < n; i++)
            to[count[b][from[i].key >> 8 * b & 255]++] = from[i];
        struct ranked *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* True if already in order, as is common: points are in the order of measuring. */
static bool ordered(const char *items, int n, size_t size, stats_key *key)
{
    uint64_t last = 0, now = 0;
    int i = 0;

    for (; i < n && (now = key(items + (size_t)i * size)) >= last; i++)
        last = now;
    return i == n;
}

/* Move item by[i].at to i through a copy: in place each step would wait for the one before. */
static void rearrange(char *items, int n, size_t size, const struct ranked *by)
{
    char *sorted = mem_calloc((size_t)n, size);

    for (int i = 0; i < n; i++)
        memcpy(sorted + (size_t)i * size, items + (size_t)by[i].at * size, size);
    memcpy(items, sorted, (size_t)n * size);
    free(sorted);
}

void stats_sort_keys(void *v, int n, size_t size, stats_key *key)
{
    char *items = v;

    if (ordered(items, n, size, key))
        return;
    struct ranked *r = mem_calloc(2 * (size_t)n, sizeof(*r));
    for (int i = 0; i < n; i++)
        r[i] = (struct ranked){key(items + (size_t)i * size), i};
    rearrange(items, n, size, rank(r, n));
    free(r);
}

double stats_quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int i = (int)at;

    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

double stats_median(double *v, int n)
{
    stats_sort(v, n);
    return stats_quantile(v, n, 0.5);
}

double stats_select(double *v, int n, int k)
{
    int lo = 0, hi = n - 1;

    while (lo < hi) {
        double a = v[lo], b = v[lo + (hi - lo) / 2], c = v[hi];
        double pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                double swap = v[i];
                v[i++] = v[j];
                v[j--] = swap;
            }
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            break;
    }
    return v[k];
}

double stats_middle(double *v, int n)
{
    if (n <= INSERT_TO)
        return stats_median(v, n);
    double hi = stats_select(v, n, n / 2), lo = v[0];

    if (n % 2)
        return hi;
    for (int i = 1; i < n / 2; i++)
        lo = v[i] > lo ? v[i] : lo;
    return lo + 0.5 * (hi - lo); /* same formula as stats_quantile() */
}

double stats_mad(const double *v, int n, double median)
{
    double small[256], *d = n <= 256 ? small : mem_calloc((size_t)n, sizeof(*d));

    for (int i = 0; i < n; i++)
        d[i] = fabs(v[i] - median);
    double mad = stats_middle(d, n);
    if (d != small)
        free(d);
    return mad;
}

void stats_median_ci(const double *sorted, int n, double *lo, double *hi)
{
    double half = 1.96 * sqrt(n);
    int l = (int)floor((n - half) / 2), h = (int)ceil(1 + (n + half) / 2);

    *lo = sorted[l < 1 ? 0 : l - 1];
    *hi = sorted[h > n ? n - 1 : h - 1];
}

void stats_summary(struct summary *s, double *v, int n)
{
    stats_sort(v, n);
    s->n = n;
    s->median = stats_quantile(v, n, 0.5);
    stats_median_ci(v, n, &s->lo, &s->hi);
    s->min = v[0];
    s->p5 = stats_quantile(v, n, 0.05);
    s->p95 = stats_quantile(v, n, 0.95);
    s->max = v[n - 1];
    s->mad = stats_mad(v, n, s->median);
}

double stats_sigma(const double *sorted, int n)
{
    return !n ? 0 : 1.4826 * stats_mad(sorted, n, stats_quantile(sorted, n, 0.5));
}

/* --- significance --- */

void stats_holm(const double *p, int n, double alpha, bool *sure)
{
    struct ranked {
        double p;
        int at;
    } *row = mem_calloc((size_t)n + 1, sizeof(*row));
    int judged = 0;

    memset(sure, 0, (size_t)n * sizeof(*sure));
    for (int i = 0; i < n; i++)
        if (!isnan(p[i]))
            row[judged++] = (struct ranked){p[i], i};
    if (judged)
        qsort(row, (size_t)judged, sizeof(*row), by_value); /* compares the first member, p */
    for (int i = 0; i < judged && row[i].p <= alpha / (judged - i); i++)
        sure[row[i].at] = true;
    free(row);
}

enum { TREND_LEAST = 4, TREND_EXACT = 30 };

/* Probability of at most this many inversions among n! equally likely orders, with numbers by
 * MacMahon's recursion. */
static double few_inversions(int n, int most)
{
    enum { INVERSIONS = TREND_EXACT * (TREND_EXACT - 1) / 2 };
    double share[INVERSIONS + 1] = {1}, next[INVERSIONS + 1], sum = 0;

    for (int m = 2; m <= n; m++) {
        double run = 0;
        for (int k = 0; k <= m * (m - 1) / 2; k++) {
            run += k <= (m - 1) * (m - 2) / 2 ? share[k] : 0;
            run -= k >= m ? share[k - m] : 0;
            next[k] = run / m;
        }
        memcpy(share, next, ((size_t)(m * (m - 1) / 2) + 1) * sizeof(*share));
    }
    for (int k = 0; k <= most; k++)
        sum += share[k];
    return sum;
}

double stats_trend(const double *v, int n)
{
    int rises = 0, falls = 0;
    double tied = 0;

    if (n < TREND_LEAST)
        return NAN;
    for (int i = 0; i < n; i++) {
        int before = 0;
        for (int j = 0; j < i; j++) {
            rises += v[i] > v[j];
            falls += v[i] < v[j];
            before += v[i] == v[j];
        }
        /* t (t - 1) (2t + 5) for t equal values, added step by step */
        tied += before * (6.0 * before + 12);
    }
    int fewer = rises < falls ? rises : falls;
    if (rises + falls == n * (n - 1) / 2 && n <= TREND_EXACT)
        return fmin(1, 2 * few_inversions(n, fewer));
    double sd = sqrt((n * (n - 1.0) * (2.0 * n + 5) - tied) / 18);
    return sd > 0 ? erfc(fmax(0, abs(rises - falls) - 1) / sd / sqrt(2)) : 1;
}

double stats_slope(const double *t, const double *v, int n, double *lo, double *hi)
{
    double *slope = mem_calloc((size_t)n * (size_t)n + 1, sizeof(*slope)), median = NAN;
    int slopes = 0;

    *lo = *hi = NAN;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (t[i] != t[j])
                slope[slopes++] = (v[i] - v[j]) / (t[i] - t[j]);
    if (slopes) {
        double half = 1.96 * sqrt(n * (n - 1.0) * (2.0 * n + 5) / 18);
        int l = (int)floor((slopes - half) / 2), h = (int)ceil((slopes + half) / 2);
        stats_sort(slope, slopes);
        median = stats_quantile(slope, slopes, 0.5);
        *lo = slope[l < 1 ? 0 : l - 1];
        *hi = slope[h >= slopes ? slopes - 1 : h];
    }
    free(slope);
    return median;
}

double stats_spread(double *v, int n)
{
    static const double few[] = {0, 0, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};

    if (n < 2)
        return 0;
    stats_sort(v, n);
    return stats_sigma(v, n) * (n < 10 ? few[n] : n / (n - 0.8));
}

/* Quantile of a chi-square over its degrees of freedom, at z of a normal (Wilson & Hilferty
 * 1931). */
static double chi_square(double df, double z)
{
    double c = 2 / (9 * df), root = fmax(1e-3, 1 - c + z * sqrt(c));

    return root * root * root;
}

/* Difference between the quartiles of the log of a chi-square. */
static double log_quartiles(double df)
{
    static const double z75 = 0.6744898;

    return log(chi_square(df, z75) / chi_square(df, -z75));
}

static const double most_prior = 100; /* degrees of freedom; above, variances count as equal */

/* Degrees of freedom with this spread of logs. */
static double df_of_spread(double square)
{
    double lo = 0.5, hi = most_prior;

    if (square <= pow(log_quartiles(hi), 2))
        return hi;
    for (int i = 0; i < 60; i++) {
        double middle = sqrt(lo * hi);
        if (pow(log_quartiles(middle), 2) > square)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

void stats_prior(const double *var, int n, double df, double *var0, double *df0)
{
    double *v = mem_calloc((size_t)n + 1, sizeof(*v));
    int count = 0;

    for (int i = 0; i < n; i++)
        if (var[i] > 0)
            v[count++] = log(var[i]);
    stats_sort(v, count);
    *var0 = count ? exp(stats_quantile(v, count, 0.5)) / chi_square(df, 0) : 0;
    *df0 = 0;
    if (count >= STATS_PRIOR) {
        double spread = stats_quantile(v, count, 0.75) - stats_quantile(v, count, 0.25);
        *df0 = df_of_spread(spread * spread - pow(log_quartiles(df), 2));
    }
    free(v);
}

/* --- levels: segments of the sorted values, cut where the sum of squares is least (optimal
 * one-dimensional k-means by dynamic programming, Wang & Song 2011, over a histogram).  Their
 * number is the largest at which all neighbours are further apart than noise --- */

enum { BINS = 256, FEW_VALUES = 6 };

/* Unit: deviations.  The halves of one normal distribution are 2.3 apart. */
static const double levels_apart = 4.5;
static const double level_step = 0.03;     /* closer levels are merged, whatever the noise */
static const double level_step_few = 0.15; /* the limit for few values */
static const double slow_tail = 0.98;      /* stragglers beyond this quantile are no level */

struct histogram {
    double n[BINS + 1], sum[BINS + 1], square[BINS + 1]; /* sums over all earlier bins */
};

static void count(struct histogram *h, const double *v, int n)
{
    double lo = v[0], hi = stats_quantile(v, n, slow_tail);
    double width = hi > lo ? (hi - lo) / BINS : 1;

    memset(h, 0, sizeof(*h));
    for (int i = 0; i < n; i++) {
        double x = fmin(v[i], hi);
        int b = (int)fmin((x - lo) / width, BINS - 1);
        h->n[b + 1]++;
        h->sum[b + 1] += x;
        h->square[b + 1] += x * x;
    }
    for (int b = 0; b < BINS; b++) {
        h->n[b + 1] += h->n[b];
        h->sum[b + 1] += h->sum[b];
        h->square[b + 1] += h->square[b];
    }
}

static double within(const struct histogram *h, int from, int to)
{
    double n = h->n[to] - h->n[from], sum = h->sum[to] - h->sum[from];

    return n > 0 ? fmax(0, h->square[to] - h->square[from] - sum * sum / n) : 0;
}

/* cut[k][j]: start of the last of k + 1 segments of the first j bins. */
static void cut_best(const struct histogram *h, int cut[STATS_LEVELS][BINS + 1])
{
    double cost[STATS_LEVELS][BINS + 1];

    for (int j = 0; j <= BINS; j++) {
        cost[0][j] = within(h, 0, j);
        cut[0][j] = 0;
    }
    for (int k = 1; k < STATS_LEVELS; k++)
        for (int j = 0; j <= BINS; j++) {
            cost[k][j] = INFINITY;
            for (int i = 0; i <= j; i++) {
                double c = cost[k - 1][i] + within(h, i, j);
                if (c < cost[k][j]) {
                    cost[k][j] = c;
                    cut[k][j] = i;
                }
            }
        }
}

/* True if all neighbours of these levels, v[at[k]] .. v[at[k + 1] - 1], are clearly apart. */
static int apart(const double *v, const int *at, int levels, double noise)
{
    for (int k = 0; k < levels; k++)
        if (at[k + 1] == at[k])
            return 0;
    for (int k = 0; k + 1 < levels; k++) {
        const double *x = v + at[k], *y = v + at[k + 1];
        int nx = at[k + 1] - at[k], ny = at[k + 2] - at[k + 1];
        double sigma = fmax(noise, fmax(stats_sigma(x, nx), stats_sigma(y, ny)));
        if (stats_quantile(y, ny, 0.5) - stats_quantile(x, nx, 0.5) < levels_apart * sigma)
            return 0;
    }
    return 1;
}

int stats_levels(const double *v, int n, double noise, double *level)
{
    int cut[STATS_LEVELS][BINS + 1], at[STATS_LEVELS + 1];
    struct histogram h;

    noise = fmax(noise, (n < FEW_VALUES ? log1p(level_step_few) : level_step) / levels_apart);
    if (n < 2 || v[n - 1] - v[0] < levels_apart * noise)
        return 0;
    count(&h, v, n);
    cut_best(&h, cut);
    for (int levels = STATS_LEVELS; levels > 1; levels--) {
        at[levels] = n;
        for (int k = levels - 1, j = BINS; k >= 0; k--) {
            j = cut[k][j];
            at[k] = (int)h.n[j];
        }
        if (!apart(v, at, levels, noise))
            continue;
        for (int k = 0; k < levels; k++)
            level[k] = stats_quantile(v + at[k], at[k + 1] - at[k], 0.5);
        return levels;
    }
    return 0;
}

void rng_seed(struct rng *r, unsigned long long seed)
{
    for (int i = 0; i < 4; i++) {
        unsigned long long z = (seed += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        r->s[i] = z ^ (z >> 31);
    }
}

static unsigned long long rotl(unsigned long long x, int k)
{
    return (x << k) | (x >> (64 - k));
}

unsigned long long rng_u64(struct rng *r)
{
    unsigned long long *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double rng_uniform(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
    double u = 1 - rng_uniform(r), v = rng_uniform(r); /* Box & Muller 1958 */

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

unsigned rng_below(struct rng *r, unsigned n)
{
    return (unsigned)(((rng_u64(r) >> 32) * n) >> 32);
}

void rng_shuffle(struct rng *r, int *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_below(r, (unsigned)i + 1), t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}
