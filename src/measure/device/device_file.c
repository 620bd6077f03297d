/* SPDX-License-Identifier: BSD-3-Clause */
/* device_file.c - compute.tsv: one row per endpoint and figure; words that name shapes. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "measure/device/device.h"

static const char first_line[] = "# railgauge-compute 1";
enum { ROWS_MAX = 1 << 24, TEXT_MAX = 1 << 30 };

// clang-format off
#define COLUMN_TABLE(C)                                                                            \
    C(ENDPOINT, endpoint) C(HOST, host) C(GPU, gpu) C(BUSID, busid) C(KIND, kind) C(DTYPE, dtype)  \
    C(M, m) C(N, n) C(K, k) C(UNIT, unit) C(VALUE, value) C(LO, lo) C(HI, hi)                      \
    C(SAMPLES, samples) C(LIMIT, limit) C(NOTE, note)
// clang-format on
#define COLUMN_ID(ID, name) C_##ID,
#define COLUMN_NAME(ID, name) #name,
enum device_column { COLUMN_TABLE(COLUMN_ID) COLUMNS };
static const char *const columns[COLUMNS] = {COLUMN_TABLE(COLUMN_NAME)};

#define KIND_NAME(ID, name, unit) #name,
#define KIND_UNIT(ID, name, unit) unit,
const char *const device_kind_name[DEVICE_KINDS] = {DEVICE_TABLE(KIND_NAME)};
const char *const device_unit[DEVICE_KINDS] = {DEVICE_TABLE(KIND_UNIT)};

/* Write foreign text (from a driver, a GPU's name) without ending a cell or a line. */
static void put_text(FILE *out, const char *text)
{
    for (const char *c = *text ? text : "-"; *c; c++)
        fputc((unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c, out);
}

static void put_row(FILE *out, const struct device_row *r)
{
    bool gemm = device_shaped(r->kind);

    fprintf(out, "%d\t", r->endpoint);
    put_text(out, r->host);
    fputc('\t', out);
    put_text(out, r->gpu);
    fputc('\t', out);
    put_text(out, r->busid);
    fprintf(out, "\t%s\t%s\t%d\t%d\t%d\t%s\t%.9g\t%.9g\t%.9g\t%d\t%.9g\t",
            device_kind_name[r->kind], gemm ? gemm_dtype_name[r->shape.dtype] : "-", r->shape.m,
            r->shape.n, r->shape.k, device_unit[r->kind], r->value, r->lo, r->hi, r->samples,
            r->limit);
    put_text(out, r->note);
    fputc('\n', out);
}

int device_save(const struct device_table *t, const char *path, struct err *err)
{
    json_t *made = json_provenance();
    char *line = json_dumps(made, JSON_COMPACT | JSON_ENSURE_ASCII);
    struct file_out f;
    int rc = file_begin(&f, path, err);

    if (rc == 0) {
        fprintf(f.stream, "%s\n# %s\n", first_line, line ? line : "{}");
        for (int i = 0; i < COLUMNS; i++)
            fprintf(f.stream, "%s%c", columns[i], i + 1 < COLUMNS ? '\t' : '\n');
        for (int i = 0; i < t->rows; i++)
            put_row(f.stream, &t->row[i]);
        rc = file_commit(&f, err);
        file_abort(&f);
    }
    free(line);
    json_decref(made);
    return rc;
}

static int word(const char *const *names, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], text))
            return i;
    return -1;
}

static int get_text(char *out, size_t size, const struct tsv *t, int row, const int *at,
                    enum device_column c, struct err *err)
{
    const char *text = t->row[row].cell[at[c]];

    if (strlen(text) >= size)
        return err_data(err, "%s:%d: column %s: %zu characters are more than %zu", t->path,
                        t->row[row].line, columns[c], strlen(text), size - 1);
    snprintf(out, size, "%s", strcmp(text, "-") ? text : "");
    return 0;
}

/* Read a number, or "nan" for a figure that was not measured. */
static int get_number(double *out, const struct tsv *t, int row, int col, struct err *err)
{
    *out = NAN;
    return strcmp(t->row[row].cell[col], "nan") ? tsv_double(t, row, col, 0, 1e24, out, err) : 0;
}

static int get_shape(struct device_row *r, const struct tsv *t, int row, const int *at,
                     struct err *err)
{
    const char *dtype = t->row[row].cell[at[C_DTYPE]];
    int least = device_shaped(r->kind), most = least ? 1 << 30 : 0;
    int d = least ? word(gemm_dtype_name, GEMM_DTYPES, dtype) : strcmp(dtype, "-") ? -1 : 0;

    if (d < 0)
        return err_data(err, "%s:%d: column dtype: %s of \"%s\"", t->path, t->row[row].line,
                        device_kind_name[r->kind], dtype);
    r->shape.dtype = (enum gemm_dtype)d;
    if (tsv_int(t, row, at[C_M], least, most, &r->shape.m, err) < 0 ||
        tsv_int(t, row, at[C_N], least, most, &r->shape.n, err) < 0)
        return -1;
    return tsv_int(t, row, at[C_K], least, most, &r->shape.k, err);
}

static int get_figures(struct device_row *r, const struct tsv *t, int row, const int *at,
                       struct err *err)
{
    const struct tsv_row *line = &t->row[row];

    if (strcmp(line->cell[at[C_UNIT]], device_unit[r->kind]))
        return err_data(err, "%s:%d: column unit: %s is in %s, not in \"%s\"", t->path, line->line,
                        device_kind_name[r->kind], device_unit[r->kind], line->cell[at[C_UNIT]]);
    if (get_number(&r->value, t, row, at[C_VALUE], err) < 0 ||
        get_number(&r->lo, t, row, at[C_LO], err) < 0 ||
        get_number(&r->hi, t, row, at[C_HI], err) < 0 ||
        tsv_int(t, row, at[C_SAMPLES], 0, INT_MAX, &r->samples, err) < 0 ||
        tsv_double(t, row, at[C_LIMIT], 0, 1e24, &r->limit, err) < 0)
        return -1;
    bool measured = r->value > 0, whole = r->lo > 0 && r->lo <= r->value && r->value <= r->hi;
    if (measured ? !whole || !r->samples : r->samples || !isnan(r->value))
        return err_data(err, "%s:%d: %d samples with a median of %g in %g..%g cannot be", t->path,
                        line->line, r->samples, r->value, r->lo, r->hi);
    return 0;
}

static int get_row(struct device_row *r, const struct tsv *t, int row, const int *at,
                   struct err *err)
{
    const char *kind = t->row[row].cell[at[C_KIND]];
    int k = word(device_kind_name, DEVICE_KINDS, kind);

    *r = (struct device_row){.endpoint = -1};
    if (k < 0)
        return err_data(err, "%s:%d: column kind: \"%s\" is not known", t->path, t->row[row].line,
                        kind);
    r->kind = (enum device_kind)k;
    if (tsv_int(t, row, at[C_ENDPOINT], 0, 1 << 20, &r->endpoint, err) < 0 ||
        get_text(r->host, sizeof(r->host), t, row, at, C_HOST, err) < 0 ||
        get_text(r->gpu, sizeof(r->gpu), t, row, at, C_GPU, err) < 0 ||
        get_text(r->busid, sizeof(r->busid), t, row, at, C_BUSID, err) < 0 ||
        get_text(r->note, sizeof(r->note), t, row, at, C_NOTE, err) < 0 ||
        get_shape(r, t, row, at, err) < 0)
        return -1;
    return get_figures(r, t, row, at, err);
}

/* Order by endpoint and figure to find duplicates, which would count twice (a wrongly merged
 * file). */
static int by_what(const void *a, const void *b)
{
    const struct device_row *x = *(struct device_row *const *)a,
                            *y = *(struct device_row *const *)b;
    const double v[] = {x->endpoint, x->kind, x->shape.dtype, x->shape.m, x->shape.n, x->shape.k};
    const double w[] = {y->endpoint, y->kind, y->shape.dtype, y->shape.m, y->shape.n, y->shape.k};

    return stats_order(v, w, 6);
}

static int check_twice(const struct device_table *t, const char *path, struct err *err)
{
    const struct device_row **sorted = mem_calloc((size_t)t->rows + 1, sizeof(*sorted));
    int rc = 0;

    for (int i = 0; i < t->rows; i++)
        sorted[i] = &t->row[i];
    qsort(sorted, (size_t)t->rows, sizeof(*sorted), by_what);
    for (int i = 1; i < t->rows && rc == 0; i++)
        if (!by_what(&sorted[i - 1], &sorted[i]))
            rc = err_data(err, "%s: endpoint %d has %s twice", path, sorted[i]->endpoint,
                          device_kind_name[sorted[i]->kind]);
    free(sorted);
    return rc;
}

int device_parse(struct device_table *t, const char *path, char *text, struct err *err)
{
    struct tsv tsv;
    int at[COLUMNS], rc = 0;

    *t = (struct device_table){NULL, 0};
    if (strncmp(text, first_line, sizeof(first_line) - 1)) {
        free(text);
        return err_data(err, "%s:1: the first line is not \"%s\"", path, first_line);
    }
    if (tsv_parse(&tsv, path, text, err) < 0)
        return -1;
    for (int i = 0; i < COLUMNS && rc == 0; i++)
        rc = (at[i] = tsv_column(&tsv, columns[i], err)) < 0 ? -1 : 0;
    if (rc == 0 && tsv.columns != COLUMNS)
        rc = err_data(err, "%s: %d columns where %d are known", path, tsv.columns, COLUMNS);
    if (rc == 0 && tsv.rows > ROWS_MAX)
        rc = err_data(err, "%s: %d rows are more than %d", path, tsv.rows, ROWS_MAX);
    t->row = rc == 0 ? mem_calloc((size_t)tsv.rows + 1, sizeof(*t->row)) : NULL;
    for (int i = 0; i < tsv.rows && rc == 0; i++, t->rows += rc == 0)
        rc = get_row(&t->row[i], &tsv, i, at, err);
    tsv_free(&tsv);
    if (rc == 0)
        rc = check_twice(t, path, err);
    if (rc < 0)
        device_free(t);
    return rc;
}

int device_load(struct device_table *t, const char *path, struct err *err)
{
    char *text;

    *t = (struct device_table){NULL, 0};
    return file_read(&text, NULL, path, TEXT_MAX, err) < 0 ? -1 : device_parse(t, path, text, err);
}

void device_free(struct device_table *t)
{
    free(t->row);
    *t = (struct device_table){NULL, 0};
}

/* --- products that a user names --- */

enum { DIMENSION_MAX = 1 << 24 };

const char *const gemm_dtype_name[GEMM_DTYPES] = {"bf16", "fp8", "mxfp8", "nvfp4"};

/* Parse "bf16:8192x4096x4096". */
static int parse_shape(struct gemm_shape *s, char *text, struct err *err)
{
    char *sizes = strchr(text, ':'), *save = NULL;
    int *const at[] = {&s->m, &s->n, &s->k};
    int dtype = -1, n = 0;

    if (sizes)
        *sizes++ = '\0';
    for (int i = 0; i < GEMM_DTYPES; i++)
        if (!strcmp(text, gemm_dtype_name[i]))
            dtype = i;
    if (dtype < 0)
        return err_usage(err, "\"%s\" is not bf16, fp8, mxfp8 or nvfp4", text);
    s->dtype = (enum gemm_dtype)dtype;
    for (char *t = sizes ? strtok_r(sizes, "x", &save) : NULL; t; t = strtok_r(NULL, "x", &save))
        if (n == 3 || units_int(at[n++], t, 1, DIMENSION_MAX, err) < 0)
            return err_usage(err, "\"%s\" in the sizes M x N x K of a product", t);
    return n == 3 ? 0 : err_usage(err, "%d sizes of a product where M x N x K are three", n);
}

int gemm_shapes_parse(struct gemm_shape **out, int *count, const char *text, struct err *err)
{
    char *copy = mem_strdup(text), *save = NULL;
    int rc = 0;

    *out = NULL;
    *count = 0;
    for (char *t = strtok_r(copy, ",", &save); t && rc == 0; t = strtok_r(NULL, ",", &save)) {
        struct gemm_shape s;
        rc = parse_shape(&s, t, err);
        MEM_PUSH(*out, *count) = s;
    }
    free(copy);
    if (rc == 0 && !*count)
        rc = err_usage(err, "no product in \"%s\"", text);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
