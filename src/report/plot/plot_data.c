/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plot/plot_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static int write_table(const struct plot_table *t, const void *figure, const char *dir,
                       struct err *err)
{
    char *path = file_join(dir, t->name);
    struct file_out out;
    int rc = file_begin(&out, path, err);

    free(path);
    if (rc < 0)
        return -1;
    if (t->header)
        fprintf(out.stream, "%s\n", t->header);
    t->put(out.stream, figure);
    return file_commit(&out, err);
}

int plot_tables_write(const struct plot_table *table, const void *figure, const char *dir,
                      struct err *err)
{
    for (; table->name; table++)
        if (write_table(table, figure, dir, err) < 0)
            return -1;
    return 0;
}

/* Length of the first `most` characters of a UTF-8 text, bytes. */
static size_t prefix(const char *text, int most)
{
    size_t n = 0;

    for (; text[n]; n++)
        if ((text[n] & 0xc0) != 0x80 && most-- == 0)
            break;
    return n;
}

char *plot_text(char buf[PLOT_TEXT], const char *text, int most)
{
    static const char dots[] = "…";
    size_t n = prefix(text, most), out = 0;
    bool cut = text[n] || n > PLOT_TEXT - sizeof(dots);

    if (cut)
        n = prefix(text, most - 1);
    if (n > PLOT_TEXT - sizeof(dots))
        n = PLOT_TEXT - sizeof(dots);
    for (; out < n; out++) {
        unsigned char c = (unsigned char)text[out];
        buf[out] = c == '\t'             ? ' '
                   : c < ' ' || c == 127 ? '?'
                   : c == '"'            ? '\''
                   : c == '\\'           ? '/'
                                         : text[out];
    }
    memcpy(buf + out, cut ? dots : "", cut ? sizeof(dots) : 1);
    return buf;
}

double plot_nice(double v, bool up)
{
    static const double step[] = {1, 2, 5, 10};

    if (!(v > 0) || isinf(v))
        return v;
    double unit = pow(10, floor(log10(v))), best = up ? 10 : 1;
    for (int i = 0; i < 4; i++) {
        if (up && step[i] * unit >= v * (1 - 1e-9))
            best = fmin(best, step[i]);
        if (!up && step[i] * unit <= v * (1 + 1e-9))
            best = fmax(best, step[i]);
    }
    return best * unit;
}

void plot_spread(double *y, int n, double gap, double lo, double hi)
{
    /* Too many for the room: space them evenly. */
    if (n > 1 && (n - 1) * gap > hi - lo)
        gap = (hi - lo) / (n - 1);
    /* Push up from below, then down from above; a few rounds settle any cluster. */
    for (int round = 0; round < 50; round++) {
        for (int i = 1; i < n; i++) {
            double lack = gap - (y[i] - y[i - 1]);
            if (lack <= 0)
                continue;
            y[i] += lack / 2;
            y[i - 1] -= lack / 2;
        }
    }
    for (int i = 0; i < n; i++)
        y[i] = fmax(y[i], i ? y[i - 1] + gap : lo);
    for (int i = n - 1; i >= 0; i--)
        y[i] = fmin(y[i], i < n - 1 ? y[i + 1] - gap : hi);
}

void plot_number(FILE *out, double v)
{
    if (isfinite(v))
        fprintf(out, "\t%.6g", v);
    else
        fputs("\tNaN", out);
}

char *plot_count(char buf[PLOT_TEXT], long n, const char *noun)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%ld", n), out = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf[out++] = ',';
        buf[out++] = digits[i];
    }
    snprintf(buf + out, PLOT_TEXT - (size_t)out, "%s%s%s", *noun ? " " : "", noun,
             *noun && n != 1 ? "s" : "");
    return buf;
}
