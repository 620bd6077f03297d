/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes that can reach each other share: one file, mapped by all. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "verbs_fake.h"

enum { QP_BITS = 11, MR_BITS = 14 };
_Static_assert(1 << QP_BITS == FAKE_QPS && 1 << MR_BITS == FAKE_MRS, "numbers hold a slot");

double fake_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void make_mutex(pthread_mutex_t *m)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(m, &a);
    pthread_mutexattr_destroy(&a);
}

void fabric_lock(pthread_mutex_t *m)
{
    if (pthread_mutex_lock(m) == EOWNERDEAD)
        pthread_mutex_consistent(m);
}

static int open_file(void)
{
    const char *path = getenv("FAKE_VERBS_FABRIC"), *text = getenv("FAKE_VERBS");
    char beside[4200];
    int fd;

    if (!path && !text)
        return memfd_create("fake verbs", MFD_CLOEXEC); /* nobody else is there */
    snprintf(beside, sizeof(beside), "%s.fabric", path ? "" : text);
    fd = open(path ? path : beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        fprintf(stderr, "fake libibverbs: %s: %s\n", path ? path : beside, strerror(errno));
    return fd;
}

static struct fabric *map_fabric(void)
{
    struct fabric *f;
    int fd = open_file();

    if (fd < 0 || flock(fd, LOCK_EX) || ftruncate(fd, sizeof(*f)))
        abort();
    f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (f == MAP_FAILED)
        abort();
    if (!atomic_load(&f->ready)) {
        make_mutex(&f->lock);
        for (int i = 0; i < FAKE_QPS; i++)
            make_mutex(&f->qp[i].lock);
        atomic_store(&f->ready, 1);
    }
    flock(fd, LOCK_UN); /* the mapping would keep it */
    close(fd);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* peers write into this process */
    return f;
}

static struct fabric *mapped;

static void make_mapped(void)
{
    mapped = map_fabric();
}

struct fabric *fabric(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_mapped);
    return mapped;
}

static bool dead(int pid)
{
    return pid && kill(pid, 0) && errno == ESRCH;
}

struct shared_qp *fabric_qp(void)
{
    struct fabric *f = fabric();
    struct shared_qp *q = NULL;

    fabric_lock(&f->lock);
    for (int i = 0; i < FAKE_QPS && !q; i++)
        if (!atomic_load(&f->qp[i].number) || dead(atomic_load(&f->qp[i].pid)))
            q = &f->qp[i];
    if (q) { /* numbers are not soon used again, and never 0 or 1 */
        unsigned round = atomic_fetch_add(&q->generation, 1) + 1;
        atomic_store(&q->pid, getpid());
        atomic_store(&q->state, VERBS_QP_RESET);
        atomic_store(&q->number,
                     (round % (1 << (24 - QP_BITS)) << QP_BITS | (unsigned)(q - f->qp)) + 2);
        atomic_store(&q->posted, 0);
        atomic_store(&q->filled, 0);
        atomic_store(&q->polled, 0);
        q->rank = text_rank();
    }
    pthread_mutex_unlock(&f->lock);
    return q;
}

struct shared_qp *fabric_find(uint32_t number)
{
    struct shared_qp *q = &fabric()->qp[(number - 2) % FAKE_QPS];

    return number > 1 && atomic_load(&q->number) == number ? q : NULL;
}

struct shared_mr *fabric_mr(void)
{
    struct fabric *f = fabric();
    struct shared_mr *m = NULL;

    fabric_lock(&f->lock);
    for (int i = 0; i < FAKE_MRS && !m; i++)
        if (!atomic_load(&f->mr[i].key) || dead(atomic_load(&f->mr[i].pid)))
            m = &f->mr[i];
    if (m) {
        atomic_store(&m->pid, getpid());
        m->generation++;
        atomic_store(&m->key, (m->generation << MR_BITS | (unsigned)(m - f->mr)) + 1);
    }
    pthread_mutex_unlock(&f->lock);
    return m;
}

struct shared_mr *fabric_key(uint32_t key)
{
    struct shared_mr *m = &fabric()->mr[(key - 1) % FAKE_MRS];

    return key && atomic_load(&m->key) == key ? m : NULL;
}

bool fabric_active(struct fake_place p)
{
    struct fabric *f = fabric();

    return text_port(p)->state == VERBS_PORT_ACTIVE &&
           !atomic_load(&f->down[p.host][p.card][p.port - 1]) &&
           !atomic_load(&f->gone[p.host][p.card]);
}

static double reserve(struct fake_place p, bool receiving, size_t bytes, double now)
{
    _Atomic uint64_t *busy = &fabric()->busy[p.host][p.card][receiving];
    double rate = fault_rate(p);
    uint64_t until, from, begin = (uint64_t)(now * 1e9);

    if (rate <= 0)
        return now;
    from = atomic_load(busy);
    do
        until = (from > begin ? from : begin) + (uint64_t)((double)bytes / rate * 1e9);
    while (!atomic_compare_exchange_weak(busy, &from, until));
    return (double)until * 1e-9;
}

double fabric_reserve(struct fake_place from, struct fake_place to, size_t bytes)
{
    double now = fake_now(), out = reserve(from, false, bytes, now),
           in = reserve(to, true, bytes, now);

    return (out > in ? out : in) + text_of()->card[from.card].latency;
}
