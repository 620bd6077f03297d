/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "probe/gpu/device_own.h"
#include "probe/verify.h"
#include "probe/watch/watch.h"

enum { CHASE_STEPS = 4096, LAUNCH_BYTES = 16, PINNED_MAX = 64 << 20, SMALLEST = 1 << 16 };
#define LOAD_MAX 20e-3 /* s */

void device_defaults(struct device_opts *o)
{
    *o = (struct device_opts){.time_cap = 0.1, .half_width = 0.05};
}

/* --- what goes into the stream; each once --- */

static int put_copy(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_copy(b->to.at, b->from.at, b->bytes, s, err);
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

/* Runs after put_fill(): what it finds must be nothing (device_measure() looks). */
static int put_check(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_find(b->to.at, b->bytes, verify_key(0, 0, 1), (uint64_t *)(void *)b->word.at, s,
                       err);
}

static int put_h2d(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_copy(b->to.at, b->host[0].at, b->host[0].bytes, s, err);
}

static int put_d2h(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gpu_copy(b->host[1].at, b->from.at, b->host[1].bytes, s, err);
}

/* For as long as the copy beside it takes when nothing else runs; two of them are beside each. */
static int put_load(struct device_bench *b, gpu_stream s, struct err *err)
{
    return kernel_load(fmin(b->busy, LOAD_MAX), gpu_facts()->sms, s, err);
}

static uint64_t chased(const struct device_bench *b)
{
    return kernel_chain_at(b->bytes / 8, b->chased);
}

/* From where the last one ended: what one follows fits into the caches and would be found there. */
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

enum limit { LIMIT_NONE, LIMIT_HBM, LIMIT_PCIE };

/* In this order: the chain overwrites what the copies read. */
static const struct figure {
    enum device_kind kind;
    device_put put, beside;
    bool kernel;
    double times; /* buffers that one moves, or what its seconds are divided by */
    enum limit limit;
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
};
enum { FIGURES = sizeof(figures) / sizeof(*figures) };

int device_rows(const struct device_opts *o)
{
    return FIGURES + o->shapes;
}

double device_seconds(const struct device_opts *o)
{
    return 2 + device_rows(o) * o->time_cap * 1.5;
}

void device_value(struct device_row *r, const struct summary *sec, double amount)
{
    bool seconds = !strcmp(device_unit[r->kind], "s");

    r->value = seconds ? sec->median / amount : amount / sec->median;
    r->lo = seconds ? sec->lo / amount : amount / sec->hi;
    r->hi = seconds ? sec->hi / amount : amount / sec->lo;
    r->samples = sec->n;
}

static void start_row(struct device_row *r, enum device_kind kind)
{
    const struct gpu_facts *f = gpu_facts();

    *r = (struct device_row){.kind = kind, .value = NAN, .lo = NAN, .hi = NAN};
    snprintf(r->gpu, sizeof(r->gpu), "%.47s", f->name);
    snprintf(r->busid, sizeof(r->busid), "%s", f->busid);
}

void device_none(struct device_row *r, const char *why)
{
    snprintf(r->note, sizeof(r->note), "%.119s", why);
}

/* What a link cannot carry did not go over it: Grace hosts reach their GPU over NVLink-C2C. */
static void set_limit(struct device_row *r, const struct figure *f, double pcie, const char *note)
{
    if (f->limit == LIMIT_HBM)
        r->limit = gpu_facts()->hbm_Bps;
    if (f->limit != LIMIT_PCIE)
        return;
    if (r->value > pcie * 1.05 && pcie > 0)
        device_none(r, "faster than its PCIe link: the host is reached another way");
    else
        r->limit = pcie;
    if (r->kind == DEVICE_H2D && r->limit > 0)
        device_none(r, note);
}

/* What the kernel left in the word. */
static int read_word(struct device_bench *b, uint64_t *word, struct err *err)
{
    if (gpu_copy(b->pinned.at, b->word.at, sizeof(*word), b->stream[0], err) < 0 ||
        gpu_wait(b->stream[0], err) < 0)
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

/* The chain, and then something else into the caches. */
static int make_chain(struct device_bench *b, struct err *err)
{
    if (kernel_chain(b->from.at, b->bytes / 8, b->stream[0], err) < 0 ||
        gpu_set(b->to.at, 0, b->bytes, b->stream[0], err) < 0)
        return -1;
    return gpu_wait(b->stream[0], err);
}

static int measure_figure(struct device_bench *b, struct device_row *r, const struct figure *f,
                          struct err *err)
{
    bool host = f->limit == LIMIT_PCIE;
    double bytes = (double)(host ? b->host[0].bytes : b->bytes), pcie;
    struct summary sec;
    char note[120];
    const char *why;

    if (f->kernel && !kernels_there(&why)) {
        device_none(r, why);
        return 0;
    }
    if (f->kind == DEVICE_LOAD && make_chain(b, err) < 0)
        return -1;
    if (device_sample(b, f->put, f->beside, &sec, err) < 0 ||
        (f->kind == DEVICE_CHECK && nothing_wrong(b, err) < 0) ||
        (f->kind == DEVICE_LOAD && arrived(b, err) < 0))
        return -1;
    if (f->kind == DEVICE_H2D)
        b->busy = sec.median;
    device_value(r, &sec, strcmp(device_unit[f->kind], "s") ? bytes * f->times : f->times);
    pcie = device_pcie("", gpu_facts()->busid, note);
    set_limit(r, f, pcie, note);
    return 0;
}

static int open_bench(struct device_bench *b, const struct device_opts *o, struct err *err)
{
    size_t bytes = o->bytes ? o->bytes : (size_t)256 << 20, most = gpu_facts()->memory / 16;

    *b = (struct device_bench){.o = o};
    if (!o->bytes && bytes > most)
        bytes = most;
    b->bytes = (bytes < SMALLEST ? SMALLEST : bytes) / 4096 * 4096;
    size_t host = b->bytes < PINNED_MAX ? b->bytes : PINNED_MAX;
    if (gpu_stream_open(&b->stream[0], err) < 0 || gpu_stream_open(&b->stream[1], err) < 0 ||
        gpu_clock_open(&b->clock, DEVICE_BATCH + 1, err) < 0 ||
        gpu_alloc(&b->from, GPU_PLAIN, b->bytes, err) < 0 ||
        gpu_alloc(&b->to, GPU_PLAIN, b->bytes, err) < 0 ||
        gpu_alloc(&b->word, GPU_PLAIN, 4096, err) < 0 ||
        gpu_alloc(&b->pinned, GPU_PINNED, 4096, err) < 0 ||
        gpu_alloc(&b->host[0], GPU_PINNED, host, err) < 0 ||
        gpu_alloc(&b->host[1], GPU_PINNED, host, err) < 0)
        return -1;
    memset(b->host[0].at, 0x5a,
           host); /* touched, and nothing that a page of zeros could stand for */
    memset(b->host[1].at, 0, host);
    if (gpu_set(b->from.at, 0xa5, b->bytes, b->stream[0], err) < 0)
        return -1;
    return gpu_wait(b->stream[0], err);
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
    for (int i = 0; i < 2; i++)
        if (b->stream[i])
            gpu_stream_close(b->stream[i]);
    free(b->sec);
}

void device_begin(struct device_row *rows, const struct device_opts *o)
{
    for (int i = 0; i < device_rows(o); i++) {
        start_row(&rows[i], i < FIGURES ? figures[i].kind : DEVICE_GEMM);
        if (i >= FIGURES)
            rows[i].shape = o->shape[i - FIGURES];
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
            rc = device_cut(err);
    }
    if (rc == 0 && o->shapes && parts & DEVICE_INSIDE)
        rc = device_products(&b, rows + FIGURES, err);
    close_bench(&b);
    return rc;
}
