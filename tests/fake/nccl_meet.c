/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl_fake.h"

/* What the 128 bytes of a unique id hold. */
struct ticket {
    int pid, fd;
    uint64_t secret;
};

int meet_make(struct nccl_id *id)
{
    struct ticket t = {.pid = getpid()};

    if (getrandom(&t.secret, sizeof(t.secret), 0) != sizeof(t.secret))
        return NCCL_SYSTEM;
    t.fd = memfd_create("fake-nccl", MFD_CLOEXEC);
    if (t.fd < 0)
        return NCCL_SYSTEM;
    memset(id, 0, sizeof(*id));
    memcpy(id, &t, sizeof(t));
    return NCCL_SUCCESS;
}

static int open_table(const struct nccl_id *id, size_t bytes)
{
    struct ticket t;
    char path[64];
    int fd;

    memcpy(&t, id, sizeof(t));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", t.pid, t.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int meet_open(struct ncclComm *c)
{
    size_t n = (size_t)c->ranks;
    int none = 0, fd;
    struct seat *seat;

    c->table_bytes = sizeof(struct table) + n * sizeof(struct seat) + n * n * sizeof(struct box);
    fd = open_table(&c->id, c->table_bytes);
    if (fd < 0)
        return NCCL_SYSTEM; /* the process that made the id is gone */
    c->table = mmap(NULL, c->table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->table == MAP_FAILED) {
        c->table = NULL;
        return NCCL_SYSTEM;
    }
    if (!atomic_compare_exchange_strong(&c->table->ranks, &none, c->ranks) && none != c->ranks) {
        log_warn("Bootstrap Root : mismatch in info from procs, nranks %d vs %d", none, c->ranks);
        return NCCL_INTERNAL;
    }
    seat = &c->table->seat[c->rank];
    if (atomic_load(&seat->pid)) {
        log_warn("Bootstrap Root : rank %d of %d ranks has already checked in", c->rank, c->ranks);
        return NCCL_INTERNAL;
    }
    seat->card = c->self;
    atomic_store(&seat->pid, getpid());
    meet_ring(c);
    return NCCL_SUCCESS;
}

/* Several GPUs of one process wait for each other in the real NCCL too, but in its own threads. */
static bool is_crowded(struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank && atomic_load(&c->table->seat[r].pid) == getpid()) {
            log_warn("stand-in : ranks %d and %d are of one process (-g 2, -t 2): start a process "
                     "for each GPU",
                     c->rank, r);
            meet_fail(c, NCCL_INVALID_USAGE);
            return true;
        }
    return false;
}

static bool all_sit(struct ncclComm *c, void *arg)
{
    (void)arg;
    if (is_crowded(c))
        return false;
    for (int r = 0; r < c->ranks; r++)
        if (!atomic_load(&c->table->seat[r].pid))
            return false;
    return true;
}

int meet_all(struct ncclComm *c)
{
    struct ticket t;

    if (meet_wait(c, all_sit, NULL, true))
        return atomic_load(&c->async) ? atomic_load(&c->async) : NCCL_INTERNAL;
    c->pidfd = malloc((size_t)c->ranks * sizeof(*c->pidfd));
    for (int r = 0; c->pidfd && r < c->ranks; r++)
        c->pidfd[r] = (int)syscall(SYS_pidfd_open, atomic_load(&c->table->seat[r].pid), 0);
    if (meet_barrier(c, true))
        return atomic_load(&c->async) ? atomic_load(&c->async) : NCCL_INTERNAL;
    memcpy(&t, &c->id, sizeof(t));
    if (t.pid == getpid())
        close(t.fd); /* everyone has it mapped */
    return NCCL_SUCCESS;
}

void meet_close(struct ncclComm *c)
{
    for (int r = 0; c->pidfd && r < c->ranks; r++)
        if (c->pidfd[r] >= 0)
            close(c->pidfd[r]);
    free(c->pidfd);
    c->pidfd = NULL;
    if (c->table) {
        atomic_store(&c->table->seat[c->rank].left, 1);
        meet_ring(c);
        munmap(c->table, c->table_bytes);
    }
    c->table = NULL;
}

void meet_ring(struct ncclComm *c)
{
    atomic_fetch_add(&c->table->bell, 1);
    syscall(SYS_futex, &c->table->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void meet_fail(struct ncclComm *c, int error)
{
    atomic_store(&c->async, error);
    if (c->table) {
        atomic_store(&c->table->seat[c->rank].error, error);
        meet_ring(c);
    }
}

static bool all_hurt(const struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank && !atomic_load(&c->table->seat[r].hurt))
            return false;
    return true;
}

static void nap(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

void meet_fail_late(struct ncclComm *c, int error, double later)
{
    if (later > 0) {
        atomic_store(&c->table->seat[c->rank].error, error);
        meet_ring(c);
        while (!all_hurt(c) && !atomic_load(&c->abort))
            nap(1e-3);
        nap(later);
    }
    meet_fail(c, error);
}

static bool gone(struct ncclComm *c, int r)
{
    struct seat *seat = &c->table->seat[r];
    int pid = atomic_load(&seat->pid);

    if (!pid || r == c->rank || atomic_load(&seat->left))
        return false;
    struct pollfd p = {.fd = c->pidfd ? c->pidfd[r] : -1, .events = POLLIN};
    /* The first is also true of a process that nobody has reaped yet. */
    bool dead = p.fd >= 0 ? poll(&p, 1, 0) == 1 : kill(pid, 0) && errno == ESRCH;
    return dead && !atomic_load(&seat->left); /* it may have left since, and then ended */
}

/* A rank that failed or died, -1: none. */
static int fallen(struct ncclComm *c, bool thoroughly)
{
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank && (atomic_load(&c->table->seat[r].error) || (thoroughly && gone(c, r))))
            return r;
    return -1;
}

/* A peer's failure makes this rank a victim; its own failure stays what it is. */
static void fall_with(struct ncclComm *c, int r)
{
    int fine = NCCL_SUCCESS, starting = NCCL_IN_PROGRESS;

    if (atomic_compare_exchange_strong(&c->async, &fine, NCCL_REMOTE) ||
        atomic_compare_exchange_strong(&c->async, &starting, NCCL_REMOTE))
        log_warn("Connection closed by remote peer, rank %d", r);
    atomic_store(&c->table->seat[c->rank].hurt, 1);
    meet_ring(c);
}

int meet_wait(struct ncclComm *c, bool (*ready)(struct ncclComm *, void *), void *arg,
              bool impatient)
{
    const struct timespec slice = {0, 100000000};
    bool thoroughly = false;

    for (;;) {
        unsigned heard = atomic_load(&c->table->bell);
        /* Looked for first: what a peer did before it fell is there then, and may be enough. */
        int r = fallen(c, thoroughly), state;

        if (ready(c, arg))
            return 0;
        if (r >= 0)
            fall_with(c, r);
        state = atomic_load(&c->async);
        if (atomic_load(&c->abort) ||
            (impatient && state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS))
            return -1;
        thoroughly = syscall(SYS_futex, &c->table->bell, FUTEX_WAIT, heard, &slice, NULL, 0) &&
                     errno == ETIMEDOUT;
    }
}

static bool all_here(struct ncclComm *c, void *arg)
{
    (void)arg;
    for (int r = 0; r < c->ranks; r++)
        if ((int)(atomic_load(&c->table->seat[r].stage) - c->stage) < 0)
            return false;
    return true;
}

int meet_barrier(struct ncclComm *c, bool impatient)
{
    atomic_store(&c->table->seat[c->rank].stage, ++c->stage);
    meet_ring(c);
    return meet_wait(c, all_here, NULL, impatient);
}

struct box *meet_box(struct ncclComm *c, int from, int to)
{
    struct box *boxes = (struct box *)&c->table->seat[c->ranks];

    return &boxes[from * c->ranks + to];
}

int peek(struct peek *p, const struct place *from, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), in_page = from->offset % page;
    int fd = from->file[0] == '/' && strchr(from->file + 1, '/')
                 ? open(from->file, O_RDONLY | O_CLOEXEC)
                 : shm_open(from->file, O_RDONLY | O_CLOEXEC, 0);
    struct stat st;

    *p = (struct peek){.bytes = bytes + in_page};
    if (fd < 0)
        return -1;
    /* A map beyond the end of the file would kill the reader. */
    if (fstat(fd, &st) || (uint64_t)st.st_size < from->offset + bytes) {
        close(fd);
        return -1;
    }
    p->map = mmap(NULL, p->bytes, PROT_READ, MAP_SHARED, fd, (off_t)(from->offset - in_page));
    close(fd);
    if (p->map == MAP_FAILED) {
        p->map = NULL;
        return -1;
    }
    p->at = (unsigned char *)p->map + in_page;
    return 0;
}

void peek_end(struct peek *p)
{
    if (p->map)
        munmap(p->map, p->bytes);
    p->map = NULL;
}
