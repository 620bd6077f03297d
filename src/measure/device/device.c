/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"
#include "kernels/kernels.h"
#include "measure/measure.h"
#include "measure/verify.h"
#include "watch/watch.h"

/* --- bandwidth of a PCIe link per direction after line coding: 8b/10b up to 5 GT/s, 128b/130b up
 * to 32 GT/s, and 242 of 256 bytes of a flit from 64 GT/s on (PCI Express Base Specification 6.0,
 * 4.2) --- */

static const struct {
    double transfers, coding; /* GT/s per lane; payload share */
} generation[] = {{2.5, 0.8},        {5, 0.8},          {8, 128.0 / 130},
                  {16, 128.0 / 130}, {32, 128.0 / 130}, {64, 242.0 / 256}};
enum { GENERATIONS = sizeof(generation) / sizeof(*generation) };

/* Number at the start of a sysfs file: "32.0 GT/s PCIe", "16"; 0 if there is none. */
static double number_in(const char *root, const char *busid, const char *name)
{
    char *path = mem_printf("%s/sys/bus/pci/devices/%s/%s", root, busid, name);
    FILE *f = fopen(path, "r");
    char text[64] = "";

    if (f) {
        if (!fgets(text, sizeof(text), f))
            text[0] = '\0';
        fclose(f);
    }
    free(path);
    double v = strtod(text, NULL);
    return isfinite(v) && v > 0 && v < 1e4 ? v : 0;
}

static int generation_of(double transfers)
{
    for (int i = 0; i < GENERATIONS; i++)
        if (fabs(generation[i].transfers - transfers) < 0.1)
            return i;
    return -1;
}

double device_pcie(const char *root, const char *busid, char note[120])
{
    int most = generation_of(number_in(root, busid, "max_link_speed"));
    int now = generation_of(number_in(root, busid, "current_link_speed"));
    double lanes = number_in(root, busid, "max_link_width");
    double trained = number_in(root, busid, "current_link_width");

    note[0] = '\0';
    if (most < 0 || lanes < 1 || lanes > 32)
        return 0;
    if ((now >= 0 && now < most) || (trained > 0 && trained < lanes))
        snprintf(note, 120, "the PCIe link is trained at gen %d x%.0f of gen %d x%.0f", now + 1,
                 trained, most + 1, lanes);
    return generation[most].transfers * 1e9 / 8 * generation[most].coding * lanes;
}

enum { GRAPH_LAUNCHES = 64 };
enum { CHASE_STEPS = 4096, LAUNCH_BYTES = 16, PINNED_MAX = 64 << 20, SMALLEST = 1 << 16 };
#define LOAD_MAX 20e-3 /* s */

enum { BATCH = 256 }; /* operations put into a stream before waiting for it */

struct device_bench {
    const struct device_opts *o;
    size_t bytes;
    gpu_stream stream[2]; /* [0] measured work, [1] work beside it */
    struct gpu_clock *clock;
    struct gpu_buffer from, to, word, pinned, host[2];
    struct gemm_job *job;    /* product being measured */
    struct gpu_graph *graph; /* launches being measured */
    const int *arrays;       /* pass being measured: arrays read and written, bytes of each */
    size_t array;
    int turn;      /* passes put so far */
    size_t chased; /* steps along the chain */
    double busy;   /* s that a load beside a copy lasts */
    double *sec;
    int samples;
};

/* Put one operation into a stream. */
typedef int (*put_operation)(struct device_bench *b, gpu_stream s, struct err *err);

/* --- operations, each put into the stream once --- */

static int put_copy(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_memcpy(b->to.at, b->from.at, b->bytes, s, err);
}

static int put_kernel_copy(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_copy(b->to.at, b->from.at, b->bytes, s, err);
}

static int put_read(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_read(b->from.at, b->bytes, (uint64_t *)(void *)b->word.at, s, err);
}

static int put_fill(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_fill(b->to.at, b->bytes, verify_key(0, 0, 1), s, err);
}

/* Runs after put_fill() and must find no difference; device_measure() checks that. */
static int put_check(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_find(b->to.at, b->bytes, verify_key(0, 0, 1), (uint64_t *)(void *)b->word.at, s,
                       err);
}

static int put_h2d(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_memcpy(b->to.at, b->host[0].at, b->host[0].bytes, s, err);
}

static int put_d2h(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_memcpy(b->host[1].at, b->from.at, b->host[1].bytes, s, err);
}

/* Keep the GPU busy for as long as the copy takes alone; two loads run beside each copy. */
static int put_load(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_load(fmin(b->busy, LOAD_MAX), gpu_facts()->sms, s, err);
}

static uint64_t chased(const struct device_bench *b)
{
    return kernel_chain_at(b->bytes / 8, b->chased);
}

/* Continue where the last chase ended, because the part already followed fits into the caches. */
static int put_chase(struct device_bench *b, gpu_stream s, struct err *err)
{
    uint64_t from = chased(b);

    b->chased += CHASE_STEPS;
    return kernel_chase(b->from.at, from, CHASE_STEPS, (uint64_t *)(void *)b->word.at, s, err);
}

static int put_launch(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_copy(b->to.at, b->from.at, LAUNCH_BYTES, s, err);
}

static int put_graph(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_graph_launch(b->graph, s, err);
}

/* Continue behind the last pass, because its memory may still be in the caches. */
static int put_pass(struct device_bench *b, gpu_stream s, struct err *err)
{
    size_t most = (size_t)(b->arrays[0] > b->arrays[1] ? b->arrays[0] : b->arrays[1]);
    size_t at = (size_t)b->turn++ % (b->bytes / (most * b->array)) * (most * b->array);

    return kernel_pass(b->to.at + at, b->from.at + at, b->array, b->arrays, s, err);
}

/* --- operations of one stream under the stop rule of measure.h.  Operations below 20 us are
 * repeated within a sample, because an event costs about a microsecond of the stream's time --- */

enum { FIRST = 16, SAMPLES_MAX = 4096, INNER_MAX = 256, WARMUP = 8 };
static const double short_time = 20e-6, sample_time = 50e-6;

static int check_signal(struct err *err)
{
    return measure_stop ? err_code(err, EXIT_CUT, "stopped by a signal") : 0;
}

/* n samples of `inner` operations each, appended to b->sec. */
static int batch(struct device_bench *b, put_operation put, put_operation beside, int inner, int n,
                 struct err *err)
{
    int rc = gpu_clock_record(b->clock, 0, b->stream[0], err);

    b->sec = mem_realloc(b->sec, (size_t)(b->samples + n), sizeof(*b->sec));
    for (int i = 0; i < n && rc == 0; i++) {
        /* Twice as many beside, so that the last measured operation is also accompanied. */
        for (int k = 0; k < 2 * inner && beside && rc == 0; k++)
            rc = beside(b, b->stream[1], err);
        for (int k = 0; k < inner && rc == 0; k++)
            rc = put(b, b->stream[0], err);
        if (rc == 0)
            rc = gpu_clock_record(b->clock, i + 1, b->stream[0], err);
    }
    if (rc < 0 || gpu_stream_wait(b->stream[0], err) < 0 ||
        (beside && gpu_stream_wait(b->stream[1], err) < 0) ||
        gpu_clock_read(b->clock, n, b->sec + b->samples, err) < 0)
        return -1;
    watch_step();
    for (int i = 0; i < n; i++)
        b->sec[b->samples + i] = fmax(b->sec[b->samples + i] / inner, 1e-9);
    b->samples += n;
    return 0;
}

static double total(const struct device_bench *b, int inner)
{
    double sum = 0;

    for (int i = 0; i < b->samples; i++)
        sum += b->sec[i];
    return sum * inner;
}

static bool enough(struct device_bench *b, int inner, struct summary *s)
{
    const struct device_opts *o = b->o;
    double spent = total(b, inner); /* sum before the samples are sorted */

    stats_summary(s, b->sec, b->samples);
    return (b->samples >= FIRST && (s->hi - s->lo) / 2 <= o->half_width * s->median) ||
           spent >= o->time_cap || b->samples >= SAMPLES_MAX;
}

/* Uncounted runs: code is loaded, clocks rise.  *per: seconds of one operation. */
static int warm_up(struct device_bench *b, put_operation put, put_operation beside, double *per,
                   struct err *err)
{
    struct summary s;

    b->samples = 0;
    if (batch(b, put, beside, 1, 1, err) < 0)
        return -1;
    int more = (int)fmin(WARMUP, b->o->time_cap / 4 / b->sec[0]);
    b->samples = more > 0 ? 0 : 1;
    if (more > 0 && batch(b, put, beside, 1, more, err) < 0)
        return -1;
    stats_summary(&s, b->sec, b->samples);
    *per = s.median;
    b->samples = 0;
    return 0;
}

/* Apply the stop rule.  out: seconds of one operation while as many of `beside` (NULL: none) run in
 * the other stream. */
static int sample(struct device_bench *b, put_operation put, put_operation beside,
                  struct summary *out, struct err *err)
{
    double per;

    if (warm_up(b, put, beside, &per, err) < 0)
        return -1;
    int inner = per < short_time ? (int)fmin(ceil(sample_time / per), INNER_MAX) : 1;
    for (int n = FIRST;; n = n < BATCH ? 2 * n : n) {
        double left = b->o->time_cap - total(b, inner);
        int fits = (int)fmin(n, fmax(2, left / (per * inner)));
        if (batch(b, put, beside, inner, fits, err) < 0)
            return -1;
        if (enough(b, inner, out))
            return 0;
    }
}

/* Set median and interval as amount per second, or seconds per amount, by the unit of the row. */
static void set_value(struct device_row *r, const struct summary *sec, double amount)
{
    bool seconds = !strcmp(device_unit[r->kind], "s");

    r->value = seconds ? sec->median / amount : amount / sec->median;
    r->lo = seconds ? sec->lo / amount : amount / sec->hi;
    r->hi = seconds ? sec->hi / amount : amount / sec->lo;
    r->samples = sec->n;
}

static void set_note(struct device_row *r, const char *why)
{
    snprintf(r->note, sizeof(r->note), "%.119s", why);
}

/* --- table of measurements --- */

enum device_limit { LIMIT_NONE, LIMIT_HBM, LIMIT_PCIE };

/* The order matters: the chain overwrites what the copies read. */
static const struct device_figure {
    enum device_kind kind;
    put_operation put, beside;
    bool kernel;
    double times; /* buffers that one operation moves, or divisor of its seconds */
    enum device_limit limit;
} figures[] = {
    {DEVICE_HBM_COPY, put_copy, NULL, false, 2, LIMIT_HBM},
    {DEVICE_HBM_KERNEL, put_kernel_copy, NULL, true, 2, LIMIT_HBM},
    {DEVICE_HBM_READ, put_read, NULL, true, 1, LIMIT_HBM},
    {DEVICE_H2D, put_h2d, NULL, false, 1, LIMIT_PCIE},
    {DEVICE_D2H, put_d2h, NULL, false, 1, LIMIT_PCIE},
    {DEVICE_H2D_BOTH, put_h2d, put_d2h, false, 1, LIMIT_PCIE},
    {DEVICE_D2H_BOTH, put_d2h, put_h2d, false, 1, LIMIT_PCIE},
    {DEVICE_H2D_BUSY, put_h2d, put_load, true, 1, LIMIT_PCIE},
    {DEVICE_FILL, put_fill, NULL, true, 1, LIMIT_HBM},
    {DEVICE_CHECK, put_check, NULL, true, 1, LIMIT_HBM},
    {DEVICE_LOAD, put_chase, NULL, true, CHASE_STEPS, LIMIT_NONE},
    {DEVICE_LAUNCH, put_launch, NULL, true, 1, LIMIT_NONE},
    {DEVICE_LAUNCH_GRAPH, put_graph, NULL, true, GRAPH_LAUNCHES, LIMIT_NONE},
};
enum { FIGURES = sizeof(figures) / sizeof(*figures) };

int device_rows(const struct device_opts *o)
{
    return FIGURES + o->kernels + o->shapes;
}

double device_seconds(const struct device_opts *o)
{
    return 2 + device_rows(o) * o->time_cap * 1.5;
}

static void start_row(struct device_row *r, enum device_kind kind)
{
    const struct gpu_facts *f = gpu_facts();

    *r = (struct device_row){.kind = kind, .value = NAN, .lo = NAN, .hi = NAN};
    snprintf(r->gpu, sizeof(r->gpu), "%.47s", f->name);
    snprintf(r->busid, sizeof(r->busid), "%s", f->busid);
}

/* If a link is slower than the measured value, the data took another path: Grace hosts reach their
 * GPU over NVLink-C2C.  Then no limit is set. */
static void set_limit(struct device_row *r, const struct device_figure *f, double pcie,
                      const char *note)
{
    if (f->limit == LIMIT_HBM)
        r->limit = gpu_facts()->hbm_Bps;
    if (f->limit != LIMIT_PCIE)
        return;
    if (r->value > pcie * 1.05 && pcie > 0)
        set_note(r, "faster than its PCIe link: the host is reached another way");
    else
        r->limit = pcie;
    if (r->kind == DEVICE_H2D && r->limit > 0)
        set_note(r, note);
}

/* Read the word that the kernel wrote. */
static int read_word(struct device_bench *b, uint64_t *word, struct err *err)
{
    if (gpu_memcpy(b->pinned.at, b->word.at, sizeof(*word), b->stream[0], err) < 0 ||
        gpu_stream_wait(b->stream[0], err) < 0)
        return -1;
    memcpy(word, b->pinned.at, sizeof(*word));
    return 0;
}

static int nothing_wrong(struct device_bench *b, struct err *err)
{
    uint64_t wrong;

    if (read_word(b, &wrong, err) < 0)
        return -1;
    if (wrong == UINT64_MAX)
        return 0;
    return err_set(err, "GPU %s: its memory is wrong: byte %llu of %zu is not the one written",
                   gpu_facts()->busid, (unsigned long long)wrong, b->bytes);
}

static int arrived(struct device_bench *b, struct err *err)
{
    uint64_t at;

    if (read_word(b, &at, err) < 0)
        return -1;
    if (at == chased(b))
        return 0;
    return err_set(
        err, "GPU %s: its memory is wrong: %zu steps along a chain lead to %llu, not %llu",
        gpu_facts()->busid, b->chased, (unsigned long long)at, (unsigned long long)chased(b));
}

/* Make the chain, then evict it from the caches. */
static int make_chain(struct device_bench *b, struct err *err)
{
    if (kernel_chain(b->from.at, b->bytes / 8, b->stream[0], err) < 0 ||
        gpu_memset(b->to.at, 0, b->bytes, b->stream[0], err) < 0)
        return -1;
    return gpu_stream_wait(b->stream[0], err);
}

static int make_graph(struct device_bench *b, struct err *err)
{
    int rc = gpu_graph_begin(b->stream[0], err);

    for (int i = 0; i < GRAPH_LAUNCHES && rc == 0; i++)
        rc = put_launch(b, b->stream[0], err);
    return rc == 0 ? gpu_graph_end(&b->graph, b->stream[0], err) : -1;
}

static int measure_figure(struct device_bench *b, struct device_row *r,
                          const struct device_figure *f, struct err *err)
{
    bool host = f->limit == LIMIT_PCIE;
    double bytes = (double)(host ? b->host[0].bytes : b->bytes), pcie;
    struct summary sec;
    char note[120];
    const char *why;

    if (f->kernel && !kernels_there(&why)) {
        set_note(r, why);
        return 0;
    }
    if ((f->kind == DEVICE_LOAD && make_chain(b, err) < 0) ||
        (f->kind == DEVICE_LAUNCH_GRAPH && make_graph(b, err) < 0))
        return -1;
    if (sample(b, f->put, f->beside, &sec, err) < 0 ||
        (f->kind == DEVICE_CHECK && nothing_wrong(b, err) < 0) ||
        (f->kind == DEVICE_LOAD && arrived(b, err) < 0))
        return -1;
    if (f->kind == DEVICE_H2D)
        b->busy = sec.median;
    set_value(r, &sec, strcmp(device_unit[f->kind], "s") ? bytes * f->times : f->times);
    pcie = device_pcie("", gpu_facts()->busid, note);
    set_limit(r, f, pcie, note);
    return 0;
}

/* --- products --- */

static int put_product(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gemm_enqueue(b->job, s, err);
}

/* 2 m n k */
static double gemm_flops(const struct gemm_shape *s)
{
    return 2.0 * s->m * s->n * s->k;
}

/* Matrices of weights that no cache holds together; one product's own may stay there, as a layer's
 * do not. */
static int copies_of(const struct device_row *r)
{
    enum { BYTES = 512 << 20, MOST = 64 };
    double one = 2.0 * r->shape.n * r->shape.k;

    return r->kind == DEVICE_GROUPED ? (int)fmax(1, fmin(MOST, BYTES / one)) : 1;
}

static int measure_product(struct device_bench *b, struct gemm *g, struct device_row *r,
                           struct err *err)
{
    struct err why = {0, ""};
    struct summary sec;

    /* No algorithm or no memory: the row gets a note and the other shapes continue. */
    if (gemm_prepare(&b->job, g, &r->shape, copies_of(r), b->stream[0], &why) < 0) {
        set_note(r, why.text);
        return 0;
    }
    watch_enter("%s product %dx%dx%d", gemm_dtype_name[r->shape.dtype], r->shape.m, r->shape.n,
                r->shape.k);
    int rc = sample(b, put_product, NULL, &sec, err);
    watch_leave();
    if (rc == 0)
        set_value(r, &sec, gemm_flops(&r->shape));
    gemm_finish(b->job);
    b->job = NULL;
    return rc;
}

static bool is_product(const struct device_row *r)
{
    return r->kind == DEVICE_GEMM || r->kind == DEVICE_GROUPED;
}

/* A wrong product ends the measurement; a missing dtype becomes a note in its rows. */
static int verify_products(struct device_bench *b, struct gemm *g, char why[GEMM_DTYPES][120],
                           struct err *err)
{
    for (int d = 0; d < GEMM_DTYPES; d++) {
        struct err said = {0, ""};
        why[d][0] = '\0';
        if (gemm_verify(g, (enum gemm_dtype)d, b->stream[0], &said) == 0)
            continue;
        if (said.code != EXIT_CONFIG)
            return err_code(err, said.code, "%s", said.text);
        snprintf(why[d], 120, "%.119s", said.text);
    }
    return 0;
}

/* Measure the products among these rows. */
static int measure_products(struct device_bench *b, struct device_row *rows, int n, struct err *err)
{
    char missing[GEMM_DTYPES][120];
    struct err why = {0, ""};
    struct gemm *g = NULL;
    int rc = 0;

    if (gemm_open(&g, &why) < 0) {
        for (int i = 0; i < n; i++)
            if (is_product(&rows[i]))
                set_note(&rows[i], why.text);
        return 0;
    }
    rc = verify_products(b, g, missing, err);
    for (int i = 0; i < n && rc == 0; i++) {
        if (!is_product(&rows[i]))
            continue;
        if (missing[rows[i].shape.dtype][0])
            set_note(&rows[i], missing[rows[i].shape.dtype]);
        else
            rc = measure_product(b, g, &rows[i], err);
        if (rc == 0)
            rc = check_signal(err);
    }
    gemm_close(g);
    return rc;
}

/* --- passes between products: arrays of 2 bytes an element that each reads and writes --- */

static const struct {
    enum device_kind kind;
    int arrays[2];
} passes[] = {
    {DEVICE_NORM, {3, 2}}, /* the residual: two read, one written; its norm: one and one */
    {DEVICE_GATE, {2, 1}}, /* both halves, their product */
    {DEVICE_ROTARY, {1, 1}},
    {DEVICE_CAST, {2, 1}}, /* once for the maximum, once to convert; by rows and by columns */
    {DEVICE_LOSS, {4, 3}}, /* logits in fp32 for the maximum and the sum; written in both */
    {DEVICE_ADAM, {8, 7}}, /* fp32: weight, moments, gradient; the weight in bf16 too */
};

/* Passes over more rows than the buffers hold move as many as these do: their rate no longer
 * depends on the number. */
static int measure_pass(struct device_bench *b, struct device_row *r, const int arrays[2],
                        struct err *err)
{
    double want = 2.0 * r->shape.m * r->shape.n;
    size_t most = (size_t)(arrays[0] > arrays[1] ? arrays[0] : arrays[1]);
    struct summary sec;
    const char *why;

    if (!kernels_there(&why)) {
        set_note(r, why);
        return 0;
    }
    b->arrays = arrays;
    b->array = (size_t)fmax(1, fmin(want, (double)(b->bytes / most)) / 16) * 16;
    if (sample(b, put_pass, NULL, &sec, err) < 0)
        return -1;
    set_value(r, &sec, (double)b->array * (arrays[0] + arrays[1]));
    return 0;
}

static int measure_passes(struct device_bench *b, struct device_row *rows, int n, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        for (size_t k = 0; k < sizeof(passes) / sizeof(*passes) && rc == 0; k++)
            if (rows[i].kind == passes[k].kind) {
                watch_enter("%s of %dx%d", device_kind_name[rows[i].kind], rows[i].shape.m,
                            rows[i].shape.n);
                rc = measure_pass(b, &rows[i], passes[k].arrays, err);
                watch_leave();
                if (rc == 0)
                    rc = check_signal(err);
            }
    return rc;
}

/* --- the attention core, by PyTorch in a process of its own --- */

static bool is_attention(const struct device_row *r)
{
    return r->kind == DEVICE_ATTENTION || r->kind == DEVICE_ATTENTION_BACK;
}

/* Take one line of attention.py: kind, shape, FLOP/s with its interval, samples, kernel. */
static void take_attention(struct device_row *rows, int n, const char *line)
{
    struct device_row got = {.samples = 0};
    char kind[24], note[64] = "";

    if (sscanf(line, "%23s %d %d %d %lf %lf %lf %d %63[^\n]", kind, &got.shape.m, &got.shape.n,
               &got.shape.k, &got.value, &got.lo, &got.hi, &got.samples, note) < 8 ||
        !(got.lo > 0 && got.lo <= got.value && got.value <= got.hi && got.samples > 0))
        return;
    for (int i = 0; i < n; i++)
        if (is_attention(&rows[i]) && !strcmp(device_kind_name[rows[i].kind], kind) &&
            !memcmp(&rows[i].shape, &got.shape, sizeof(got.shape))) {
            rows[i].value = got.value;
            rows[i].lo = got.lo;
            rows[i].hi = got.hi;
            rows[i].samples = got.samples;
            set_note(&rows[i], note);
        }
}

static char *attention_shapes(const struct device_row *rows, int n)
{
    char *text = mem_strdup("");

    for (int i = 0; i < n; i++)
        if (rows[i].kind == DEVICE_ATTENTION) {
            char *more = mem_printf("%s%s%dx%dx%d", text, *text ? "," : "", rows[i].shape.m,
                                    rows[i].shape.n, rows[i].shape.k);
            free(text);
            text = more;
        }
    return text;
}

/* Rows that are not measured get the reason as their note. */
static void measure_attention(struct device_row *rows, int n)
{
    enum { TEXT_MOST = 1 << 20, SECONDS = 180 };
    char *script = file_data("jobs/python/railgauge/attention.py"), *text = NULL, *save = NULL;
    char *shapes = attention_shapes(rows, n), device[16];
    struct err why = {0, "attention.py is not among the data files"};
    size_t len;

    snprintf(device, sizeof(device), "%d", gpu_facts()->device);
    if (*shapes && script &&
        process_output(&text, &len, (const char *[]){"python3", script, device, shapes, NULL},
                       TEXT_MOST, SECONDS, &why) == 0)
        snprintf(why.text, sizeof(why.text), "PyTorch has no kernel for this shape");
    for (int i = 0; i < n; i++)
        if (is_attention(&rows[i]))
            set_note(&rows[i], why.text);
    for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
        take_attention(rows, n, l);
    free(text);
    free(shapes);
    free(script);
}

/* --- complete measurement --- */

static int open_bench(struct device_bench *b, const struct device_opts *o, struct err *err)
{
    size_t bytes = o->bytes ? o->bytes : (size_t)256 << 20, most = gpu_facts()->memory / 16;

    *b = (struct device_bench){.o = o};
    if (!o->bytes && bytes > most)
        bytes = most;
    b->bytes = (bytes < SMALLEST ? SMALLEST : bytes) / 4096 * 4096;
    size_t host = b->bytes < PINNED_MAX ? b->bytes : PINNED_MAX;
    if (gpu_stream_open(&b->stream[0], err) < 0 || gpu_stream_open(&b->stream[1], err) < 0 ||
        gpu_clock_open(&b->clock, BATCH + 1, err) < 0 ||
        gpu_alloc(&b->from, GPU_PLAIN, b->bytes, err) < 0 ||
        gpu_alloc(&b->to, GPU_PLAIN, b->bytes, err) < 0 ||
        gpu_alloc(&b->word, GPU_PLAIN, 4096, err) < 0 ||
        gpu_alloc(&b->pinned, GPU_PINNED, 4096, err) < 0 ||
        gpu_alloc(&b->host[0], GPU_PINNED, host, err) < 0 ||
        gpu_alloc(&b->host[1], GPU_PINNED, host, err) < 0)
        return -1;
    memset(b->host[0].at, 0x5a,
           host); /* touch the pages; not zero, so that no page of zeros can replace them */
    memset(b->host[1].at, 0, host);
    if (gpu_memset(b->from.at, 0xa5, b->bytes, b->stream[0], err) < 0)
        return -1;
    return gpu_stream_wait(b->stream[0], err);
}

static void close_bench(struct device_bench *b)
{
    gpu_free(&b->from);
    gpu_free(&b->to);
    gpu_free(&b->word);
    gpu_free(&b->pinned);
    gpu_free(&b->host[0]);
    gpu_free(&b->host[1]);
    gpu_clock_close(b->clock);
    gpu_graph_free(b->graph);
    for (int i = 0; i < 2; i++)
        if (b->stream[i])
            gpu_stream_close(b->stream[i]);
    free(b->sec);
}

void device_begin(struct device_row *rows, const struct device_opts *o)
{
    struct device_row *kernel = rows + FIGURES, *product = kernel + o->kernels;

    for (int i = 0; i < FIGURES; i++)
        start_row(&rows[i], figures[i].kind);
    for (int i = 0; i < o->kernels; i++) {
        start_row(&kernel[i], o->kernel[i].kind);
        kernel[i].shape = o->kernel[i].shape;
    }
    for (int i = 0; i < o->shapes; i++) {
        start_row(&product[i], DEVICE_GEMM);
        product[i].shape = o->shape[i];
    }
}

int device_measure(struct device_row *rows, const struct device_opts *o, unsigned parts,
                   struct err *err)
{
    struct device_bench b;
    int rc = open_bench(&b, o, err);

    for (int i = 0; i < FIGURES && rc == 0; i++) {
        unsigned part = figures[i].limit == LIMIT_PCIE ? DEVICE_HOST_LINK : DEVICE_INSIDE;
        if (!(parts & part))
            continue;
        watch_enter("%s of one GPU", device_kind_name[figures[i].kind]);
        rc = measure_figure(&b, &rows[i], &figures[i], err);
        watch_leave();
        if (rc == 0)
            rc = check_signal(err);
    }
    int shaped = o->kernels + o->shapes;
    if (rc == 0 && shaped && parts & DEVICE_INSIDE) {
        rc = measure_passes(&b, rows + FIGURES, shaped, err);
        if (rc == 0)
            rc = measure_products(&b, rows + FIGURES, shaped, err);
    }
    close_bench(&b);
    if (rc == 0 && o->kernels && parts & DEVICE_INSIDE)
        measure_attention(rows + FIGURES, shaped);
    return rc;
}
