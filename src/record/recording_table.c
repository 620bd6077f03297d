/* SPDX-License-Identifier: BSD-3-Clause */
/* recording_table.c - shared by both readers: new tables, and checks of their values. */
#include "record/recording.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct recording_table *recording_add(struct recording *r, int line)
{
    MEM_PUSH(r->table, r->tables) =
        (struct recording_table){.line = line, .iters = 1, .threads = 1, .gpus = 1, .factor = 2};
    return &r->table[r->tables - 1];
}

void recording_busid(char out[16], const char *text)
{
    unsigned domain, bus, device;
    int used = 0;

    out[0] = '\0';
    if (sscanf(text, "%4x:%2x:%2x%n", &domain, &bus, &device, &used) == 3 && !text[used])
        snprintf(out, 16, "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff, device & 0xff);
}

const char *recording_at(const struct recording *r, const char *list, int line, char buf[320])
{
    if (r->json)
        snprintf(buf, 320, "%.280s: %s[%d]", r->path, list, line);
    else
        snprintf(buf, 320, "%.280s:%d", r->path, line);
    return buf;
}

int recording_plain(const struct recording *r, int line, const char *what, const char *text,
                    size_t max, struct err *err)
{
    char at[320];

    for (const char *s = text; *s; s++)
        if (*s < ' ' || *s > '~')
            return err_data(err, "%s: %s has the byte 0x%02x at position %d",
                            recording_at(r, "results", line, at), what, (unsigned char)*s,
                            (int)(s - text) + 1);
    if (!*text || strlen(text) > max)
        return err_data(err, "%s: %s of %zu characters where 1..%zu are possible",
                        recording_at(r, "results", line, at), what, strlen(text), max);
    return 0;
}

int recording_set(const struct recording *r, const struct recording_row *row,
                  struct recording_half *h, double sec, const double rate[2], int n,
                  struct err *err)
{
    double want = (double)row->bytes / sec / 1e9;
    char at[320];

    h->mean = true;
    h->bus = rate[0] >= 0.5 && rate[1] >= 0.5 ? rate[1] / rate[0] : 0;
    h->sec = (struct summary){.n = n,
                              .median = sec,
                              .lo = NAN,
                              .hi = NAN,
                              .min = NAN,
                              .p5 = NAN,
                              .p95 = NAN,
                              .max = NAN,
                              .mad = NAN};
    /* Tolerance: rates have two decimals, times at least two digits. */
    if (fabs(rate[0] - want) <= 0.011 + 0.06 * want)
        return 0;
    return err_data(err, "%s: algbw %g GB/s is not %zu bytes in %g us, which are %.4g GB/s",
                    recording_at(r, "results", row->line, at), rate[0], row->bytes, sec * 1e6,
                    want);
}
