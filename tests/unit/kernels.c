/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cu as the stand-in for the driver runs it (on the CPU, from the same source), against
 * verify.c, pattern.c and arithmetic written here. */
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/json.h"
#include "fake_gpu.h"
#include "kernels/pattern.h"
#include "measure/verify.h"

/* One multiprocessor is 2048 threads: 128 KiB are one round of all of them, 512 KiB four. */
enum { ROOM = 3 << 20, EDGE = 64 };
static const size_t sizes[] = {0,     1,      7,      8,           15,         16,
                               17,    31,     33,     4095,        4096,       65536,
                               99991, 131072, 524288, 1048576 + 5, 2097152 - 3};

static struct gpu_buffer device, host, other, word;
static unsigned char *want;
static gpu_stream stream;
static struct err why;

static void ok(int rc)
{
    if (rc)
        fail_msg("%s", why.text);
}

static void finish(void)
{
    ok(gpu_stream_wait(stream, &why));
}

/* The device's first `bytes` bytes in host.at. */
static void fetch(const struct gpu_buffer *from, size_t bytes)
{
    ok(gpu_memcpy(host.at, from->at, bytes, stream, &why));
    finish();
}

/* The device shall hold `want`. */
static void put(size_t bytes)
{
    memcpy(host.at, want, bytes);
    ok(gpu_memcpy(device.at, host.at, bytes, stream, &why));
}

static uint64_t *answer(void)
{
    return (uint64_t *)(void *)word.at;
}

/* What a kernel filled lies at `at` and nothing beside it was touched. */
static void holds(const struct gpu_buffer *b, size_t at, size_t bytes, unsigned char beside)
{
    fetch(b, at + bytes + EDGE);
    for (size_t i = 0; i < at; i++)
        assert_int_equal(host.at[i], beside);
    for (size_t i = at + bytes; i < at + bytes + EDGE; i++)
        assert_int_equal(host.at[i], beside);
    assert_int_equal(memcmp(host.at + at, want, bytes), 0);
}

static void fill_is_that_of_the_cpu_at_every_address(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++)
        for (size_t at = 0; at < 17; at += sizes[n] < 100000 ? 1 : 5) {
            ok(gpu_memset(device.at, 0xEE, at + sizes[n] + EDGE, stream, &why));
            ok(kernel_fill(device.at + at, sizes[n], verify_key(5, 2, 1), stream, &why));
            verify_fill(want, sizes[n], 5, 2, 1);
            holds(&device, at, sizes[n], 0xEE);
        }
}

static void terms_are_those_of_the_cpu(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++)
        for (int rank = 0; rank < 3; rank += 2) {
            size_t bytes = sizes[n] / 4 * 4, at = 4 * n;
            ok(gpu_memset(device.at, 0x11, at + bytes + EDGE, stream, &why));
            ok(kernel_fill_term(device.at + at, bytes, verify_key(rank, 1, 9),
                                verify_key(rank - 1, 1, 9), rank == 0, stream, &why));
            verify_fill_term(want, bytes, rank, 1, 9);
            holds(&device, at, bytes, 0x11);
        }
}

/* Where kernel_find() sees the first wrong byte of `want` put at `at`; ~0: nowhere. */
static uint64_t found(size_t at, size_t bytes)
{
    ok(gpu_memset(device.at, 0xEE, at, stream, &why));
    memcpy(host.at, want, bytes);
    ok(gpu_memcpy(device.at + at, host.at, bytes, stream, &why));
    *answer() = 0;
    ok(kernel_find(device.at + at, bytes, verify_key(3, 4, 5), answer(), stream, &why));
    finish();
    return *answer();
}

static void every_wrong_byte_is_found_where_it_is(void **state)
{
    size_t off;

    (void)state;
    for (size_t at = 0; at < 16; at += 3)
        for (size_t bytes = 1; bytes < 100; bytes += 11) {
            verify_fill(want, bytes, 3, 4, 5);
            assert_true(found(at, bytes) == UINT64_MAX);
            for (size_t i = 0; i < bytes; i++) {
                want[i] ^= 0x40;
                assert_int_equal(found(at, bytes), i);
                want[i] ^= 0x40;
            }
        }
    for (size_t n = 8; n < sizeof(sizes) / sizeof(*sizes); n++)
        for (size_t i = 1; i < 4; i++) {
            size_t first = sizes[n] / 4 * i + n, second = first + (sizes[n] - first) / 2;
            verify_fill(want, sizes[n], 3, 4, 5);
            want[first] ^= 1;
            want[second] ^= 2; /* perhaps the same byte */
            assert_int_equal(found(n, sizes[n]), first);
            assert_true(verify_find(want, sizes[n], 3, 4, 5, &off) && off == first);
        }
    verify_fill(want, 1 << 20, 3, 4, 6); /* all of it stale */
    assert_true(verify_find(want, 1 << 20, 3, 4, 5, &off));
    assert_int_equal(found(0, 1 << 20), off);
}

/* What the reduction of all ranks leaves: the owner's element, for avg divided as a library may. */
static void reduce(unsigned char *out, size_t elements, int type, int ranks, uint64_t k, int redop)
{
    size_t width = nccl_dtype_size(type);
    unsigned char *mine = malloc(elements * width);

    for (int r = 0; r < ranks; r++) {
        onehot_fill(mine, elements, type, r, ranks, k, redop);
        for (size_t i = 0; i < elements; i++)
            if (onehot_owner(pattern_word(k, i), ranks) == r)
                memcpy(out + i * width, mine + i * width, width);
    }
    free(mine);
}

static void average(unsigned char *out, size_t elements, int type, int ranks)
{
    for (size_t i = 0; i < elements; i++) {
        float f;
        int32_t n;

        if (type == NCCL_FLOAT32) {
            memcpy(&f, out + 4 * i, 4);
            f *= 1.0f / (float)ranks;
            memcpy(out + 4 * i, &f, 4);
        } else {
            memcpy(&n, out + 4 * i, 4);
            n /= ranks;
            memcpy(out + 4 * i, &n, 4);
        }
    }
}

static void typed_fill_is_that_of_the_cpu(void **state)
{
    (void)state;
    for (int type = 0; type < NCCL_DTYPES; type++)
        for (int redop = 0; redop < NCCL_REDOPS; redop++) {
            size_t width = nccl_dtype_size(type), elements = 10007, at = 24 % (16 * width);
            ok(gpu_memset(device.at, 0xEE, at + elements * width + EDGE, stream, &why));
            ok(kernel_fill_onehot(device.at + at, elements, type, 2, 5, 77, redop, stream, &why));
            onehot_fill(want, elements, type, 2, 5, 77, redop);
            holds(&device, at, elements * width, 0xEE);
        }
}

static uint64_t found_hot(size_t at, size_t first, size_t elements, int type, int redop)
{
    size_t width = nccl_dtype_size(type);

    memcpy(host.at, want + first * width, elements * width);
    ok(gpu_memcpy(device.at + at, host.at, elements * width, stream, &why));
    ok(kernel_find_onehot(device.at + at, first, elements, type, 5, 77, redop, answer(), stream,
                          &why));
    finish();
    return *answer();
}

static void typed_results_are_judged_element_by_element(void **state)
{
    (void)state;
    for (int type = 0; type < NCCL_DTYPES; type++)
        for (int redop = 0; redop < NCCL_REDOPS; redop++) {
            size_t width = nccl_dtype_size(type), elements = 9001;
            if (redop == NCCL_AVG && type != NCCL_FLOAT32 && type != NCCL_INT32)
                continue;
            reduce(want, elements, type, 5, 77, redop);
            if (redop == NCCL_AVG)
                average(want, elements, type, 5);
            assert_true(found_hot(width, 0, elements, type, redop) == UINT64_MAX);
            assert_true(found_hot(0, 1003, 5000, type, redop) == UINT64_MAX);
            want[4321 * width + width - 1] ^= 0x10;
            want[8999 * width] ^= 0x20;
            assert_int_equal(found_hot(width, 0, elements, type, redop), 4321);
            assert_int_equal(found_hot(3 * width, 321, elements - 321, type, redop), 4000);
            want[4321 * width + width - 1] ^= 0x10;
            assert_true(found_hot(0, 0, 8999, type, redop) == UINT64_MAX);
        }
    assert_true(found_hot(0, 5, 0, NCCL_INT8, NCCL_SUM) == UINT64_MAX);
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Any type, reduction, ranks, key, place in memory and part of the pattern: filled as the CPU fills, found right,
 * and one bit that is wrong is found at its element. */
static void typed_patterns_are_those_of_the_cpu_at_random(void **state)
{
    struct timespec t;

    (void)state;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed = (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 60 * NCCL_DTYPES; i++) {
        int type = i % NCCL_DTYPES, redop = (int)draw(&seed, NCCL_REDOPS);
        int ranks = 2 + (int)draw(&seed, 70), rank = (int)draw(&seed, (uint64_t)ranks);
        size_t width = nccl_dtype_size(type), elements = 1 + draw(&seed, 20000);
        size_t at = width * draw(&seed, 16), first = draw(&seed, elements), bad;
        uint64_t key = draw(&seed, UINT32_MAX);

        ok(gpu_memset(device.at, 0xEE, at + elements * width + EDGE, stream, &why));
        ok(kernel_fill_onehot(device.at + at, elements, type, rank, ranks, key, redop, stream,
                              &why));
        onehot_fill(want, elements, type, rank, ranks, key, redop);
        holds(&device, at, elements * width, 0xEE);
        if (redop == NCCL_AVG)
            continue; /* its results are rounded; see above */
        reduce(want, elements, type, ranks, key, redop);
        for (int wrong = 0; wrong < 2; wrong++) {
            bad = first + draw(&seed, elements - first);
            if (wrong)
                want[bad * width + draw(&seed, width)] ^= (unsigned char)(1 << draw(&seed, 8));
            memcpy(host.at, want + first * width, (elements - first) * width);
            ok(gpu_memcpy(device.at + at, host.at, (elements - first) * width, stream, &why));
            ok(kernel_find_onehot(device.at + at, first, elements - first, type, ranks, key, redop,
                                  answer(), stream, &why));
            finish();
            assert_true(*answer() == (wrong ? bad - first : UINT64_MAX));
        }
    }
}

static void copies_are_whole_at_every_address(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++)
        for (size_t k = 0; k < 3; k++) {
            size_t from = 16 * k + (k == 1), to = 32 - 16 * k + (k > 0);
            for (size_t i = 0; i < from + sizes[n]; i++)
                want[i] = (unsigned char)(i * 7 + (i >> 8) + k);
            put(from + sizes[n]);
            ok(gpu_memset(other.at, 0xEE, to + sizes[n] + EDGE, stream, &why));
            ok(kernel_copy(other.at + to, device.at + from, sizes[n], stream, &why));
            finish();
            memmove(want, want + from, sizes[n]);
            holds(&other, to, sizes[n], 0xEE);
        }
}

static void reading_adds_up_the_words(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
        uint64_t sum = 1000; /* what was there before */
        verify_fill(want, sizes[n] + 8, 1, 2, 3);
        put(sizes[n] + 8);
        for (size_t i = 0; i < sizes[n]; i++)
            sum += (uint64_t)want[i] << 8 * (i % 8);
        *answer() = 1000;
        ok(kernel_read(device.at, sizes[n], answer(), stream, &why));
        finish();
        assert_true(*answer() == sum);
    }
}

/* Arrays of 8 words each; what lies behind the last one stays as it was. */
static void a_pass_writes_the_sum_of_its_arrays_to_each_array(void **state)
{
    enum { WORDS = 8, ARRAY = 8 * WORDS };
    static const int mixes[][2] = {{1, 1}, {3, 2}, {2, 1}, {4, 3}, {8, 7}};
    const uint64_t *in = (const uint64_t *)(const void *)want, *got = (void *)host.at;

    (void)state;
    for (size_t n = 0; n < sizeof(mixes) / sizeof(*mixes); n++) {
        int reads = mixes[n][0], writes = mixes[n][1];
        verify_fill(want, 9 * ARRAY, 1, 2, 3);
        put(9 * ARRAY);
        ok(gpu_memset(other.at, 0x11, 9 * ARRAY, stream, &why));
        ok(kernel_pass(other.at, device.at, ARRAY, mixes[n], stream, &why));
        fetch(&other, 9 * ARRAY);
        for (int i = 0; i < 9 * WORDS; i++) {
            uint64_t sum = 0;
            for (int r = 0; r < reads; r++)
                sum += in[r * WORDS + i % WORDS];
            assert_true(got[i] == (i < writes * WORDS ? sum : 0x1111111111111111u));
        }
    }
    assert_int_equal(kernel_pass(other.at, device.at + 8, ARRAY, mixes[0], stream, &why), -1);
    assert_int_equal(kernel_pass(other.at + 8, device.at, ARRAY, mixes[0], stream, &why), -1);
}

static void a_chain_is_one_cycle_and_is_followed(void **state)
{
    static const size_t words[] = {1, 2, 3, 4, 6, 10, 89, 1000, 4096, 30030};
    const uint64_t *next = (const uint64_t *)(const void *)host.at;

    (void)state;
    for (size_t n = 0; n < sizeof(words) / sizeof(*words); n++) {
        uint64_t at = 0, steps = 0;
        ok(kernel_chain(device.at, words[n], stream, &why));
        fetch(&device, 8 * words[n]);
        for (; steps == 0 || at; steps++) {
            assert_true(at < words[n] && steps < words[n]);
            assert_true(kernel_chain_at(words[n], steps) == at);
            at = next[at];
        }
        assert_true(steps == words[n]);
        for (size_t s = 0; s < 2 * words[n]; s += words[n] / 3 + 1) {
            ok(kernel_chase(device.at, 0, s, answer(), stream, &why));
            finish();
            assert_true(*answer() == kernel_chain_at(words[n], s));
            ok(kernel_chase(device.at, *answer(), 5, answer(), stream, &why));
            finish();
            assert_true(*answer() == kernel_chain_at(words[n], s + 5));
        }
    }
}

static void a_load_takes_its_time(void **state)
{
    static const double none[] = {0, -1, 60.1, 1e9, INFINITY, NAN};
    struct gpu_clock *c;
    double sec;

    (void)state;
    ok(gpu_clock_open(&c, 2, &why));
    ok(gpu_clock_record(c, 0, stream, &why));
    ok(kernel_load(0.05, 0, stream, &why));
    ok(gpu_clock_record(c, 1, stream, &why));
    finish();
    ok(gpu_clock_read(c, 1, &sec, &why));
    gpu_clock_close(c);
    assert_true(sec >= 0.0499 && sec < 5);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        assert_int_equal(kernel_load(none[i], 1, stream, &why), -1);
        assert_int_equal(why.code, EXIT_USAGE);
    }
    assert_int_equal(kernel_load(1, -1, stream, &why), -1);
    assert_non_null(strstr(why.text, "load of 1 s on -1 multiprocessors"));
}

static void addresses_that_do_not_suit_are_refused(void **state)
{
    (void)state;
    assert_int_equal(kernel_read(device.at + 8, 16, answer(), stream, &why), -1);
    assert_non_null(strstr(why.text, "is not a multiple of 16"));
    assert_int_equal(kernel_chain(device.at + 4, 16, stream, &why), -1);
    assert_int_equal(kernel_fill_onehot(device.at + 2, 1, NCCL_FLOAT32, 0, 1, 0, 0, stream, &why),
                     -1);
    assert_non_null(strstr(why.text, "one-hot fill"));
    assert_int_equal(
        kernel_find_onehot(device.at + 1, 0, 1, NCCL_FLOAT16, 1, 0, 0, answer(), stream, &why), -1);
    assert_non_null(strstr(why.text, "is not a multiple of 2"));
}

/* --- programs and drivers without kernels; in processes of their own --- */
static int without(void *words, struct err *err)
{
    struct gpu_buffer b;
    gpu_stream s;
    const char *reason = NULL;

    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_alloc(&b, GPU_PLAIN, 64, err))
        return -1;
    if (kernels_there(&reason) || !strstr(reason, words))
        return err_set(err, "\"%s\" is not in \"%s\"", (char *)words, reason ? reason : "");
    if (kernel_fill(b.at, 64, 1, s, err) != -1 || err->code != EXIT_CONFIG ||
        !strstr(err->text, "no GPU kernels: ") || !strstr(err->text, words))
        return -1;
    gpu_free(&b);
    gpu_stream_close(s);
    gpu_close();
    return 0;
}

static void why_there_are_no_kernels(void **state)
{
    static char *const rows[][3] = {
        {"FAKE_FAIL=cuModuleLoadDataEx:209", "driver 12080\nsm 80\n",
         "the driver (CUDA 12.8) does not load the GPU kernels of this build for sm_80: "
         "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {"FAKE_FAIL=cuModuleGetFunction:500:7", NULL, "CUDA_ERROR_NOT_FOUND"},
        {"RAILGAUGE_KERNELS=/nowhere/kernels.fatbin", NULL,
         "/nowhere/kernels.fatbin: No such file or directory"},
        {"RAILGAUGE_KERNELS=/proc/self/exe", NULL, "CUDA_ERROR_INVALID_IMAGE"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct told t = fake_child(without, rows[i][2], rows[i][0], rows[i][1]);
        if (t.rc || t.signal)
            fail_msg("%s (signal %d)", t.err.text, t.signal);
    }
}

/* Inside the program: see kernels.c. */
extern const unsigned char kernels_image[] __attribute__((weak));
extern const char kernels_ptx[] __attribute__((weak));

static int filled_from_ptx(void *unused, struct err *err)
{
    struct gpu_buffer b;
    gpu_stream s;
    const char *reason = NULL;
    unsigned char wanted[64];
    json_t *j;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_alloc(&b, GPU_PINNED, 64, err))
        return -1;
    if (!kernels_there(&reason))
        return err_set(err, "no kernels: %s", reason);
    if (kernel_fill(b.at, 64, verify_key(1, 2, 3), s, err) || gpu_stream_wait(s, err))
        return -1;
    verify_fill(wanted, 64, 1, 2, 3);
    if (memcmp(b.at, wanted, 64))
        return err_set(err, "filled with something else");
    j = json_provenance();
    if (!json_object_get(j, "gpu_kernels"))
        return err_set(err, "the provenance does not say so");
    json_decref(j);
    gpu_free(&b);
    gpu_stream_close(s);
    gpu_close();
    return 0;
}

static void a_driver_that_refuses_the_code_is_given_ptx(void **state)
{
    static char *const refusals[] = {"FAKE_FATBIN=200", "FAKE_FATBIN=209", "FAKE_FATBIN=222",
                                     "FAKE_FATBIN=300"};

    (void)state;
    if (!kernels_image)
        skip(); /* built without nvcc */
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        struct told t = fake_child(filled_from_ptx, NULL, refusals[i], "driver 12000\nsm 90\n");
        if (t.rc || t.signal)
            fail_msg("%s: %s (signal %d)", refusals[i], t.err.text, t.signal);
    }
}

static void ptx_that_is_refused_too_is_told_with_the_compilers_words(void **state)
{
    char name[] = "/tmp/rg-kernels-XXXXXX", environment[100];
    FILE *f = fdopen(mkstemp(name), "w");
    struct told t;

    (void)state;
    assert_non_null(f);
    fputs("// made by hand\n.version 9.0\n.target sm_80\n.address_size 64\n", f);
    fclose(f);
    snprintf(environment, sizeof(environment), "RAILGAUGE_KERNELS=%s", name);
    t = fake_child(without,
                   "for sm_90: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled "
                   "with an unsupported toolchain.: ptxas application ptx input, line 9; fatal   : "
                   "Unsupported .version 9.0",
                   environment, "driver 12000\nsm 90\n");
    unlink(name);
    if (t.rc || t.signal)
        fail_msg("%s (signal %d)", t.err.text, t.signal);
    if (!kernels_image)
        return;
    t = fake_child(without, "CUDA_ERROR_NO_BINARY_FOR_GPU: ", "FAKE_FAIL=cuModuleLoadDataEx:209",
                   "driver 12000\nsm 75\n");
    assert_int_equal(t.rc, 0);
    t = fake_child(without, "; nor from PTX: CUDA_ERROR_NO_BINARY_FOR_GPU: ",
                   "FAKE_FAIL=cuModuleLoadDataEx:209", "driver 12000\nsm 75\n");
    assert_int_equal(t.rc, 0);
}

static void the_ptx_is_of_the_oldest_driver_and_gpu(void **state)
{
    const char *isa = getenv("RG_PTX_ISA"), *list = getenv("RG_CUDA_SM");
    char target[40], version[40];

    (void)state;
    if (!kernels_image)
        skip(); /* built without nvcc */
    snprintf(version, sizeof(version), "\n.version %s\n", isa && *isa ? isa : "8.0");
    snprintf(target, sizeof(target), "\n.target sm_%d\n", list && *list ? atoi(list) : 80);
    assert_non_null(strstr(kernels_ptx, version));
    assert_non_null(strstr(kernels_ptx, target));
    assert_non_null(strstr(kernels_ptx, ".entry rg_find_onehot("));
}

/* The fat binary: a head of 16 bytes, then one record for each architecture; kind (2 bytes: 1 PTX,
 * 2 SASS) first, its head's size at 4, what follows it at 8, the architecture at 28.  Source: what
 * nvcc 13.0 writes. */

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t v = 0;

    memcpy(&v, p, (size_t)bytes);
    return v;
}

static bool holds_code(int sm, int kind)
{
    const unsigned char *end = kernels_image + 16 + number(kernels_image + 8, 8);

    for (const unsigned char *p = kernels_image + 16; p < end;
         p += number(p + 4, 4) + number(p + 8, 8))
        if (number(p, 2) == (uint64_t)kind && number(p + 28, 4) == (uint64_t)sm)
            return true;
    return false;
}

static void the_program_has_code_for_each_gpu(void **state)
{
    const char *list = getenv("RG_CUDA_SM");
    char *words, *rest, *one;
    int sm;

    (void)state;
    if (!kernels_image)
        skip(); /* built without nvcc */
    assert_true(number(kernels_image, 4) == 0xBA55ED50);
    words = rest = strdup(list && *list ? list : "80 86 89 90 100 103 120");
    while ((one = strsep(&rest, " ")) != NULL) {
        sm = atoi(one);
        if (!holds_code(sm, 2))
            fail_msg("no SASS for sm_%d", sm);
    }
    assert_false(holds_code(35, 2));
    free(words);
}

static void a_program_without_kernels_says_so(void **state)
{
    struct told t;

    (void)state;
    if (kernels_image)
        skip();
    t = fake_child(without, "this program was built without nvcc", "RAILGAUGE_KERNELS=", NULL);
    if (t.rc || t.signal)
        fail_msg("%s (signal %d)", t.err.text, t.signal);
}

static int begin(void **state)
{
    (void)state;
    fake_environment(NULL, "sms 1\n");
    want = malloc(ROOM);
    return !want || gpu_open(0, &why) || gpu_stream_open(&stream, &why) ||
           gpu_alloc(&device, GPU_PLAIN, ROOM, &why) || gpu_alloc(&other, GPU_PLAIN, ROOM, &why) ||
           gpu_alloc(&host, GPU_PINNED, ROOM, &why) || gpu_alloc(&word, GPU_PINNED, 8, &why);
}

static int end(void **state)
{
    (void)state;
    gpu_free(&device);
    gpu_free(&other);
    gpu_free(&host);
    gpu_free(&word);
    gpu_stream_close(stream);
    gpu_close();
    free(want);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* Those with processes of their own first: this one has no driver yet. */
        cmocka_unit_test(why_there_are_no_kernels),
        cmocka_unit_test(a_driver_that_refuses_the_code_is_given_ptx),
        cmocka_unit_test(ptx_that_is_refused_too_is_told_with_the_compilers_words),
        cmocka_unit_test(the_ptx_is_of_the_oldest_driver_and_gpu),
        cmocka_unit_test(the_program_has_code_for_each_gpu),
        cmocka_unit_test(a_program_without_kernels_says_so),
        cmocka_unit_test_setup(fill_is_that_of_the_cpu_at_every_address, begin),
        cmocka_unit_test(terms_are_those_of_the_cpu),
        cmocka_unit_test(every_wrong_byte_is_found_where_it_is),
        cmocka_unit_test(typed_fill_is_that_of_the_cpu),
        cmocka_unit_test(typed_results_are_judged_element_by_element),
        cmocka_unit_test(typed_patterns_are_those_of_the_cpu_at_random),
        cmocka_unit_test(copies_are_whole_at_every_address),
        cmocka_unit_test(reading_adds_up_the_words),
        cmocka_unit_test(a_pass_writes_the_sum_of_its_arrays_to_each_array),
        cmocka_unit_test(a_chain_is_one_cycle_and_is_followed),
        cmocka_unit_test(a_load_takes_its_time),
        cmocka_unit_test_teardown(addresses_that_do_not_suit_are_refused, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
