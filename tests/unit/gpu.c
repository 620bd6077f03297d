/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.h against the stand-in for the driver: each test in a process of its own. */
#include "kernels/gpu.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "fake_gpu.h"
#include "kernels/kernels.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what))                                                                               \
            return err_set(err, "line %d: not so: %s", __LINE__, #what);                           \
    } while (0)

static void good(struct told t)
{
    if (t.rc || t.signal)
        fail_msg("%s (signal %d)", t.err.text, t.signal);
}

static void says(struct told t, int code, const char *text)
{
    assert_int_equal(t.signal, 0);
    assert_int_equal(t.rc, -1);
    if (!strstr(t.err.text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, t.err.text);
    assert_int_equal(t.err.code, code);
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_only(void *device, struct err *err)
{
    int rc = gpu_open(device ? *(int *)device : 0, err);

    gpu_close();
    return rc;
}

static void why_there_is_no_gpu(void **state)
{
    static const struct {
        const char *environment, *profile, *text;
    } rows[] = {
        {"FAKE_FAIL=cuInit:100", NULL,
         "the CUDA driver sees no GPU (CUDA_VISIBLE_DEVICES is not set)"},
        {"CUDA_VISIBLE_DEVICES=-1", NULL,
         "the CUDA driver sees no GPU (CUDA_VISIBLE_DEVICES is -1)"},
        {"FAKE_FAIL=cuInit:802", NULL,
         "the CUDA driver does not start: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized"},
        {"FAKE_FAIL=cuInit:12345", NULL, "error 12345 that this driver has no name for"},
        {"FAKE_FAIL=cuDriverGetVersion:999", NULL, "does not say its version"},
        {NULL, "driver 11080\n",
         "the driver offers CUDA 11.8; 12.0 (driver 525) is the oldest that is supported"},
        {NULL, "devices 0\n", "the CUDA driver sees no GPU"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        unsetenv("CUDA_VISIBLE_DEVICES");
        says(fake_child(open_only, NULL, rows[i].environment, rows[i].profile), EXIT_CONFIG,
             rows[i].text);
    }
}

static int facts(void *unused, struct err *err)
{
    const struct gpu_facts *f;
    const char *why = unused;

    CHECK(!gpu_facts());
    CHECK(!kernels_there(&why) && !strcmp(why, "no GPU is open"));
    if (gpu_open(1, err))
        return -1;
    f = gpu_facts();
    CHECK(!strcmp(f->name, "NVIDIA GB300") && !strcmp(f->busid, "0000:ab:00.0"));
    CHECK(!strcmp(f->uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeab"));
    CHECK(f->device == 1 && f->driver == 13000 && f->sm == 103 && f->sms == 152);
    CHECK(f->memory == 298000000000 && f->hbm_Bps == 8e12);
    CHECK(f->vmm && f->fabric && f->multicast && !f->dma_buf);
    CHECK(!strcmp(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID"));
    CHECK(gpu_open(0, err) == -1 && strstr(err->text, "GPU 1 is open already"));
    gpu_close();
    CHECK(!gpu_facts());
    CHECK(gpu_open(0, err) == 0); /* and again */
    gpu_close();
    gpu_close();
    CHECK(gpu_answers(1, err) == -1 && !strcmp(err->text, "no GPU is open"));
    return 0;
}

static void what_a_gpu_is(void **state)
{
    (void)state;
    good(fake_child(facts, NULL, NULL,
                    "devices 2\nname NVIDIA GB300\nbusid 0000:1b:00.0 0000:AB:00.0\nsm 103\nsms "
                    "152\nfabric yes\n"
                    "multicast yes\ndma_buf no\nmemory 298000000000\nclock_khz 4000000\n"
                    "bus_bits 8000\n"));
}

/* Data sheets: H200 4.8 TB/s, B200 and GB300 8 TB/s, RTX PRO 6000 1,792 GB/s. */
static const struct machine {
    const char *file, *name;
    int gpus, sm;
    double Bps;
    bool fabric;
} machines[] = {
    {"FAKE_GPU=tests/fake/gpu/h200.txt", "NVIDIA H200", 8, 90, 4.8e12, false},
    {"FAKE_GPU=tests/fake/gpu/b200.txt", "NVIDIA B200", 8, 100, 8e12, false},
    {"FAKE_GPU=tests/fake/gpu/gb300.txt", "NVIDIA GB300", 4, 103, 8e12, true},
    {"FAKE_GPU=tests/fake/gpu/rtxpro6000.txt", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 8,
     120, 1.792e12, false},
};

static int machine(void *arg, struct err *err)
{
    const struct machine *m = arg;
    const struct gpu_facts *f;
    char busid[16] = "";

    CHECK(gpu_count(err) == m->gpus);
    for (int i = 0; i < m->gpus; i++) {
        if (gpu_open(i, err))
            return -1;
        f = gpu_facts();
        CHECK(!strcmp(f->name, m->name) && f->sm == m->sm && f->fabric == m->fabric);
        CHECK(f->hbm_Bps > 0.97 * m->Bps && f->hbm_Bps < 1.03 * m->Bps);
        CHECK(strcmp(busid, f->busid) < 0); /* each its own, in PCI order */
        snprintf(busid, sizeof(busid), "%s", f->busid);
        gpu_close();
    }
    return 0;
}

static void machines_of_today(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
        good(fake_child(machine, (void *)(uintptr_t)&machines[i], machines[i].file, NULL));
}

static void no_such_gpu(void **state)
{
    int minus = -1, four = 4, one = 1;

    (void)state;
    says(fake_child(open_only, &minus, NULL, NULL), EXIT_CONFIG, "there is no GPU -1");
    says(fake_child(open_only, &four, NULL, NULL), EXIT_CONFIG,
         "there is no GPU 4: this process sees 4 of them, from 0");
    says(fake_child(open_only, &one, "CUDA_VISIBLE_DEVICES=2", NULL), EXIT_CONFIG,
         "there is no GPU 1: this process sees 1 of them");
}

static int count(void *unused, struct err *err)
{
    (void)unused;
    CHECK(gpu_count(err) == 3);
    CHECK(gpu_open(0, err) == 0 && !strcmp(gpu_facts()->busid, "0000:52:00.0"));
    gpu_close();
    return 0;
}

static void only_visible_gpus_count(void **state)
{
    (void)state;
    good(fake_child(count, NULL, "CUDA_VISIBLE_DEVICES=2,0,1", NULL));
}

/* --- memory --- */
static int alloc(void *kind, struct err *err)
{
    struct gpu_buffer b;
    int rc;

    if (gpu_open(0, err))
        return -1;
    rc = gpu_alloc(&b, *(enum gpu_memory *)kind, 3u << 20, err);
    if (rc == 0 && (b.bytes != 3u << 20 || b.kind != *(enum gpu_memory *)kind || !b.at))
        rc = err_set(err, "the buffer is wrong");
    if (rc == 0 && *(enum gpu_memory *)kind == GPU_FABRIC && b.mapped != 4u << 20)
        rc = err_set(err, "%zu bytes mapped", b.mapped);
    gpu_free(&b);
    if (b.at)
        rc = err_set(err, "still there");
    gpu_free(&b);
    gpu_close();
    return rc;
}

static void memory_of_each_kind(void **state)
{
    static enum gpu_memory kinds[] = {GPU_PLAIN, GPU_FABRIC, GPU_PINNED};

    (void)state;
    for (int i = 0; i < 3; i++)
        good(fake_child(alloc, &kinds[i], NULL, "fabric yes\n"));
}

static void why_there_is_no_memory(void **state)
{
    static enum gpu_memory plain = GPU_PLAIN, fabric = GPU_FABRIC, foreign = GPU_FOREIGN;

    (void)state;
    says(fake_child(alloc, &plain, NULL, "room 3000000\n"), EXIT_IO,
         "3 MiB of GPU memory: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    says(fake_child(alloc, &foreign, NULL, NULL), EXIT_IO, "no memory of kind 3");
    says(fake_child(alloc, &fabric, NULL, "vmm no\n"), EXIT_IO,
         "GPU 0000:1b:00.0 has no virtual memory management");
    says(fake_child(alloc, &fabric, NULL, "fabric no\n"), EXIT_IO,
         "(the GPU is in no NVLink domain that spans hosts, or its fabric state is not completed): "
         "CUDA_ERROR_NOT_SUPPORTED: operation not supported");
    says(fake_child(alloc, &fabric, NULL, "fabric not-permitted\n"), EXIT_IO,
         "(this process may use no IMEX channel: there is no /dev/nvidia-caps-imex-channels/"
         "channelN that it may open, or nvidia-imex is not running): CUDA_ERROR_NOT_PERMITTED");
    says(fake_child(alloc, &fabric, NULL, "fabric yes\ndriver 12020\n"), EXIT_IO,
         "(a driver before CUDA 12.3 knows no FABRIC handles): CUDA_ERROR_INVALID_VALUE");
    says(fake_child(alloc, &fabric, NULL, "fabric yes\nroom 3000000\n"), EXIT_IO,
         "GPU memory with a FABRIC handle: CUDA_ERROR_OUT_OF_MEMORY");
}

static int touch(void *unused, struct err *err)
{
    struct gpu_buffer b;

    (void)unused;
    if (gpu_open(0, err) || gpu_alloc(&b, GPU_PLAIN, 4096, err))
        return -1;
    *(volatile unsigned char *)b.at = 1;
    return 0;
}

/* The stand-in would be worth little if it let this pass: a machine with a GPU does not. */
static void the_host_cannot_touch_gpu_memory(void **state)
{
    (void)state;
    assert_int_equal(fake_child(touch, NULL, NULL, NULL).signal, SIGSEGV);
}

/* --- two processes --- */
struct pipes {
    int out, in;
    enum gpu_memory kind;
};

static int passed(int fd, struct gpu_buffer *pinned, const struct gpu_buffer *b, int value,
                  struct err *err)
{
    gpu_stream s;

    (void)fd;
    CHECK(gpu_stream_open(&s, err) == 0);
    CHECK(gpu_memcpy(pinned->at, b->at, b->bytes, s, err) == 0 && gpu_stream_wait(s, err) == 0);
    for (size_t i = 0; i < b->bytes; i++)
        CHECK(pinned->at[i] == value);
    gpu_stream_close(s);
    return 0;
}

static int set_all(const struct gpu_buffer *b, unsigned char value, struct err *err)
{
    gpu_stream s;

    CHECK(gpu_stream_open(&s, err) == 0);
    CHECK(gpu_memset(b->at, value, b->bytes, s, err) == 0 && gpu_stream_wait(s, err) == 0);
    gpu_stream_close(s);
    return 0;
}

static int exporter(void *arg, struct err *err)
{
    struct pipes *p = arg;
    struct gpu_buffer b, pinned;
    struct gpu_export e;
    char c;

    CHECK(gpu_open(0, err) == 0);
    if (gpu_alloc(&b, p->kind, 100000, err) || gpu_alloc(&pinned, GPU_PINNED, 100000, err) ||
        set_all(&b, 0x5a, err) || gpu_export(&b, &e, err))
        return -1;
    CHECK(write(p->out, &e, sizeof(e)) == sizeof(e));
    CHECK(read(p->in, &c, 1) == 1); /* the other one has looked and written */
    if (passed(0, &pinned, &b, 0xa5, err))
        return -1;
    gpu_free(&b);
    gpu_free(&pinned);
    gpu_close();
    return 0;
}

static int importer(void *arg, struct err *err)
{
    struct pipes *p = arg;
    struct gpu_buffer b, pinned;
    struct gpu_export e;

    CHECK(gpu_open(1, err) == 0);
    CHECK(read(p->in, &e, sizeof(e)) == sizeof(e));
    if (gpu_import(&b, &e, err) || gpu_alloc(&pinned, GPU_PINNED, 100000, err))
        return -1;
    CHECK(b.bytes == 100000 && b.kind == GPU_FOREIGN && pinned.bytes == 100000);
    if (passed(0, &pinned, &b, 0x5a, err) || set_all(&b, 0xa5, err))
        return -1;
    CHECK(gpu_export(&b, &e, err) == -1 && strstr(err->text, "one's own"));
    gpu_free(&b);
    gpu_free(&pinned);
    gpu_close();
    CHECK(write(p->out, "", 1) == 1);
    return 0;
}

static void memory_is_shared_between_processes(void **state)
{
    static const enum gpu_memory kinds[] = {GPU_PLAIN, GPU_FABRIC};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int there[2], back[2], status;
        struct told t;
        pid_t pid;

        assert_int_equal(pipe(there) | pipe(back), 0);
        struct pipes mine = {back[1], there[0], kinds[i]}, its = {there[1], back[0], kinds[i]};
        pid = fork();
        if (pid == 0) {
            t = fake_child(exporter, &its, NULL, "fabric yes\n");
            if (t.rc)
                print_error("exporter: %s\n", t.err.text);
            _exit(t.rc ? 1 : 0);
        }
        close(there[1]); /* an exporter that fails must not leave the importer waiting */
        good(fake_child(importer, &mine, NULL, "fabric yes\n"));
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        close(there[0]);
        close(back[0]);
        close(back[1]);
    }
}

static int imports(void *unused, struct err *err)
{
    struct gpu_buffer b, again, pinned;
    struct gpu_export e;

    (void)unused;
    if (gpu_open(0, err) || gpu_alloc(&b, GPU_FABRIC, 5, err) || gpu_export(&b, &e, err))
        return -1;
    CHECK(gpu_import(&again, &e, err) == 0 && again.at != b.at); /* one's own FABRIC handle: fine */
    gpu_free(&again);
    e.bytes[0] ^= 1;
    CHECK(gpu_import(&again, &e, err) == -1 && !again.at);
    CHECK(strstr(err->text, "import of GPU memory with a FABRIC handle"));
    e.kind = GPU_PINNED;
    CHECK(gpu_import(&again, &e, err) == -1 && strstr(err->text, "not an export of GPU memory"));
    gpu_free(&b);
    CHECK(gpu_export(&b, &e, err) == -1); /* of nothing */
    CHECK(gpu_alloc(&b, GPU_PLAIN, 5, err) == 0 && gpu_export(&b, &e, err) == 0);
    CHECK(gpu_import(&again, &e, err) == -1 && strstr(err->text, "CUDA_ERROR_INVALID_CONTEXT"));
    gpu_free(&b);
    CHECK(gpu_alloc(&pinned, GPU_PINNED, 5, err) == 0 && gpu_export(&pinned, &e, err) == -1);
    gpu_free(&pinned);
    gpu_close();
    return 0;
}

static void what_cannot_be_imported(void **state)
{
    (void)state;
    good(fake_child(imports, NULL, NULL, "fabric yes\n"));
}

static int no_peer(void *from, struct err *err)
{
    struct gpu_buffer b;

    return gpu_open(0, err) ? -1 : gpu_import(&b, from, err);
}

static int gone(void *to, struct err *err)
{
    struct gpu_buffer b;
    struct gpu_export e;

    if (gpu_open(0, err) || gpu_alloc(&b, GPU_PLAIN, 5, err) || gpu_export(&b, &e, err))
        return -1;
    CHECK(write(*(int *)to, &e, sizeof(e)) == sizeof(e));
    return 0;
}

static void memory_of_a_peer_that_is_out_of_reach_or_dead(void **state)
{
    struct gpu_export e;
    int to[2];

    (void)state;
    assert_int_equal(pipe(to), 0);
    good(fake_child(gone, &to[1], NULL, NULL));
    assert_int_equal(read(to[0], &e, sizeof(e)), sizeof(e));
    close(to[0]);
    close(to[1]);
    says(fake_child(no_peer, &e, NULL, "peer no\n"), EXIT_IO,
         "import of GPU memory by CUDA IPC (no NVLink or PCIe peer access between the two GPUs): "
         "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED");
    says(fake_child(no_peer, &e, NULL, NULL), EXIT_IO, "CUDA_ERROR_INVALID_HANDLE");
}

/* --- streams, the clock, graphs --- */
static int wait_long(void *unused, struct err *err)
{
    gpu_stream s;
    double cpu, wall;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err))
        return -1;
    cpu = now(CLOCK_THREAD_CPUTIME_ID);
    wall = now(CLOCK_MONOTONIC);
    CHECK(kernel_load(0.2, 1, s, err) == 0);
    CHECK(gpu_stream_done(s, err) == 0 ||
          now(CLOCK_MONOTONIC) - wall >= 0.2); /* or we were held up */
    CHECK(gpu_stream_wait(s, err) == 0 && gpu_stream_done(s, err) == 1);
    CHECK(now(CLOCK_MONOTONIC) - wall >= 0.2);
    CHECK(now(CLOCK_THREAD_CPUTIME_ID) - cpu < 0.1);
    gpu_stream_close(s);
    gpu_stream_close(NULL);
    gpu_close();
    return 0;
}

static void who_waits_long_leaves_the_core_to_others(void **state)
{
    (void)state;
    good(fake_child(wait_long, NULL, NULL, NULL));
}

static int clocks(void *unused, struct err *err)
{
    struct gpu_clock *c, *none;
    gpu_stream s;
    double sec[3], start;
    int rc;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_clock_open(&c, 4, err))
        return -1;
    CHECK(gpu_clock_open(&none, 1, err) == -1 && !none);
    CHECK(gpu_clock_read(c, 1, sec, err) == -1 && strstr(err->text, "INVALID_HANDLE"));
    start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < 3; i++)
        if (gpu_clock_record(c, i, s, err) || kernel_load(0.02 * (i + 1), 1, s, err))
            return -1;
    CHECK(gpu_clock_record(c, 3, s, err) == 0 && gpu_clock_record(c, 4, s, err) == -1);
    rc = gpu_clock_read(c, 3, sec, err);
    if (now(CLOCK_MONOTONIC) - start < 0.12) /* the loads' time: else we were held up */
        CHECK(rc == -1 && strstr(err->text, "CUDA_ERROR_NOT_READY"));
    CHECK(gpu_stream_wait(s, err) == 0 && gpu_clock_read(c, 3, sec, err) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(sec[i] >= 0.0199 * (i + 1) && sec[i] < 5);
    CHECK(gpu_clock_read(c, 4, sec, err) == -1 && gpu_clock_read(c, 0, sec, err) == -1);
    gpu_clock_close(c);
    gpu_clock_close(NULL);
    gpu_stream_close(s);
    gpu_close();
    return 0;
}

static void events_tell_the_time_between_them(void **state)
{
    (void)state;
    good(fake_child(clocks, NULL, NULL, NULL));
}

static int graphs(void *unused, struct err *err)
{
    struct gpu_buffer b, h, more;
    struct gpu_graph *g, *none;
    struct gpu_clock *c;
    gpu_stream s;
    double sec;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_clock_open(&c, 2, err) ||
        gpu_alloc(&b, GPU_PLAIN, 64, err) || gpu_alloc(&h, GPU_PINNED, 64, err))
        return -1;
    memset(h.at, 7, 64);
    if (gpu_graph_begin(s, err) || gpu_clock_record(c, 0, s, err) ||
        gpu_memcpy(b.at, h.at, 64, s, err) || gpu_memset(b.at, 1, 8, s, err) ||
        gpu_memcpy(h.at, b.at, 64, s, err) || kernel_load(0.01, 1, s, err) ||
        gpu_clock_record(c, 1, s, err))
        return -1;
    CHECK(gpu_graph_begin(s, err) == -1 && strstr(err->text, "already"));
    CHECK(gpu_graph_end(&g, s, err) == 0);
    CHECK(gpu_stream_wait(s, err) == 0 && h.at[0] == 7); /* recorded, not run */
    for (int i = 0; i < 3; i++) {
        memset(h.at, 7 + i, 64);
        CHECK(gpu_graph_launch(g, s, err) == 0 && gpu_stream_wait(s, err) == 0);
        CHECK(h.at[0] == 1 && h.at[7] == 1 && h.at[8] == 7 + i && h.at[63] == 7 + i);
        CHECK(gpu_clock_read(c, 1, &sec, err) == 0 && sec >= 0.0099 && sec < 5);
    }
    CHECK(gpu_graph_launch(g, s, err) == 0);
    gpu_graph_free(g); /* while it runs */
    CHECK(gpu_stream_wait(s, err) == 0 && h.at[8] == 9);
    CHECK(gpu_graph_end(&none, s, err) == -1 && !none);
    gpu_graph_free(NULL);
    /* What no graph can hold is refused, and costs the graph. */
    CHECK(gpu_graph_begin(s, err) == 0);
    CHECK(gpu_alloc(&more, GPU_PLAIN, 64, err) == -1 && strstr(err->text, "CAPTURE_UNSUPPORTED"));
    CHECK(gpu_memset(b.at, 1, 8, s, err) == -1 && strstr(err->text, "CAPTURE_INVALIDATED"));
    CHECK(gpu_graph_end(&none, s, err) == -1 && strstr(err->text, "CAPTURE_INVALIDATED") && !none);
    gpu_free(&b);
    gpu_free(&h);
    gpu_clock_close(c);
    gpu_stream_close(s);
    gpu_close();
    return 0;
}

static void a_graph_runs_what_was_recorded(void **state)
{
    (void)state;
    good(fake_child(graphs, NULL, NULL, NULL));
}

/* --- faults --- */
static int beyond(void *unused, struct err *err)
{
    struct gpu_buffer b, h;
    struct err again;
    gpu_stream s;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_alloc(&b, GPU_PLAIN, 4096, err) ||
        gpu_alloc(&h, GPU_PINNED, 8192, err))
        return -1;
    CHECK(gpu_memcpy(h.at, b.at, 0, s, err) == 0 &&
          gpu_memset(NULL, 0, 0, s, err) == 0);       /* nothing */
    CHECK(gpu_memset(h.at, 0, 1, s, err) == -1);      /* the host's */
    CHECK(gpu_memcpy(h.at, b.at, 8192, s, err) == 0); /* told only later, as by a GPU */
    CHECK(gpu_stream_wait(s, err) == -1);
    CHECK(!strcmp(err->text, "GPU 0000:1b:00.0: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory "
                             "access was encountered"));
    CHECK(gpu_stream_done(s, &again) == -1 && !strcmp(again.text, err->text));
    CHECK(gpu_answers(5, &again) == -1 && strstr(again.text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(gpu_alloc(&h, GPU_PLAIN, 1, &again) == -1 && strstr(again.text, "ILLEGAL_ADDRESS"));
    gpu_close();
    return 0;
}

static void a_fault_is_told_later_and_from_then_on(void **state)
{
    (void)state;
    good(fake_child(beyond, NULL, NULL, NULL));
}

static void *ask(void *answer)
{
    *(int *)answer = gpu_answers(10, NULL);
    return NULL;
}

static int answers(void *unused, struct err *err)
{
    pthread_t thread;
    int answer = -2;

    (void)unused;
    if (gpu_open(0, err))
        return -1;
    for (int i = 0; i < 20; i++)
        CHECK(gpu_answers(10, err) == 1);
    CHECK(pthread_create(&thread, NULL, ask, &answer) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(answer == 1);
    gpu_close();
    return 0;
}

static void a_gpu_that_is_well_answers_any_thread(void **state)
{
    (void)state;
    good(fake_child(answers, NULL, NULL, NULL));
}

/* The stream hangs from its second copy on; or the driver does not return at all. */
static int silent(void *unused, struct err *err)
{
    struct gpu_buffer b, h;
    gpu_stream s;
    double start;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_alloc(&b, GPU_PLAIN, 64, err) ||
        gpu_alloc(&h, GPU_PINNED, 64, err))
        return -1;
    CHECK(gpu_memcpy(h.at, b.at, 64, s, err) == 0 && gpu_stream_wait(s, err) == 0);
    CHECK(gpu_memcpy(h.at, b.at, 64, s, err) == 0);
    start = now(CLOCK_MONOTONIC);
    CHECK(gpu_answers(0.2, err) == 0);
    CHECK(now(CLOCK_MONOTONIC) - start >= 0.199);
    CHECK(gpu_answers(0.1, err) == 0); /* nobody asks a second time */
    gpu_close();
    CHECK(now(CLOCK_MONOTONIC) - start < 20);
    CHECK(gpu_facts()); /* what it holds is held on to */
    return 0;
}

static void a_gpu_that_is_stuck_does_not_keep_who_asks(void **state)
{
    (void)state;
    good(fake_child(silent, NULL, "FAKE_FAULT=stuck:0:2", NULL));
    good(fake_child(silent, NULL, "FAKE_FAIL=cuMemsetD8Async:block", NULL));
}

static void faults_strike_their_rank_only(void **state)
{
    (void)state;
    good(fake_child(answers, NULL, "FAKE_FAULT=stuck:3:0 OMPI_COMM_WORLD_RANK=2", NULL));
    good(fake_child(silent, NULL, "FAKE_FAULT=hang:1:1,stuck:3:2 PMI_RANK=3", NULL));
}

/* Everything once; whichever function of the driver fails is named by its error. */
static int everything(void *unused, struct err *err)
{
    struct gpu_buffer plain, fabric, pinned, foreign;
    struct gpu_export e;
    struct gpu_graph *g;
    struct gpu_clock *c;
    gpu_stream s;
    double sec;
    const char *why;

    (void)unused;
    if (gpu_open(0, err) || gpu_stream_open(&s, err) || gpu_clock_open(&c, 2, err) ||
        gpu_alloc(&plain, GPU_PLAIN, 4096, err) || gpu_alloc(&fabric, GPU_FABRIC, 4096, err) ||
        gpu_alloc(&pinned, GPU_PINNED, 4096, err) || gpu_export(&plain, &e, err) ||
        gpu_export(&fabric, &e, err) || gpu_import(&foreign, &e, err) || gpu_graph_begin(s, err) ||
        gpu_memset(plain.at, 1, 4096, s, err) || gpu_graph_end(&g, s, err) ||
        gpu_clock_record(c, 0, s, err) || gpu_graph_launch(g, s, err) ||
        gpu_memcpy(pinned.at, plain.at, 4096, s, err) || gpu_clock_record(c, 1, s, err) ||
        gpu_stream_wait(s, err) || gpu_clock_read(c, 1, &sec, err) || gpu_answers(10, err) < 0)
        return -1;
    if (!kernels_there(&why))
        return err_io(err, "%s", why);
    if (kernel_chain(plain.at, 512, s, err) || gpu_stream_wait(s, err))
        return -1;
    gpu_graph_free(g);
    gpu_free(&plain);
    gpu_free(&fabric);
    gpu_free(&pinned);
    gpu_free(&foreign);
    gpu_clock_close(c);
    gpu_stream_close(s);
    gpu_close();
    return 0;
}

static void every_call_of_the_driver_may_fail(void **state)
{
    static const char *const functions[] = {
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceGetPCIBusId",
        "cuDeviceGetUuid_v2",
        "cuDeviceTotalMem_v2",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuCtxGetStreamPriorityRange",
        "cuStreamCreateWithPriority",
        "cuStreamQuery",
        "cuMemAlloc_v2",
        "cuMemHostAlloc",
        "cuMemGetAllocationGranularity",
        "cuMemCreate",
        "cuMemAddressReserve",
        "cuMemMap",
        "cuMemSetAccess",
        "cuMemExportToShareableHandle",
        "cuMemImportFromShareableHandle",
        "cuIpcGetMemHandle",
        "cuEventCreate",
        "cuEventRecordWithFlags",
        "cuEventElapsedTime",
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "cuMemcpyAsync",
        "cuMemsetD8Async",
        "cuModuleLoadDataEx",
        "cuModuleGetFunction",
        "cuLaunchKernel",
    };
    char environment[128];

    (void)state;
    good(fake_child(everything, NULL, NULL, "fabric yes\n"));
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        snprintf(environment, sizeof(environment), "FAKE_FAIL=%s:999", functions[i]);
        says(fake_child(everything, NULL, environment, "fabric yes\n"), EXIT_IO,
             "CUDA_ERROR_UNKNOWN: unknown error");
    }
    says(fake_child(everything, NULL, "FAKE_FAIL=cuEventCreate:2:2", NULL), EXIT_IO,
         "event: CUDA_ERROR_OUT_OF_MEMORY");
    says(fake_child(everything, NULL, "FAKE_FAIL=cuDeviceGetCount:999", NULL), EXIT_IO,
         "number of GPUs: CUDA_ERROR_UNKNOWN");
}

/* A library that is found and is none; the loader reads LD_LIBRARY_PATH when a program starts. */
static void the_loader_says_why_there_is_no_driver(void **state)
{
    char folder[] = "/tmp/fake_gpu.XXXXXX", file[64], command[512], said[512] = "";
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/libcuda.so.1", folder);
    f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    snprintf(command, sizeof(command), "LD_LIBRARY_PATH=%s /proc/%d/exe --no-driver", folder,
             (int)getpid());
    f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(said, sizeof(said), f));
    pclose(f);
    unlink(file);
    rmdir(folder);
    assert_non_null(strstr(said, "78 the CUDA driver cannot be loaded: "));
    assert_non_null(strstr(said, "file too short"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_there_is_no_gpu),
        cmocka_unit_test(what_a_gpu_is),
        cmocka_unit_test(machines_of_today),
        cmocka_unit_test(no_such_gpu),
        cmocka_unit_test(only_visible_gpus_count),
        cmocka_unit_test(memory_of_each_kind),
        cmocka_unit_test(why_there_is_no_memory),
        cmocka_unit_test(the_host_cannot_touch_gpu_memory),
        cmocka_unit_test(memory_is_shared_between_processes),
        cmocka_unit_test(what_cannot_be_imported),
        cmocka_unit_test(memory_of_a_peer_that_is_out_of_reach_or_dead),
        cmocka_unit_test(who_waits_long_leaves_the_core_to_others),
        cmocka_unit_test(events_tell_the_time_between_them),
        cmocka_unit_test(a_graph_runs_what_was_recorded),
        cmocka_unit_test(a_fault_is_told_later_and_from_then_on),
        cmocka_unit_test(a_gpu_that_is_well_answers_any_thread),
        cmocka_unit_test(a_gpu_that_is_stuck_does_not_keep_who_asks),
        cmocka_unit_test(faults_strike_their_rank_only),
        cmocka_unit_test(every_call_of_the_driver_may_fail),
        cmocka_unit_test(the_loader_says_why_there_is_no_driver),
    };

    if (argc == 2 && !strcmp(argv[1], "--no-driver")) {
        struct err err = {0, ""};

        gpu_count(&err);
        printf("%d %s\n", err.code, err.text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
