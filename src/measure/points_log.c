/* SPDX-License-Identifier: BSD-3-Clause */
/* points_log.c - write points.tsv while it grows.
 *
 * A row is in the file as soon as it is committed, so that no row is lost if a process dies, and on
 * disk KEEP_MS later, as protection against power cuts.  A flush takes milliseconds, on a busy disk
 * many, so a thread does it and no rank waits.  A campaign of sim can be repeated in seconds and is
 * flushed only at the end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "measure/point.h"
#include "measure/transports/transport.h"
#include "topo/topo.h"

enum { KEEP_MS = 200 };

struct points_log {
    int fd;
    char *path;
    struct points all;
    char *text; /* of the rows not yet written */
    size_t len, room;
    struct point_written last; /* last of these rows */
    bool kept;                 /* the thread runs */
    int news, over;            /* event descriptors: new rows; end */
    atomic_int error;
    pthread_t keeper;
};

/* Thread: flush the data written within KEEP_MS.  The thread does not read a clock, because under
 * SimGrid the clock is simulated. */
static void *keep(void *arg)
{
    struct points_log *log = arg;
    struct pollfd either[] = {{.fd = log->over, .events = POLLIN},
                              {.fd = log->news, .events = POLLIN}};
    uint64_t rows;

    do {
        poll(either, 2, -1);
        if (!either[0].revents)
            poll(either, 1, KEEP_MS);
        if (read(log->news, &rows, sizeof(rows)) > 0 && fdatasync(log->fd) < 0)
            atomic_store(&log->error, errno);
    } while (!either[0].revents);
    return NULL;
}

/* Start the thread.  Without it every commit flushes. */
static void keep_start(struct points_log *log)
{
    log->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    log->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    log->kept =
        log->news >= 0 && log->over >= 0 && pthread_create(&log->keeper, NULL, keep, log) == 0;
}

/* Stop the thread.  Afterwards everything is on disk, or log->error has the reason. */
static void keep_stop(struct points_log *log)
{
    if (log->kept && eventfd_write(log->over, 1) == 0)
        pthread_join(log->keeper, NULL);
    else if (fdatasync(log->fd) < 0)
        atomic_store(&log->error, errno);
    log->kept = false;
    if (log->news >= 0)
        close(log->news);
    if (log->over >= 0)
        close(log->over);
    log->news = log->over = -1;
}

static bool is_played(const char *transport)
{
    const struct transport *t = transport_find(transport);

    return t && !t->ranks;
}

static int write_text(struct points_log *log, const char *text, size_t len, struct err *err)
{
    while (len) {
        ssize_t n = write(log->fd, text, len);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return err_io(err, "%s: cannot write: %s", log->path, strerror(errno));
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    if (log->kept ? eventfd_write(log->news, 1) < 0
                  : !is_played(log->all.transport) && fdatasync(log->fd) < 0)
        atomic_store(&log->error, errno);
    int why = atomic_load(&log->error);
    return why ? err_io(err, "%s: cannot keep what was written: %s", log->path, strerror(why)) : 0;
}

/* CRC32C of the transport and of hosts, kinds and numbers of the endpoints: the identity of the
 * measured machine.  Coordinates are not included, because a later source may add coordinates. */
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

/* New file: write first line, provenance and header. */
static int start(struct points_log *log, unsigned crc, const struct topo *t, const char *transport,
                 struct err *err)
{
    json_t *made = json_provenance();
    char *line = json_dumps(made, JSON_COMPACT | JSON_ENSURE_ASCII);
    char *text =
        mem_printf("# railgauge-points 1 plan=%08x endpoints=%d transport=%s topology=%08x\n# %s\n",
                   crc, t->endpoints, transport, points_topology(t, transport), line ? line : "{}");

    char *header = points_header();

    text = mem_append(text, "%s", header);
    log->all.plan_crc = crc;
    log->all.endpoints = t->endpoints;
    log->all.bound = true;
    log->all.topology_crc = points_topology(t, transport);
    snprintf(log->all.transport, sizeof(log->all.transport), "%s", transport);
    int rc = write_text(log, text, strlen(text), err);
    free(header);
    free(text);
    free(line);
    json_decref(made);
    return rc;
}

/* Existing file: check that it has the same plan; cut the torn tail. */
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
    log->last.plain = p->plain; /* the file keeps its columns */
    if (p->torn && ftruncate(log->fd, size - p->torn) < 0)
        return err_io(err, "%s: cannot cut a torn tail: %s", log->path, strerror(errno));
    return 0;
}

/* Open-file-description lock, because a POSIX lock is lost when points_load() closes the file. */
static int locked(struct points_log *log, struct err *err)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(log->fd, F_OFD_SETLK, &l) == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return err_io(err, "%s: another process is writing it (%s)", log->path, strerror(errno));
    log_debug("%s: no locks here: %s", log->path, strerror(errno)); /* run marks the folder */
    return 0;
}

int points_open(struct points_log **out, const char *path, unsigned crc, const struct topo *t,
                const char *transport, struct err *err)
{
    struct points_log *log = mem_calloc(1, sizeof(*log));
    struct stat st;

    log->path = mem_strdup(path);
    log->news = log->over = -1;
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
    if (!is_played(transport))
        keep_start(log);
    *out = log;
    return 0;
fail:
    points_close(log, NULL);
    return -1;
}

void points_add(struct points_log *log, const struct point_row *row)
{
    if (log->room - log->len < POINT_TEXT) {
        log->room += log->room + POINT_TEXT;
        log->text = mem_realloc(log->text, log->room, 1);
    }
    log->len += point_row(log->text + log->len, row, &log->last);
    MEM_PUSH(log->all.point, log->all.count) = row->point;
    if (log->last.plain) {
        struct point *p = &log->all.point[log->all.count - 1];
        p->dtype = p->redop = p->registration = 0; /* as a reader of the file will see it */
    }
}

int points_commit(struct points_log *log, struct err *err)
{
    if (!log->len)
        return 0;
    int rc = write_text(log, log->text, log->len, err);
    if (rc == 0)
        log->len = log->last.len = 0; /* last.plain stays */
    return rc;
}

struct points *points_all(struct points_log *log)
{
    return &log->all;
}

void points_take(struct points_log *log, struct points *out)
{
    points_free(out);
    *out = log->all;
    log->all.point = NULL;
    log->all.judged = NULL;
    log->all.count = 0;
    for (int i = 0; i < out->count; i++)
        out->point[i].sec.median = point_sec(point_time(out->point[i].sec.median));
}

int points_close(struct points_log *log, struct err *err)
{
    int rc = 0;

    if (!log)
        return 0;
    if (log->fd >= 0) {
        rc = points_commit(log, err);
        keep_stop(log);
        int why = atomic_load(&log->error);
        if (rc == 0 && why)
            rc = err_io(err, "%s: cannot keep what was written: %s", log->path, strerror(why));
        close(log->fd);
    }
    points_free(&log->all);
    free(log->text);
    free(log->path);
    free(log);
    return rc;
}
