/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/import/record_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/topo.h"

int record_ring_read(const struct record_ring *f, void *to, size_t bytes, uint64_t at,
                     struct err *err)
{
    size_t have = 0;

    while (have < bytes) {
        ssize_t n = pread(f->fd, (char *)to + have, bytes - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_io(err, "%s: cannot read: %s", f->path, strerror(errno));
        if (n == 0)
            return err_data(err, "%s: ends at byte %llu while it is read", f->path,
                            (unsigned long long)(at + have));
        have += (size_t)n;
    }
    return 0;
}

/* What record_wrong() has no numbers for. */
static int wrong(const struct record_ring *f, const char *why, struct err *err)
{
    const struct record_head *h = &f->head;
    bool ours = f->bytes >= RECORD_HEAD_BYTES &&
                !memcmp(h->magic, RECORD_MAGIC, sizeof(h->magic)) && h->order == RECORD_ORDER;

    if (ours && h->version > RECORD_VERSION)
        return err_data(err, "%s: version %u of the record format; this program reads %u", f->path,
                        h->version, RECORD_VERSION);
    if (ours && h->capacity && h->ring_at < f->bytes && h->version == RECORD_VERSION)
        return err_data(err, "%s: cut at byte %llu: %s, of %llu records from byte %llu on", f->path,
                        (unsigned long long)f->bytes, why, (unsigned long long)h->capacity,
                        (unsigned long long)h->ring_at);
    return err_data(err, "%s: %s, of %llu bytes", f->path, why, (unsigned long long)f->bytes);
}

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static int check_head(struct record_ring *f, struct err *err)
{
    const char *why = record_wrong(&f->head, f->bytes);

    if (why)
        return wrong(f, why, err);
    if (!text_ends(f->head.host, sizeof(f->head.host)) ||
        !text_ends(f->head.job, sizeof(f->head.job)))
        return err_data(err, "%s: host or job in its header has no end", f->path);
    return topo_host_name_check(f->head.host, f->path, err);
}

int record_ring_open(struct record_ring *f, const char *path, struct err *err)
{
    struct stat st;

    *f = (struct record_ring){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->fd < 0 || fstat(f->fd, &st) < 0)
        return err_noinput(err, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_data(err, "%s: is no regular file", path);
    f->bytes = (uint64_t)st.st_size;
    size_t head = f->bytes < RECORD_HEAD_BYTES ? (size_t)f->bytes : RECORD_HEAD_BYTES;
    if (record_ring_read(f, f->text, head, 0, err) < 0 || check_head(f, err) < 0)
        return -1;
    size_t n = f->head.comms;
    f->comm = mem_calloc(n + 1, sizeof(*f->comm));
    f->slot = mem_ints((int)n, 0);
    f->team = mem_ints((int)n, -1);
    return record_ring_read(f, f->comm, n * sizeof(*f->comm), f->head.comm_at, err);
}

void record_ring_close(struct record_ring *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->comm);
    free(f->slot);
    free(f->team);
}
