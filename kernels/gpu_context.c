/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_context.c - opens and closes the GPU of this process, and checks that it responds. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda_api.h"
#include "kernels/kernels.h"

/* --- response check: a thread of its own makes the call, because a GPU that fell off its bus may
 * block even asynchronous calls; callers wait for the thread only as long as they allow --- */

enum answer { UNASKED, ASKED, ANSWERED, FAULT, SILENT }; /* ASKED: the thread runs */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    enum answer answer;
    bool closing;
    struct err why; /* set for FAULT */
    gpu_stream stream;
    struct gpu_buffer bytes;
} ask = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Use a clock that is never set. */
static void prepare(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ask.moved, &attr);
    pthread_condattr_destroy(&attr);
}

/* Open a stream of the highest priority, so that a stream full of long kernels does not look like
 * a failed GPU.  The stream and the bytes that gpu_answers() fills are allocated early, because
 * allocating may block once the GPU does not respond. */
static int open_asking(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int least, greatest = 0;
    int rc = cuda.CtxGetStreamPriorityRange(&least, &greatest);

    pthread_once(&once, prepare);
    if (rc == CUDA_GOOD)
        rc = cuda.StreamCreateWithPriority(&ask.stream, CUDA_STREAM_NON_BLOCKING, greatest);
    if (rc) {
        ask.stream = NULL;
        return cuda_error(err, rc, "stream");
    }
    ask.closing = false;
    ask.answer = UNASKED;
    return gpu_alloc(&ask.bytes, GPU_PLAIN, 4096, err);
}

static struct timespec after(double seconds)
{
    struct timespec t;
    double whole;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)(1e9 * modf(seconds, &whole));
    t.tv_sec += (time_t)whole + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Wait for the thread until `until`; the lock is held. */
static bool wait_for_answer(const struct timespec *until)
{
    while (ask.answer == ASKED)
        if (pthread_cond_timedwait(&ask.moved, &ask.lock, until) == ETIMEDOUT)
            break;
    return ask.answer != ASKED;
}

static bool closing(void)
{
    bool yes;

    pthread_mutex_lock(&ask.lock);
    yes = ask.closing;
    pthread_mutex_unlock(&ask.lock);
    return yes;
}

static int fill_and_wait(struct err *err)
{
    struct timespec nap = {0, 20000};
    int done;

    if (gpu_set_current(err) < 0 || gpu_memset(ask.bytes.at, 0, ask.bytes.bytes, ask.stream, err))
        return -1;
    while ((done = gpu_stream_done(ask.stream, err)) == 0 && !closing()) {
        nanosleep(&nap, NULL);
        nap.tv_nsec += nap.tv_nsec < 10000000 ? nap.tv_nsec / 8 : 0;
    }
    return done;
}

static void *look(void *unused)
{
    struct err why = {EXIT_IO, "the context of the GPU cannot be used"};
    int done = fill_and_wait(&why);

    pthread_mutex_lock(&ask.lock);
    ask.answer = done < 0 ? FAULT : done ? ANSWERED : SILENT;
    ask.why = why;
    pthread_cond_broadcast(&ask.moved);
    pthread_mutex_unlock(&ask.lock);
    return unused;
}

static int begin(struct err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    ask.answer = ASKED;
    rc = pthread_create(&thread, &attr, look, NULL);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return 0;
    ask.answer = UNASKED;
    return err_io(err, "no thread that asks the GPU: %s", strerror(rc));
}

/* A check without a response is not started again: its thread still waits. */
int gpu_answers(double seconds, struct err *err)
{
    struct timespec until = after(seconds);
    int rc = -1;

    pthread_mutex_lock(&ask.lock);
    if (!ask.stream)
        err_config(err, "no GPU is open");
    else if (ask.answer == ASKED || begin(err) == 0)
        rc = wait_for_answer(&until) ? (ask.answer == FAULT ? -1 : 1) : 0;
    if (rc < 0 && ask.answer == FAULT && err)
        *err = ask.why;
    pthread_mutex_unlock(&ask.lock);
    return rc;
}

/* True if the GPU does not respond: nothing was closed, and nothing may be.  Checked first,
 * because freeing memory waits until the GPU has finished its work. */
static bool close_asking(void)
{
    pthread_mutex_lock(&ask.lock);
    bool doubted = ask.answer == ASKED;
    pthread_mutex_unlock(&ask.lock);
    /* Wait longer unless a check is already waiting: the host may just be busy. */
    bool silent = ask.stream && gpu_answers(doubted ? 1.0 : 10.0, NULL) == 0;
    struct timespec until = after(1.0);

    pthread_mutex_lock(&ask.lock);
    ask.closing = true;
    silent = !wait_for_answer(&until) || silent;
    pthread_mutex_unlock(&ask.lock);
    if (silent)
        return true;
    gpu_free(&ask.bytes);
    gpu_stream_close(ask.stream);
    ask.stream = NULL;
    return false;
}

/* --- opening and closing --- */

int gpu_count(struct err *err)
{
    int n, rc;

    if (cuda_load(err))
        return -1;
    rc = cuda.DeviceGetCount(&n);
    if (rc)
        return cuda_error(err, rc, "number of GPUs");
    return n > 0 ? n : err_config(err, "the CUDA driver sees no GPU");
}

/* Value of an attribute; 0 also if the driver is too old to know it. */
static int attribute(cuda_device device, int what)
{
    int value;

    return cuda.DeviceGetAttribute(&value, what, device) == CUDA_GOOD ? value : 0;
}

static void uuid_text(char out[48], const struct cuda_uuid *u)
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const unsigned char *byte = u->bytes;
    char *p = out;

    for (const char *f = form; *f; f++) {
        if (*f != 'x') {
            *p++ = *f;
            continue;
        }
        p += snprintf(p, 3, "%02x", *byte++);
        f++; /* two digits per byte */
    }
    *p = '\0';
}

/* Bytes per second: both edges of the memory clock transfer a bit on every line of the bus. */
static double memory_rate(cuda_device device)
{
    return 2e3 * attribute(device, CUDA_MEMORY_CLOCK_KHZ) *
           (attribute(device, CUDA_MEMORY_BUS_BITS) / 8.0);
}

static int read_facts(struct gpu_facts *f, cuda_device device, struct err *err)
{
    struct cuda_uuid uuid;
    int rc;

    if ((rc = cuda.DeviceGetName(f->name, sizeof(f->name), device)) ||
        (rc = cuda.DeviceGetPCIBusId(f->busid, sizeof(f->busid), device)) ||
        (rc = cuda.DeviceGetUuid(&uuid, device)) || (rc = cuda.DeviceTotalMem(&f->memory, device)))
        return cuda_error(err, rc, "facts of GPU %d", f->device);
    for (char *p = f->busid; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    uuid_text(f->uuid, &uuid);
    f->driver = cuda.version;
    f->sm = 10 * attribute(device, CUDA_SM_MAJOR) + attribute(device, CUDA_SM_MINOR);
    f->sms = attribute(device, CUDA_MULTIPROCESSORS);
    f->hbm_Bps = memory_rate(device);
    f->vmm = attribute(device, CUDA_HAS_VMM);
    f->fabric = attribute(device, CUDA_HAS_FABRIC);
    f->multicast = attribute(device, CUDA_HAS_MULTICAST);
    f->dma_buf = attribute(device, CUDA_HAS_DMA_BUF);
    return 0;
}

int gpu_open(int device, struct err *err)
{
    struct gpu_open own = {.facts.device = device};
    int n = gpu_count(err), rc;

    if (n < 0)
        return -1;
    if (gpu_now.context)
        return err_config(err, "GPU %d is open already: one GPU a process", gpu_now.facts.device);
    if (device < 0 || device >= n)
        return err_config(err, "there is no GPU %d: this process sees %d of them, from 0", device,
                          n);
    if ((rc = cuda.DeviceGet(&own.device, device)))
        return cuda_error(err, rc, "GPU %d", device);
    if (read_facts(&own.facts, own.device, err))
        return -1;
    if ((rc = cuda.DevicePrimaryCtxRetain(&own.context, own.device)))
        return cuda_error(err, rc, "context on GPU %d (%s)", device, own.facts.busid);
    gpu_now = own;
    rc = cuda.CtxSetCurrent(own.context);
    if (rc)
        cuda_error(err, rc, "context on GPU %d (%s)", device, own.facts.busid);
    else
        rc = open_asking(err);
    if (rc) {
        gpu_close();
        return -1;
    }
    kernels_open();
    return 0;
}

/* Leave resources to the end of the process if the GPU does not respond: freeing would block. */
void gpu_close(void)
{
    struct gpu_open own = gpu_now;

    if (!own.context || close_asking())
        return;
    kernels_close();
    memset(&gpu_now, 0, sizeof(gpu_now));
    cuda.CtxSetCurrent(NULL);
    cuda.DevicePrimaryCtxRelease(own.device);
}
