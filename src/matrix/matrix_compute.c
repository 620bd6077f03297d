/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/matrix_compute.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "matrix/matrix_impl.h"

enum { GEMMS_MAX = 65536, DEVICES_MAX = 1 << 20, NEIGHBOURS = 4 };
#define FLOPS_MAX 1e21
#define SIDE_MAX (1 << 30)
static const double least_error = 0.02;  /* drift of a clock from one minute to the next */
static const double octave_error = 0.02; /* for every octave to the nearest shape */

/* --- "compute" of matrix.json --- */

static const struct json_member gemm_members[] = {
    JSON_ROW("dtype", NAME, struct gemm_rate, dtype,
             .room = sizeof(((struct gemm_rate *)0)->dtype)),
    JSON_ROW("m", NUMBER, struct gemm_rate, m, .min = 1, .max = SIDE_MAX),
    JSON_ROW("n", NUMBER, struct gemm_rate, n, .min = 1, .max = SIDE_MAX),
    JSON_ROW("k", NUMBER, struct gemm_rate, k, .min = 1, .max = SIDE_MAX),
    JSON_ROW("flops", NUMBER, struct gemm_rate, flops, .min = 1, .max = FLOPS_MAX),
    JSON_ROW("devices", INT, struct gemm_rate, devices),
    JSON_ROW("spread", NUMBER, struct gemm_rate, spread, .max = 10),
    JSON_ROW("share", NUMBER, struct gemm_rate, share, .optional = true, .max = 10),
    {.key = NULL},
};

static const struct json_member kernel_members[] = {
    JSON_ROW("kind", NAME, struct gemm_rate, kind, .room = sizeof(((struct gemm_rate *)0)->kind)),
    JSON_ROW("dtype", NAME, struct gemm_rate, dtype,
             .room = sizeof(((struct gemm_rate *)0)->dtype)),
    JSON_ROW("m", NUMBER, struct gemm_rate, m, .min = 1, .max = SIDE_MAX),
    JSON_ROW("n", NUMBER, struct gemm_rate, n, .min = 1, .max = SIDE_MAX),
    JSON_ROW("k", NUMBER, struct gemm_rate, k, .min = 1, .max = SIDE_MAX),
    JSON_ROW("rate", NUMBER, struct gemm_rate, flops, .min = 1, .max = FLOPS_MAX),
    JSON_ROW("devices", INT, struct gemm_rate, devices),
    JSON_ROW("spread", NUMBER, struct gemm_rate, spread, .max = 10),
    {.key = NULL},
};

static int check_devices(int devices, int min, const char *where, struct err *err)
{
    if (devices >= min && devices <= DEVICES_MAX)
        return 0;
    return err_data(err, "%s: %d devices where %d..%d are possible", where, devices, min,
                    DEVICES_MAX);
}

static int read_gemm(void *whole, json_t *value, const char *where, struct err *err)
{
    struct compute_rates *c = whole;

    MEM_PUSH(c->gemm, c->gemms) = (struct gemm_rate){.devices = 0};
    struct gemm_rate *g = &c->gemm[c->gemms - 1];
    return json_read(value, where, gemm_members, g, err) < 0
               ? -1
               : check_devices(g->devices, 1, where, err);
}

static int read_kernel(void *whole, json_t *value, const char *where, struct err *err)
{
    struct compute_rates *c = whole;

    MEM_PUSH(c->kernel, c->kernels) = (struct gemm_rate){.devices = 0};
    struct gemm_rate *g = &c->kernel[c->kernels - 1];
    return json_read(value, where, kernel_members, g, err) < 0
               ? -1
               : check_devices(g->devices, 1, where, err);
}

static int read_list(void *whole, json_t *list, const char *where, json_read_fn *take,
                     struct err *err)
{
    if (!json_is_array(list) || json_array_size(list) > GEMMS_MAX)
        return err_data(err, "%s is not a list of at most %d", where, GEMMS_MAX);
    return json_each(list, where, take, whole, err);
}

static int read_gemms(void *whole, json_t *list, const char *where, struct err *err)
{
    char at[JSON_WHERE];

    where_at(at, "%s.gemm", where);
    return read_list(whole, list, at, read_gemm, err);
}

static int read_kernels(void *whole, json_t *list, const char *where, struct err *err)
{
    char at[JSON_WHERE];

    where_at(at, "%s.kernel", where);
    return read_list(whole, list, at, read_kernel, err);
}

static bool is_measured(const void *whole)
{
    const struct compute_rates *c = whole;
    bool any = c->gemms;

    for (int i = 0; i < ALONE_COUNT; i++)
        any = any || c->alone[i] > 0;
    return any;
}

static json_t *write_gemms(const void *whole)
{
    const struct compute_rates *c = whole;
    json_t *list = json_array();

    for (int i = 0; i < c->gemms; i++)
        json_array_append_new(list, json_write(gemm_members, &c->gemm[i]));
    return list;
}

static bool has_kernels(const void *whole)
{
    return ((const struct compute_rates *)whole)->kernels;
}

static json_t *write_kernels(const void *whole)
{
    const struct compute_rates *c = whole;
    json_t *list = json_array();

    for (int i = 0; i < c->kernels; i++)
        json_array_append_new(list, json_write(kernel_members, &c->kernel[i]));
    return list;
}

static const struct json_member rate_members[] = {
    JSON_ROW("hbm_Bps", NUMBER, struct compute_rates, alone[ALONE_HBM], .optional = true,
             .max = 1e18),
    JSON_ROW("hbm_read_Bps", NUMBER, struct compute_rates, alone[ALONE_HBM_READ], .optional = true,
             .max = 1e18),
    JSON_ROW("h2d_Bps", NUMBER, struct compute_rates, alone[ALONE_H2D], .optional = true,
             .max = 1e18),
    JSON_ROW("d2h_Bps", NUMBER, struct compute_rates, alone[ALONE_D2H], .optional = true,
             .max = 1e18),
    JSON_ROW("load_s", NUMBER, struct compute_rates, alone[ALONE_LATENCY], .optional = true,
             .max = 1e18),
    JSON_ROW("launch_s", NUMBER, struct compute_rates, alone[ALONE_LAUNCH], .optional = true,
             .max = 1e18),
    JSON_ROW("launch_graph_s", NUMBER, struct compute_rates, alone[ALONE_LAUNCH_GRAPH],
             .optional = true, .max = 1e18),
    {.key = NULL},
};
static const struct json_member share_members[] = {
    JSON_ROW("hbm_Bps", NUMBER, struct compute_rates, share[ALONE_HBM], .optional = true,
             .max = 100),
    JSON_ROW("hbm_read_Bps", NUMBER, struct compute_rates, share[ALONE_HBM_READ], .optional = true,
             .max = 100),
    JSON_ROW("h2d_Bps", NUMBER, struct compute_rates, share[ALONE_H2D], .optional = true,
             .max = 100),
    JSON_ROW("d2h_Bps", NUMBER, struct compute_rates, share[ALONE_D2H], .optional = true,
             .max = 100),
    JSON_ROW("load_s", NUMBER, struct compute_rates, share[ALONE_LATENCY], .optional = true,
             .max = 100),
    JSON_ROW("launch_s", NUMBER, struct compute_rates, share[ALONE_LAUNCH], .optional = true,
             .max = 100),
    {.key = NULL},
};

static const struct json_member compute_members[] = {
    JSON_ROW("flops", NUMBER, struct compute_rates, flops, .optional = true, .max = FLOPS_MAX),
    JSON_ROW("flops_spread", NUMBER, struct compute_rates, flops_spread, .optional = true,
             .max = 100),
    JSON_ROW("source", TEXT, struct compute_rates, source),
    JSON_ROW("devices", INT, struct compute_rates, devices, .optional = true, .when = is_measured),
    {.key = "alone",
     .kind = MEMBER_OBJECT,
     .optional = true,
     .when = is_measured,
     .members = rate_members},
    {.key = "share",
     .kind = MEMBER_OBJECT,
     .optional = true,
     .when = is_measured,
     .members = share_members},
    {.key = "gemm",
     .kind = MEMBER_PART,
     .optional = true,
     .when = is_measured,
     .read = read_gemms,
     .write = write_gemms},
    {.key = "kernel",
     .kind = MEMBER_PART,
     .optional = true,
     .when = has_kernels,
     .read = read_kernels,
     .write = write_kernels},
    {.key = NULL},
};

json_t *compute_pack(const struct compute_rates *c)
{
    return c->flops > 0 || is_measured(c) ? json_write(compute_members, c) : NULL;
}

int compute_unpack(struct compute_rates *c, json_t *value, const char *where, struct err *err)
{
    if (json_read(value, where, compute_members, c, err) < 0)
        return -1;
    if (!json_object_get(value, "flops") && !json_object_get(value, "gemm"))
        return err_data(err, "%s: neither flops nor gemm is there", where);
    return check_devices(c->devices, 0, where, err);
}

/* --- the rate of a product --- */

/* Squared distance in octaves. */
static double apart(const struct gemm_rate *g, double m, double n, double k)
{
    double a = log2(g->m / m), b = log2(g->n / n), c = log2(g->k / k);

    return a * a + b * b + c * c;
}

/* The nearest ones of this kind and dtype, in order of their distance; returns how many. */
static int nearest(const struct compute_rates *c, const struct gemm_rate *asked,
                   const struct gemm_rate *near[NEIGHBOURS], double far[NEIGHBOURS])
{
    const struct gemm_rate *list = *asked->kind ? c->kernel : c->gemm;
    int count = 0, all = *asked->kind ? c->kernels : c->gemms;

    for (int i = 0; i < all; i++) {
        if (strcmp(list[i].dtype, asked->dtype) || strcmp(list[i].kind, asked->kind))
            continue;
        double d = apart(&list[i], asked->m, asked->n, asked->k);
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
        near[at] = &list[i];
        far[at] = d;
    }
    return count;
}

double compute_rate(const struct compute_rates *c, const struct gemm_rate *asked, double *error)
{
    const struct gemm_rate *near[NEIGHBOURS];
    double far[NEIGHBOURS], weight = 0, sum = 0, squares = 0;
    int count = nearest(c, asked, near, far);

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
