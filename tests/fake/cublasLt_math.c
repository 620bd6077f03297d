/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the stand-in for cuBLASLt. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cublasLt_fake.h"

enum { SMALL = 6 << 20 };

/* KEY=VALUE of FAKE_GEMM. */
double lt_setting(const char *key, double otherwise)
{
    const char *text = getenv("FAKE_GEMM");
    size_t len = strlen(key);

    for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        if (!strncmp(text, key, len) && text[len] == '=')
            return atof(text + len + 1);
    return otherwise;
}

static double from_bf16(const unsigned char *at)
{
    uint32_t bits;
    uint16_t half;
    float value;

    memcpy(&half, at, 2);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, 4);
    return (double)value;
}

/* 1 sign, 4 exponent, 3 mantissa bits, bias 7; as a scale without the sign. */
static double from_e4m3(unsigned code)
{
    int e = code >> 3 & 15, f = code & 7;
    double v = e ? ldexp(8 + f, e - 10) : ldexp(f, -9);

    return code >> 7 ? -v : v;
}

static double element(const unsigned char *at, const struct lt_format *f, size_t i)
{
    static const double e2m1[16] = {0,    0.5,  1,  1.5,  2,  3,  4,  6,
                                    -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

    return f->bits == 16  ? from_bf16(at + 2 * i)
           : f->bits == 8 ? from_e4m3(at[i])
                          : e2m1[at[i / 2] >> (i % 2 ? 4 : 0) & 15];
}

/* Where the scale of block b of row r is; `across` is the number of tiles along k. */
static size_t scale_at(size_t r, size_t b, size_t across)
{
    return (r / 128 * across + b / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + b % 4;
}

static double scale_of(const unsigned char *scale, const struct lt_format *f, size_t at)
{
    return f->mode == CUBLASLT_SCALE_VEC32_UE8M0 ? ldexp(1, scale[at] - 127)
                                                 : from_e4m3(scale[at] & 0x7f);
}

static void put_bf16(unsigned char *at, size_t i, double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    bits += 0x7fff + (bits >> 16 & 1); /* to nearest, ties to even */
    uint16_t half = (uint16_t)(bits >> 16);
    memcpy(at + 2 * i, &half, 2);
}

/* The first of so many bytes of the device; NULL, and the device is lost, where they end early. */
static const unsigned char *reach(const struct lt_task *t, const unsigned char *at, size_t bytes)
{
    return t->h->host(at + bytes - 1) ? t->h->host(at) : NULL;
}

static size_t tiles_along(const struct lt_task *t, int i)
{
    return (t->in[i].rows + 4 * (size_t)t->format->along - 1) / (4 * (size_t)t->format->along);
}

static size_t scale_bytes(const struct lt_task *t, int i)
{
    return (t->in[i].cols + 127) / 128 * tiles_along(t, i) * 512;
}

static bool all_there(const struct lt_task *t)
{
    bool there = reach(t, t->out, 2 * ((t->ol.cols - 1) * (size_t)t->ol.ld + t->ol.rows));

    for (int i = 0; i < 2 && there; i++) {
        size_t elements = (t->in[i].cols - 1) * (size_t)t->in[i].ld + t->in[i].rows;
        there = reach(t, t->operand[i], (elements * (size_t)t->format->bits + 7) / 8) &&
                (!t->format->along || reach(t, t->scale[i], scale_bytes(t, i)));
    }
    return there;
}

static void apply_scales(double *v, const struct lt_task *t, int i)
{
    const unsigned char *scale = t->h->host(t->scale[i]);
    size_t along = (size_t)t->format->along, across = tiles_along(t, i);
    size_t blocks = (t->in[i].rows + along - 1) / along;

    for (size_t r = 0; r < (t->in[i].cols + 127) / 128 * 128; r++)
        for (size_t b = 0; b < across * 4; b++) {
            size_t at = scale_at(r, b, across);
            if (r >= t->in[i].cols || b >= blocks) {
                v[0] = scale[at] ? NAN : v[0];
                continue;
            }
            for (size_t k = b * along; k < (b + 1) * along && k < t->in[i].rows; k++)
                v[r * t->in[i].rows + k] *= scale_of(scale, t->format, at);
        }
}

static double *decode(const struct lt_task *t, int i)
{
    const struct cublaslt_layout *l = &t->in[i];
    double *v = malloc(l->cols * l->rows * sizeof(*v));
    const unsigned char *at = t->h->host(t->operand[i]);

    for (size_t r = 0; r < l->cols; r++)
        for (size_t k = 0; k < l->rows; k++)
            v[r * l->rows + k] = element(at, t->format, r * (size_t)l->ld + k);
    if (t->format->along && !t->h->fault("scales", 1, NULL))
        apply_scales(v, t, i);
    return v;
}

static void compute(const struct lt_task *t)
{
    double *a = decode(t, 0), *b = decode(t, 1);
    unsigned char *out = t->h->host(t->out);
    size_t depth = t->in[0].rows;

    for (size_t m = 0; m < t->in[1].cols; m++)
        for (size_t n = 0; n < t->in[0].cols; n++) {
            double sum = 0;
            for (size_t k = 0; k < depth; k++)
                sum += a[n * depth + k] * b[m * depth + k];
            put_bf16(out, m * (size_t)t->ol.ld + n, sum);
        }
    if (t->h->fault("product", 1, NULL))
        put_bf16(out, 5, 77);
    free(a);
    free(b);
}

void lt_run(void *arg)
{
    struct lt_task *t = arg;
    double m = (double)t->in[1].cols, n = (double)t->in[0].cols, k = (double)t->in[0].rows;
    double least = fmin(m, fmin(n, k)), half = lt_setting("half", 0);
    double rate = lt_setting(t->format->name, t->format->rate);

    if (all_there(t) && m * n * k <= SMALL)
        compute(t);
    t->h->skip(2 * m * n * k / (rate * least / (least + half)));
    free(t);
}
