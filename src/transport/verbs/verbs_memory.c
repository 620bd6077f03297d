/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_memory_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/units.h"
#include "kernels/verbs_api.h"

enum { PAGE = 4096 };
static const int rights =
    VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ;

/* --- registration --- */

/* Register with relaxed ordering if the library has the call; providers that do not support the
 * flag ignore it. */
static struct verbs_mr *register_memory(struct verbs_memory *m, const struct verbs_port *p)
{
    struct verbs_mr *mr = NULL;

    if (verbs.reg_mr_iova2)
        mr = verbs.reg_mr_iova2(p->pd, m->at, m->bytes, (uintptr_t)m->at,
                                (unsigned)rights | VERBS_ACCESS_RELAXED_ORDERING);
    m->relaxed = mr != NULL;
    return mr ? mr : verbs.reg_mr(p->pd, m->at, m->bytes, rights);
}

static int refused(const struct verbs_port *p, size_t bytes, int code, struct err *err)
{
    char size[UNITS_TEXT], limit[UNITS_TEXT + 64] = "";
    struct rlimit most;

    if (code == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &most) == 0 && most.rlim_cur != RLIM_INFINITY) {
        units_bytes_text(limit, (double)most.rlim_cur);
        snprintf(limit + strlen(limit), 64, " may be locked: ulimit -l");
    }
    return err_io(err, "%s: %s cannot be registered: %s%s%s", p->all[p->rank].port,
                  units_bytes_text(size, (double)bytes), strerror(code), *limit ? "; " : "", limit);
}

static int take_host(struct verbs_memory *m, const struct verbs_port *p, struct err *err)
{
    char size[UNITS_TEXT];
    void *at;

    if (posix_memalign(&at, PAGE, m->bytes))
        return err_io(err, "no memory for %s of messages",
                      units_bytes_text(size, (double)m->bytes));
    m->at = at;
    m->how = "host memory";
    memset(m->at, 0, m->bytes); /* touch every page before it is locked */
    m->mr = register_memory(m, p);
    if (m->mr)
        m->landing = verbs.reg_mr(p->pd, m->at + verbs_memory_landing(m), VERBS_LANDING, rights);
    return m->mr && m->landing ? 0 : refused(p, m->bytes, errno, err);
}

/* --- GPU memory --- */

static int by_dma_buf(struct verbs_memory *m, const struct verbs_port *p, struct err *err)
{
    size_t offset;
    int fd;

    if (!verbs.reg_dmabuf_mr)
        return err_config(err, "libibverbs is older than 1.12");
    if (!gpu_facts()->dma_buf)
        return err_config(err, "the GPU's driver has none (kernel 5.12 and the open modules)");
    if (gpu_dma_buf(&m->buffer, &fd, &offset, err) < 0)
        return -1;
    m->mr = verbs.reg_dmabuf_mr(p->pd, offset, m->bytes, (uintptr_t)m->at, fd,
                                rights | VERBS_ACCESS_RELAXED_ORDERING);
    m->relaxed = m->mr != NULL;
    if (!m->mr)
        m->mr = verbs.reg_dmabuf_mr(p->pd, offset, m->bytes, (uintptr_t)m->at, fd, rights);
    int code = errno;
    close(fd);
    m->how = "dma-buf";
    return m->mr ? 0 : err_config(err, "%s: %s", p->all[p->rank].port, strerror(code));
}

static int by_peermem(struct verbs_memory *m, const struct verbs_port *p, struct err *err)
{
    m->mr = register_memory(m, p);
    m->how = "nvidia-peermem";
    return m->mr ? 0
                 : err_config(err, "%s: %s (is the module nvidia_peermem loaded?)",
                              p->all[p->rank].port, strerror(errno));
}

static int take_gpu(struct verbs_memory *m, const struct verbs_port *p, struct err *err)
{
    struct err first = {0, ""}, second = {0, ""};

    if (!gpu_facts())
        return err_config(err, "no GPU was opened");
    if (gpu_stream_open(&m->stream, err) < 0 || gpu_alloc(&m->buffer, GPU_PLAIN, m->bytes, err) < 0)
        return -1;
    m->at = m->buffer.at;
    if (by_dma_buf(m, p, &first) == 0 || by_peermem(m, p, &second) == 0)
        return 0;
    return err_config(err,
                      "GPU memory cannot be registered: dma-buf: %.200s; nvidia-peermem: %.200s",
                      first.text, second.text);
}

/* --- allocate and free --- */

/* Linux overcommits memory and kills processes that touch it. */
static int see_room(size_t bytes, int sharers, struct err *err)
{
    double have = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char need[UNITS_TEXT], left[UNITS_TEXT], line[128];
    unsigned long long kib;
    FILE *f = fopen("/proc/meminfo", "r");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %19llu kB", &kib) == 1)
            have = 1024.0 * (double)kib;
    if (f)
        fclose(f);
    if ((double)bytes * sharers <= have)
        return 0;
    return err_io(err, "messages take %s for each of %d ranks here, but %s is free",
                  units_bytes_text(need, (double)bytes), sharers, units_bytes_text(left, have));
}

int verbs_memory_take(struct verbs_memory *m, const struct verbs_port *p, bool gpu, size_t bytes,
                      int sharers, struct err *err)
{
    if (m->mr && m->room >= bytes)
        return 0;
    verbs_memory_free(m);
    m->gpu = gpu;
    m->room = (bytes + PAGE - 1) / PAGE * PAGE;
    m->bytes = 2 * m->room + (gpu ? 0 : VERBS_LANDING);
    int rc = gpu ? 0 : see_room(m->bytes, sharers, err);
    if (rc == 0)
        rc = (gpu ? take_gpu : take_host)(m, p, err);
    if (rc < 0)
        verbs_memory_free(m);
    return rc;
}

void verbs_memory_free(struct verbs_memory *m)
{
    if (m->landing)
        verbs.dereg_mr(m->landing);
    if (m->mr)
        verbs.dereg_mr(m->mr);
    if (m->gpu) {
        gpu_free(&m->buffer);
        if (m->stream)
            gpu_stream_close(m->stream);
    } else
        free(m->at);
    *m = (struct verbs_memory){.at = NULL};
}

int verbs_memory_put(const struct verbs_memory *m, size_t at, const void *from, size_t bytes,
                     struct err *err)
{
    if (!m->gpu) {
        memcpy(m->at + at, from, bytes);
        return 0;
    }
    return gpu_memcpy(m->at + at, from, bytes, m->stream, err) < 0
               ? -1
               : gpu_stream_wait(m->stream, err);
}

int verbs_memory_get(const struct verbs_memory *m, size_t at, void *to, size_t bytes,
                     struct err *err)
{
    if (!m->gpu) {
        memcpy(to, m->at + at, bytes);
        return 0;
    }
    return gpu_memcpy(to, m->at + at, bytes, m->stream, err) < 0 ? -1
                                                                 : gpu_stream_wait(m->stream, err);
}
