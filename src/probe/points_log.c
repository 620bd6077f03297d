/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "probe/point.h"
#include "topo/topo.h"

struct points_log {
    int fd;
    char *path;
    struct points all;
    struct point_key *key;
    int keys;
    char *pending; /* rows not yet written */
    size_t used, room;
};

static int by_key(const void *a, const void *b)
{
    const struct point_key *x = a, *y = b;

    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

bool point_key_find(const struct point_key *sorted, int count, int round, int group, int epoch,
                    size_t bytes)
{
    struct point_key k = {round, group, epoch, bytes};

    return count && bsearch(&k, sorted, (size_t)count, sizeof(k), by_key);
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Ties points to who was measured over which transport: a CRC32C of hosts, kinds and numbers of the
 * endpoints.  Where they stand may become better known afterwards. */
static unsigned points_topology(const struct topo *t, const char *transport)
{
    unsigned crc = file_crc32c(0, transport, strlen(transport));

    for (int i = 0; i < t->endpoints; i++) {
        const struct endpoint *e = &t->endpoint[i];
        char *line = mem_printf("\n%s %s %d", t->host[e->place.at[LEVEL_HOST]].name,
                                endpoint_kind_name[e->kind], e->local);
        crc = file_crc32c(crc, line, strlen(line));
        free(line);
    }
    return crc;
}

int points_check(const struct points *p, const char *path, const struct topo *t,
                 const char *topology, struct err *err)
{
    unsigned crc = points_topology(t, p->transport);

    if (!p->bound || p->topology_crc == crc)
        return 0;
    return err_data(err,
                    "%s was measured on other endpoints or transport (%08x) than those of %s "
                    "(%08x): the same hosts with the same devices are needed",
                    path, p->topology_crc, topology, crc);
}

/* A new file: first line, provenance, header. */
static int start(struct points_log *log, unsigned crc, const struct topo *t, const char *transport,
                 struct err *err)
{
    char *text;
    size_t len;
    FILE *out = mem_stream(&text, &len);
    json_t *made = json_provenance();
    char *line = json_dumps(made, JSON_COMPACT | JSON_ENSURE_ASCII);

    fprintf(out, "# railgauge-points 1 plan=%08x endpoints=%d transport=%s topology=%08x\n# %s\n",
            crc, t->endpoints, transport, points_topology(t, transport), line ? line : "{}");
    point_write_header(out);
    mem_stream_end(out);
    int rc = write_all(log->fd, text, len) < 0 || fdatasync(log->fd) < 0
                 ? err_io(err, "%s: cannot write: %s", log->path, strerror(errno))
                 : 0;
    log->all.plan_crc = crc;
    log->all.endpoints = t->endpoints;
    snprintf(log->all.transport, sizeof(log->all.transport), "%s", transport);
    free(text);
    free(line);
    json_decref(made);
    return rc;
}

/* An old file: it must be of the same plan; cut the torn tail and index what is there. */
static int resume(struct points_log *log, unsigned crc, const struct topo *t, const char *transport,
                  off_t size, struct err *err)
{
    struct points *p = &log->all;

    if (points_load(p, log->path, err) < 0)
        return -1;
    if (p->plan_crc != crc || p->endpoints != t->endpoints || strcmp(p->transport, transport))
        return err_data(
            err, "%s: belongs to plan %08x of %d endpoints over %s, not to plan %08x of %d over %s",
            log->path, p->plan_crc, p->endpoints, p->transport, crc, t->endpoints, transport);
    if (points_check(p, log->path, t, "this topology", err) < 0)
        return -1;
    if (p->torn && ftruncate(log->fd, size - p->torn) < 0)
        return err_io(err, "%s: cannot cut a torn tail: %s", log->path, strerror(errno));
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        struct point_key k = {q->round, q->group, q->epoch, q->bytes};
        MEM_PUSH(log->key, log->keys) = k;
    }
    if (log->keys)
        qsort(log->key, (size_t)log->keys, sizeof(*log->key), by_key);
    return 0;
}

/* An open-file-description lock: a POSIX one would fall when points_load() closes the file. */
static int locked(struct points_log *log, struct err *err)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(log->fd, F_OFD_SETLK, &l) == 0)
        return 0;
    return err_io(err, "%s: another process is writing it (%s)", log->path, strerror(errno));
}

int points_open(struct points_log **out, const char *path, unsigned crc, const struct topo *t,
                const char *transport, struct err *err)
{
    struct points_log *log = mem_calloc(1, sizeof(*log));
    struct stat st;

    log->path = mem_strdup(path);
    log->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (log->fd < 0 || fstat(log->fd, &st) < 0) {
        err_io(err, "%s: %s", path, strerror(errno));
        goto fail;
    }
    if (locked(log, err) < 0)
        goto fail;
    if (st.st_size == 0 ? start(log, crc, t, transport, err) < 0
                        : resume(log, crc, t, transport, st.st_size, err) < 0)
        goto fail;
    *out = log;
    return 0;
fail:
    points_close(log, NULL);
    return -1;
}

void points_add(struct points_log *log, const struct point *p)
{
    while (log->used + POINT_TEXT > log->room) {
        log->room = log->room ? log->room * 2 : 1 << 16;
        log->pending = mem_realloc(log->pending, log->room, 1);
    }
    log->used += (size_t)point_format(log->pending + log->used, POINT_TEXT, p);
    MEM_PUSH(log->all.point, log->all.count) = *p;
}

int points_commit(struct points_log *log, struct err *err)
{
    if (log->used && (write_all(log->fd, log->pending, log->used) < 0 || fdatasync(log->fd) < 0))
        return err_io(err, "%s: cannot write: %s", log->path, strerror(errno));
    log->used = 0;
    return 0;
}

const struct point_key *points_keys(const struct points_log *log, int *count)
{
    *count = log->keys;
    return log->key;
}

const struct points *points_all(const struct points_log *log)
{
    return &log->all;
}

int points_close(struct points_log *log, struct err *err)
{
    int rc = 0;

    if (!log)
        return 0;
    if (log->fd >= 0) {
        rc = points_commit(log, err);
        close(log->fd);
    }
    points_free(&log->all);
    free(log->key);
    free(log->pending);
    free(log->path);
    free(log);
    return rc;
}
