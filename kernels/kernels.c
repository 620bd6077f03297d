/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kernels/cuda_api.h"
#include "kernels/kernels_impl.h"
#include "kernels/pattern.h"

/* Defined by image.S, if linked: a fat binary with code for each architecture of the build, and
 * PTX for other GPUs and for drivers older than the compiler. */
extern const unsigned char kernels_image[] __attribute__((weak));
extern const char kernels_ptx[] __attribute__((weak));

/* Kernels of kernels.cu, where they are called rg_NAME. */
#define KERNEL_LIST(K)                                                                             \
    K(PRESET, preset)                                                                              \
    K(FILL, fill)                                                                                  \
    K(FIND, find)                                                                                  \
    K(FILL_ONEHOT, fill_onehot)                                                                    \
    K(FIND_ONEHOT, find_onehot)                                                                    \
    K(FIND_AVERAGE, find_average)                                                                  \
    K(COPY, copy)                                                                                  \
    K(COPY_BYTES, copy_bytes)                                                                      \
    K(READ, read)                                                                                  \
    K(PASS, pass)                                                                                  \
    K(CHAIN, chain)                                                                                \
    K(CHASE, chase)                                                                                \
    K(LOAD, load)
#define KERNEL_ID(ID, name) ID,
#define KERNEL_NAME(ID, name) "rg_" #name,
enum kernel { KERNEL_LIST(KERNEL_ID) KERNELS };
static const char *const names[KERNELS] = {KERNEL_LIST(KERNEL_NAME)};

static struct {
    cuda_module module; /* NULL: not loaded, for the reason `why` */
    cuda_function function[KERNELS];
    char why[720];
} own = {.why = "no GPU is open"};

/* Image of the kernels, and the driver's response to it. */
struct image {
    const void *at;
    int rc;
    char log[160]; /* first line of its compiler's messages */
};

static int load(struct image *image)
{
    char log[1024] = "";
    int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
    cuda_module module;

    image->rc = cuda.ModuleLoadDataEx(&module, image->at, 2, options, values);
    for (int i = 0; image->rc == CUDA_GOOD && i < KERNELS; i++) {
        image->rc = cuda.ModuleGetFunction(&own.function[i], module, names[i]);
        if (image->rc)
            cuda.ModuleUnload(module);
    }
    if (image->rc == CUDA_GOOD)
        own.module = module;
    log[strcspn(log, "\n")] = '\0';
    snprintf(image->log, sizeof(image->log), "%s%.150s", *log ? ": " : "", log);
    return image->rc;
}

/* Compose a message that points to the build or the driver, not to the GPU. */
static void cannot_load(const struct image *code, const struct image *ptx)
{
    struct err err;
    char more[300] = "";

    if (ptx) {
        cuda_error(&err, ptx->rc, "; nor from PTX");
        snprintf(more, sizeof(more), "%.140s%.150s", err.text, ptx->log);
    }
    cuda_error(&err, code->rc,
               "the driver (CUDA %d.%d) does not load the GPU kernels of this build for sm_%d",
               cuda.version / 1000, cuda.version % 1000 / 10, gpu_now.facts.sm);
    snprintf(own.why, sizeof(own.why), "%.255s%.150s%.290s", err.text, code->log, more);
}

static void load_file(const char *file)
{
    struct image image = {0};
    struct err err = {0, ""};
    char *text = NULL, *code = file_for_root(file, &err);

    int rc = code ? file_read(&text, NULL, code, 64u << 20, &err) : -1;
    free(code);
    if (rc < 0) {
        snprintf(own.why, sizeof(own.why), "%.250s", err.text);
        return;
    }
    image.at = text; /* NUL-terminated, as PTX requires */
    if (load(&image))
        cannot_load(&image, NULL);
    free(text);
}

/* Load the code, or after any error the PTX, whose version is that of the oldest driver
 * (Makefile).  A driver of CUDA 12 may refuse output of nvcc 13 (another ELF ABI), and the code
 * may lack this GPU; drivers differ in the error they return. */
static void load_own(void)
{
    struct image code = {.at = kernels_image}, ptx = {.at = kernels_ptx};

    if (load(&code) == CUDA_GOOD)
        return;
    if (load(&ptx) == CUDA_GOOD)
        json_provenance_add("gpu_kernels", "PTX, compiled by the driver");
    else
        cannot_load(&code, &ptx);
}

void kernels_open(void)
{
    const char *file = secure_getenv("RAILGAUGE_KERNELS");

    if (file && *file)
        load_file(file);
    else if (kernels_image)
        load_own();
    else
        snprintf(own.why, sizeof(own.why), "this program was built without nvcc");
}

void kernels_close(void)
{
    if (own.module)
        cuda.ModuleUnload(own.module);
    own.module = NULL;
    snprintf(own.why, sizeof(own.why), "no GPU is open");
}

static uint64_t number(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, p, bytes);
    return v;
}

/* Format of a fat binary: a header of 16 bytes with the size of the rest at 8, then one record per
 * image: kind (2 bytes: 1 PTX, 2 SASS), size of its header at 4, size of its data at 8,
 * architecture at 28.  Source: output of nvcc 13.0. */
void kernels_built(char *text, size_t size)
{
    const unsigned char *end = NULL;
    const char *ptx = kernels_image ? strstr(kernels_ptx, "\n.version ") : NULL;
    size_t n = 0;

    snprintf(text, size, "none (built without nvcc)");
    if (kernels_image)
        end = kernels_image + 16 + number(kernels_image + 8, 8);
    for (const unsigned char *p = kernels_image + 16; end && p < end && n < size;
         p += number(p + 4, 4) + number(p + 8, 8))
        if (number(p, 2) == 2)
            n += (size_t)snprintf(text + n, size - n, "%ssm_%d", n ? ", " : "",
                                  (int)number(p + 28, 4));
    if (ptx && n < size)
        snprintf(text + n, size - n, "; PTX %.*s", (int)strcspn(ptx + 10, "\n"), ptx + 10);
}

bool kernels_there(const char **why)
{
    if (why)
        *why = own.module ? NULL : own.why;
    return own.module;
}

static int launch(enum kernel kernel, unsigned blocks, unsigned threads, void **arguments,
                  gpu_stream s, struct err *err)
{
    int rc;

    if (!own.module)
        return err_config(err, "no GPU kernels: %s", own.why);
    rc =
        cuda.LaunchKernel(own.function[kernel], blocks, 1, 1, threads, 1, 1, 0, s, arguments, NULL);
    return rc ? cuda_error(err, rc, "GPU kernel %s", names[kernel]) : 0;
}

/* Launch one thread per unit of work, up to what the GPU can hold: 2048 per multiprocessor, eight
 * blocks of 256.  Zero units: no launch. */
static int spread(enum kernel kernel, size_t units, void **arguments, gpu_stream s, struct err *err)
{
    size_t blocks = units / 256 + (units % 256 > 0), most = 8 * (size_t)gpu_now.facts.sms;

    if (units == 0)
        return 0;
    return launch(kernel, (unsigned)(blocks < most ? blocks : most), 256, arguments, s, err);
}

static size_t cells(const void *at, size_t bytes)
{
    return (gpu_ptr(at) % 16 + bytes + 15) / 16;
}

static int fill(void *buf, size_t bytes, struct pattern_args p, gpu_stream s, struct err *err)
{
    return spread(FILL, bytes ? cells(buf, bytes) : 0, (void *[]){&buf, &bytes, &p}, s, err);
}

int kernel_fill(void *buf, size_t bytes, uint64_t k, gpu_stream s, struct err *err)
{
    return fill(buf, bytes, (struct pattern_args){.k = k}, s, err);
}

int kernel_fill_term(void *buf, size_t bytes, uint64_t k, uint64_t k_before, bool first,
                     gpu_stream s, struct err *err)
{
    struct pattern_args p = {.k = k, .k_before = k_before, .term = !first};

    return fill(buf, bytes, p, s, err);
}

/* Preset by a kernel, because the driver fills device memory only. */
static int preset(uint64_t *wrong, gpu_stream s, struct err *err)
{
    return launch(PRESET, 1, 32, (void *[]){&wrong}, s, err);
}

int kernel_find(const void *buf, size_t bytes, uint64_t k, uint64_t *wrong, gpu_stream s,
                struct err *err)
{
    struct pattern_args p = {.k = k};

    if (preset(wrong, s, err))
        return -1;
    return spread(FIND, bytes ? cells(buf, bytes) : 0, (void *[]){&buf, &bytes, &p, &wrong}, s,
                  err);
}

static int is_aligned(const void *at, size_t to, const char *what, struct err *err)
{
    if (gpu_ptr(at) % to == 0)
        return 0;
    return err_io(err, "%s: address %p is not a multiple of %zu", what, at, to);
}

int kernel_fill_onehot(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k,
                       int redop, gpu_stream s, struct err *err)
{
    struct onehot_args h = {.k = k, .type = type, .redop = redop, .ranks = ranks, .rank = rank};
    size_t bytes = elements * (size_t)onehot_width(type);

    if (is_aligned(buf, (size_t)onehot_width(type), "one-hot fill", err))
        return -1;
    return spread(FILL_ONEHOT, bytes ? cells(buf, bytes) : 0, (void *[]){&buf, &bytes, &h}, s, err);
}

int kernel_find_onehot(const void *buf, size_t first, size_t elements, int type, int ranks,
                       uint64_t k, int redop, uint64_t *wrong, gpu_stream s, struct err *err)
{
    struct onehot_args h = {.k = k, .first = first, .type = type, .redop = redop, .ranks = ranks};
    size_t bytes = elements * (size_t)onehot_width(type);

    if (is_aligned(buf, (size_t)onehot_width(type), "one-hot check", err) || preset(wrong, s, err))
        return -1;
    return spread(redop == NCCL_AVG ? FIND_AVERAGE : FIND_ONEHOT, bytes ? cells(buf, bytes) : 0,
                  (void *[]){&buf, &bytes, &h, &wrong}, s, err);
}

int kernel_copy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err)
{
    void *arguments[] = {&to, &from, &bytes};

    if ((gpu_ptr(to) | gpu_ptr(from)) % 16)
        return spread(COPY_BYTES, bytes, arguments, s, err);
    return spread(COPY, (bytes + 15) / 16, arguments, s, err);
}

int kernel_read(const void *from, size_t bytes, uint64_t *out, gpu_stream s, struct err *err)
{
    if (is_aligned(from, 16, "read", err))
        return -1;
    return spread(READ, (bytes + 15) / 16, (void *[]){&from, &bytes, &out}, s, err);
}

int kernel_pass(void *to, const void *from, size_t bytes, const int arrays[2], gpu_stream s,
                struct err *err)
{
    size_t count = bytes / 16, reads = (size_t)arrays[0], writes = (size_t)arrays[1];

    if (is_aligned(from, 16, "pass", err) || is_aligned(to, 16, "pass", err))
        return -1;
    return spread(PASS, count, (void *[]){&to, &from, &count, &reads, &writes}, s, err);
}

/* Step nearest to the golden section of `words` and coprime to it: one cycle, and each step lands
 * far from the earlier ones. */
static size_t chain_step(size_t words)
{
    size_t step = (size_t)(0.6180339887498949 * (double)words), a, b, rest;

    for (step = step ? step : 1;; step++) {
        for (a = words, b = step; b; a = b, b = rest)
            rest = a % b;
        if (a == 1)
            return step;
    }
}

int kernel_chain(void *at, size_t words, gpu_stream s, struct err *err)
{
    size_t step = words ? chain_step(words) : 0;

    if (is_aligned(at, sizeof(uint64_t), "chain", err))
        return -1;
    return spread(CHAIN, words, (void *[]){&at, &words, &step}, s, err);
}

uint64_t kernel_chain_at(size_t words, size_t steps)
{
    return (uint64_t)((unsigned __int128)chain_step(words) * steps % words);
}

int kernel_chase(const void *at, uint64_t from, size_t steps, uint64_t *out, gpu_stream s,
                 struct err *err)
{
    return launch(CHASE, 1, 32, (void *[]){&at, &from, &steps, &out}, s, err);
}

int kernel_load(double seconds, int blocks, gpu_stream s, struct err *err)
{
    float *never = NULL;
    uint64_t ns;

    if (!(seconds > 0 && seconds <= 60) || blocks < 0)
        return err_usage(err, "load of %g s on %d multiprocessors: more than 0 and at most 60 s",
                         seconds, blocks);
    ns = (uint64_t)(1e9 * seconds);
    return launch(LOAD, (unsigned)(blocks ? blocks : gpu_now.facts.sms), 1024,
                  (void *[]){&ns, &never}, s, err);
}
