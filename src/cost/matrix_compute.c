/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/matrix_compute.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cost/matrix_impl.h"

enum { GEMMS_MAX = 65536, DEVICES_MAX = 1 << 20, NEIGHBOURS = 4 };
static const double least_error = 0.02;  /* what a clock does from one minute to the next */
static const double octave_error = 0.02; /* for every octave to the nearest shape */
static const double flops_max = 1e21, size_max = 1 << 30;

/* Keys of the file. */
static const char *const alone_name[ALONE_COUNT] = {
    [ALONE_HBM] = "hbm_Bps", [ALONE_HBM_READ] = "hbm_read_Bps", [ALONE_H2D] = "h2d_Bps",
    [ALONE_D2H] = "d2h_Bps", [ALONE_LATENCY] = "load_s",        [ALONE_LAUNCH] = "launch_s",
};

void compute_free(struct compute_rates *c)
{
    free(c->source);
    free(c->gemm);
    memset(c, 0, sizeof(*c));
}

static json_t *pack_gemm(const struct gemm_rate *g)
{
    json_t *out =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:i, s:f}", "dtype", g->dtype, "m", g->m, "n", g->n,
                  "k", g->k, "flops", g->flops, "devices", g->devices, "spread", g->spread);

    if (g->share > 0)
        json_object_set_new(out, "share", json_real(g->share));
    return out;
}

json_t *compute_pack(const struct compute_rates *c)
{
    json_t *out = json_object(), *alone = json_object(), *share = json_object();
    json_t *gemm = json_array();

    if (c->flops > 0)
        json_object_set_new(out, "flops", json_real(c->flops));
    if (c->flops > 0 && c->flops_spread > 0)
        json_object_set_new(out, "flops_spread", json_real(c->flops_spread));
    json_object_set_new(out, "source", json_string(c->source ? c->source : ""));
    for (int i = 0; i < ALONE_COUNT; i++) {
        if (c->alone[i] > 0)
            json_object_set_new(alone, alone_name[i], json_real(c->alone[i]));
        if (c->share[i] > 0)
            json_object_set_new(share, alone_name[i], json_real(c->share[i]));
    }
    for (int i = 0; i < c->gemms; i++)
        json_array_append_new(gemm, pack_gemm(&c->gemm[i]));
    bool measured = json_object_size(alone) || c->gemms;
    if (measured) {
        json_object_set_new(out, "devices", json_integer(c->devices));
        json_object_set(out, "alone", alone);
        json_object_set(out, "share", share);
        json_object_set(out, "gemm", gemm);
    }
    json_decref(alone);
    json_decref(share);
    json_decref(gemm);
    if (c->flops > 0 || measured)
        return out;
    json_decref(out);
    return NULL;
}

static int unpack_gemm(struct gemm_rate *g, json_t *value, const char *where, struct err *err)
{
    json_t *number[6];
    const char *dtype;

    if (json_take(value, where, err, "{s:s, s:o, s:o, s:o, s:o, s?o, s:o, s:i}", "dtype", &dtype,
                  "m", &number[0], "n", &number[1], "k", &number[2], "flops", &number[3], "share",
                  &number[4], "spread", &number[5], "devices", &g->devices) < 0 ||
        json_number(value, where, "m", 1, size_max, 0, &g->m, err) < 0 ||
        json_number(value, where, "n", 1, size_max, 0, &g->n, err) < 0 ||
        json_number(value, where, "k", 1, size_max, 0, &g->k, err) < 0 ||
        json_number(value, where, "flops", 1, flops_max, 0, &g->flops, err) < 0 ||
        json_number(value, where, "share", 0, 10, 1, &g->share, err) < 0 ||
        json_number(value, where, "spread", 0, 10, 0, &g->spread, err) < 0)
        return -1;
    if (!*dtype || strlen(dtype) >= sizeof(g->dtype))
        return err_data(err, "%s.dtype: \"%s\" has not 1..%zu characters", where, dtype,
                        sizeof(g->dtype) - 1);
    if (g->devices < 1 || g->devices > DEVICES_MAX)
        return err_data(err, "%s: %d devices where 1..%d are possible", where, g->devices,
                        DEVICES_MAX);
    memcpy(g->dtype, dtype, strlen(dtype) + 1);
    return 0;
}

/* An object of some of the names above. */
static int unpack_alone(double out[ALONE_COUNT], json_t *value, const char *where, double max,
                        struct err *err)
{
    const char *key;
    json_t *number;

    if (!json_is_object(value))
        return err_data(err, "%s is not an object", where);
    json_object_foreach(value, key, number)
    {
        int i = 0;
        while (i < ALONE_COUNT && strcmp(key, alone_name[i]))
            i++;
        if (i == ALONE_COUNT)
            return err_data(err, "%s: unknown key: %s", where, key);
        if (json_number(value, where, key, 0, max, 0, &out[i], err) < 0)
            return -1;
    }
    return 0;
}

static int unpack_gemms(struct compute_rates *c, json_t *list, const char *where, struct err *err)
{
    char at[WHERE];

    if (!json_is_array(list) || json_array_size(list) > GEMMS_MAX)
        return err_data(err, "%s.gemm is not a list of at most %d", where, GEMMS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        MEM_PUSH(c->gemm, c->gemms) = (struct gemm_rate){.devices = 0};
        if (unpack_gemm(&c->gemm[i], json_array_get(list, i),
                        where_at(at, "%s.gemm[%zu]", where, i), err) < 0)
            return -1;
    }
    return 0;
}

int compute_unpack(struct compute_rates *c, json_t *value, const char *where, struct err *err)
{
    json_t *flops = NULL, *spread = NULL, *alone = NULL, *share = NULL, *gemm = NULL;
    const char *source;
    char at[WHERE];

    if (json_take(value, where, err, "{s?o, s?o, s:s, s?i, s?o, s?o, s?o}", "flops", &flops,
                  "flops_spread", &spread, "source", &source, "devices", &c->devices, "alone",
                  &alone, "share", &share, "gemm", &gemm) < 0 ||
        json_number(value, where, "flops", 0, flops_max, 1, &c->flops, err) < 0 ||
        json_number(value, where, "flops_spread", 0, 100, 1, &c->flops_spread, err) < 0)
        return -1;
    c->source = mem_strdup(source);
    if (!flops && !gemm)
        return err_data(err, "%s: neither flops nor gemm is there", where);
    if (c->devices < 0 || c->devices > DEVICES_MAX)
        return err_data(err, "%s: %d devices where 0..%d are possible", where, c->devices,
                        DEVICES_MAX);
    if (alone && unpack_alone(c->alone, alone, where_at(at, "%s.alone", where), 1e18, err) < 0)
        return -1;
    if (share && unpack_alone(c->share, share, where_at(at, "%s.share", where), 100, err) < 0)
        return -1;
    return gemm ? unpack_gemms(c, gemm, where, err) : 0;
}

/* Squared distance in octaves. */
static double apart(const struct gemm_rate *g, double m, double n, double k)
{
    double a = log2(g->m / m), b = log2(g->n / n), c = log2(g->k / k);

    return a * a + b * b + c * c;
}

/* The nearest ones of this dtype, in order of their distance; returns how many. */
static int nearest(const struct compute_rates *c, const char *dtype, double m, double n, double k,
                   const struct gemm_rate *near[NEIGHBOURS], double far[NEIGHBOURS])
{
    int count = 0;

    for (int i = 0; i < c->gemms; i++) {
        if (strcmp(c->gemm[i].dtype, dtype))
            continue;
        double d = apart(&c->gemm[i], m, n, k);
        int at = count < NEIGHBOURS ? count : NEIGHBOURS;
        while (at > 0 && far[at - 1] > d)
            at--;
        if (at == NEIGHBOURS)
            continue;
        int last = count < NEIGHBOURS ? count++ : NEIGHBOURS - 1;
        for (int j = last; j > at; j--) {
            near[j] = near[j - 1];
            far[j] = far[j - 1];
        }
        near[at] = &c->gemm[i];
        far[at] = d;
    }
    return count;
}

double compute_gemm(const struct compute_rates *c, const char *dtype, double m, double n, double k,
                    double *error)
{
    const struct gemm_rate *near[NEIGHBOURS];
    double far[NEIGHBOURS], weight = 0, sum = 0, squares = 0;
    int count = nearest(c, dtype, m, n, k, near, far);

    *error = 0;
    if (!count)
        return 0;
    if (far[0] < 1e-12)
        count = 1;
    for (int i = 0; i < count; i++) {
        double w = count == 1 ? 1 : 1 / far[i], l = log(near[i]->flops);
        weight += w;
        sum += w * l;
        squares += w * l * l;
    }
    double mean = sum / weight, var = fmax(0, squares / weight - mean * mean);
    double octaves = octave_error * sqrt(far[0]);
    *error = sqrt(least_error * least_error + near[0]->spread * near[0]->spread + var +
                  octaves * octaves);
    return exp(mean);
}

double compute_best(const struct compute_rates *c, const char *dtype)
{
    double best = 0;

    for (int i = 0; i < c->gemms; i++)
        if (!strcmp(c->gemm[i].dtype, dtype))
            best = fmax(best, c->gemm[i].flops);
    return best;
}
