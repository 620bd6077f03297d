/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/plugin/ring.h"

#define PLACE(key) ((uint64_t)(key) >> RING_SEQ_BITS & ((1u << RING_PLACE_BITS) - 1))
#define SEQ_MASK ((1ull << RING_SEQ_BITS) - 1)
#define BUSY 0x8000u
#define PINS 0xffu
#define CHANNEL 0x100u /* a started channel; counts up to 127 in CHANNELS */
#define CHANNELS 0x7f00u
#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define SWAP(p, o, n, order) __atomic_compare_exchange_n(p, o, n, false, order, __ATOMIC_RELAXED)

uint64_t ring_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- records --- */
struct record *ring_begin(struct ring *r, ring_key *key)
{
    uint64_t number = ADD(&r->head->next, 1) + 1, place = (number - 1) % r->capacity;
    struct record *rec = &r->record[place];
    uint64_t word = LOAD(&rec->word);

    *key = place << RING_SEQ_BITS | (number & SEQ_MASK);
    /* A writer that was overtaken by a full turn of the ring must not overwrite the newer
     * record. */
    if (word & (BUSY | PINS) || word >> 16 > number ||
        !SWAP(&rec->word, &word, number << 16 | BUSY, __ATOMIC_ACQUIRE)) {
        ADD(&r->head->dropped, 1);
        return NULL;
    }
    /* A concurrent reader of the file must not take new fields for those of the old record. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memset((char *)rec + sizeof(rec->word), 0, sizeof(*rec) - sizeof(rec->word));
    return rec;
}

void ring_commit(struct ring *r, struct record *rec, ring_key key)
{
    __atomic_store_n(&rec->word, LOAD(&rec->word) & ~(uint64_t)BUSY, __ATOMIC_RELEASE);
    ring_touch(r, key);
}

struct record *ring_pin(struct ring *r, ring_key key)
{
    uint64_t place = PLACE(key), word;
    struct record *rec = &r->record[place];

    if (place >= r->capacity)
        return NULL;
    word = LOAD(&rec->word);
    do
        if ((word >> 16 & SEQ_MASK) != (key & SEQ_MASK) || word & BUSY || (word & PINS) == PINS)
            return NULL;
    while (!SWAP(&rec->word, &word, word + 1, __ATOMIC_ACQUIRE));
    return rec;
}

/* A second stop of an event must not make the number of pins negative. */
void ring_unpin(struct ring *r, struct record *rec, ring_key key)
{
    uint64_t word = LOAD(&rec->word);

    ring_touch(r, key);
    while (word & PINS && !SWAP(&rec->word, &word, word - 1, __ATOMIC_RELEASE))
        ;
}

/* One atomic operation per channel instead of two: the count is in the word beside the pins, and
 * the field is a copy of it. */
struct record *ring_pin_channel(struct ring *r, ring_key key, unsigned *started)
{
    uint64_t place = PLACE(key), word, next;
    struct record *rec = &r->record[place];

    if (place >= r->capacity)
        return NULL;
    word = LOAD(&rec->word);
    do {
        if ((word >> 16 & SEQ_MASK) != (key & SEQ_MASK) || word & BUSY || (word & PINS) == PINS)
            return NULL;
        next = word + 1 + ((word & CHANNELS) < CHANNELS ? CHANNEL : 0);
    } while (!SWAP(&rec->word, &word, next, __ATOMIC_ACQUIRE));
    if ((word & CHANNELS) < CHANNELS)
        STORE(&rec->channels_started, (uint16_t)((next & CHANNELS) / CHANNEL));
    else
        ADD(&rec->channels_started, 1);
    *started = LOAD(&rec->channels_started);
    return rec;
}

unsigned ring_stop_channel(struct record *rec)
{
    uint16_t started = (uint16_t)((LOAD(&rec->word) & CHANNELS) / CHANNEL);

    /* If two threads start channels, the slower one may have stored the smaller copy. */
    if (LOAD(&rec->channels_started) < started)
        STORE(&rec->channels_started, started);
    return ADD(&rec->channels_stopped, 1) + 1u;
}

struct record *ring_pinned(const struct ring *r, ring_key key)
{
    struct record *rec = &r->record[PLACE(key)];
    uint64_t word = PLACE(key) < r->capacity ? LOAD(&rec->word) : 0;

    return word & PINS && (word >> 16 & SEQ_MASK) == (key & SEQ_MASK) ? rec : NULL;
}

ring_key ring_key_of(const struct ring *r, uint64_t number)
{
    return number ? (number - 1) % r->capacity << RING_SEQ_BITS | (number & SEQ_MASK) : 0;
}

/* --- words of NCCL --- */
static struct {
    pthread_mutex_t lock; /* for new words only */
    uint64_t known[64];   /* address << 8 | index: address of the word in NCCL */
    uint8_t size[RECORD_NAMES];
} words = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ncclTypeSize() of src/include/collectives.h, NCCL 2.30. */
static unsigned size_of(const char *type)
{
    static const struct {
        const char *name;
        unsigned size;
    } sizes[] = {{"ncclInt8", 1},    {"ncclUint8", 1},      {"ncclInt32", 4},
                 {"ncclUint32", 4},  {"ncclInt64", 8},      {"ncclUint64", 8},
                 {"ncclFloat16", 2}, {"ncclBfloat16", 2},   {"ncclFloat32", 4},
                 {"ncclFloat64", 8}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (!strcmp(sizes[i].name, type))
            return sizes[i].size;
    return 0;
}

static bool same_word(const struct record_head *h, unsigned i, const char *word)
{
    return !strncmp(h->name[i], word, RECORD_NAME_LEN - 1);
}

static uint8_t new_name(struct record_head *h, const char *word)
{
    unsigned i = 1;

    pthread_mutex_lock(&words.lock);
    while (i < h->names && !same_word(h, i, word))
        i++;
    if (i == h->names && i < RECORD_NAMES) {
        snprintf(h->name[i], RECORD_NAME_LEN, "%s", word);
        words.size[i] = (uint8_t)size_of(word);
        __atomic_store_n(&h->names, i + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&words.lock);
    return i < RECORD_NAMES ? (uint8_t)i : 0;
}

uint8_t ring_name(struct ring *r, const char *word)
{
    uint64_t at = (uintptr_t)word, *known = &words.known[(at >> 3 ^ at >> 9) % 64];
    uint64_t entry = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    uint8_t i = (uint8_t)entry;

    if (!word || !*word)
        return 0;
    if (entry >> 8 == at << 8 >> 8 && i && i < RECORD_NAMES && same_word(r->head, i, word))
        return i;
    i = new_name(r->head, word);
    __atomic_store_n(known, at << 8 | i, __ATOMIC_RELEASE);
    return i;
}

unsigned ring_name_size(uint8_t name)
{
    return name < RECORD_NAMES ? words.size[name] : 0;
}

unsigned ring_comm(struct ring *r)
{
    uint32_t n = LOAD(&r->head->comms);

    do
        if (n >= r->head->comm_max)
            return RECORD_NO_COMM;
    while (!SWAP(&r->head->comms, &n, n + 1, __ATOMIC_RELAXED));
    return n;
}

/* --- the file --- */
static int make_dir(const char *dir)
{
    char path[400];

    if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0777) && errno != EEXIST)
            return -1;
        *at = '/';
    }
    return mkdir(path, 0750) && errno != EEXIST ? -1 : 0;
}

/* Choose an unused name, because pids are reused, and containers share them. */
static int make_file(struct ring *r, const char *dir, const char *host)
{
    int fd = -1;

    for (int i = 1; fd < 0 && i < 1000; i++) {
        char more[8] = "";

        if (i > 1)
            snprintf(more, sizeof(more), "-%d", i);
        snprintf(r->path, sizeof(r->path), "%s/%s-%d%s" RECORD_SUFFIX, dir, host, (int)getpid(),
                 more);
        fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Allocate all blocks now, so that a disk that is full later costs nothing that was recorded. */
static int allocate(int fd, size_t bytes)
{
    static const char nothing[65536];
    struct rlimit limit;

    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < bytes) {
        errno = EFBIG;
        return -1;
    }
    if (!fallocate(fd, 0, 0, (off_t)bytes))
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < sizeof(nothing) ? bytes - done : sizeof(nothing);
        ssize_t n = pwrite(fd, nothing, part, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

static uint64_t wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The node that Kubernetes names (spec.nodeName by the downward API); `pod` if it names none.  The
 * file keeps the pod's name, because pods of one node have equal process numbers. */
static const char *node_or(const char *pod)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const char *node = getenv("NODE_NAME");

    return node && *node && *node != '-' && !node[strspn(node, plain)] ? node : pod;
}

static void fill_head(struct ring *r, const struct ring_options *o, const char *host)
{
    struct record_head *h = r->head;

    h->order = RECORD_ORDER;
    h->version = RECORD_VERSION;
    h->head_bytes = sizeof(*h);
    h->comm_bytes = sizeof(struct record_comm);
    h->record_bytes = sizeof(struct record);
    h->comm_max = RECORD_COMMS;
    h->comm_at = RECORD_HEAD_BYTES;
    h->ring_at = h->comm_at + RECORD_COMMS * sizeof(struct record_comm);
    h->capacity = r->capacity;
    h->pid = (uint32_t)getpid();
    h->abi = o->abi;
    h->nccl_version = o->nccl_version;
    h->events = o->events;
    h->mono_ns = ring_now();
    h->wall_ns = wall_now();
    h->names = 1;
    h->job_rank = o->job_rank;
    snprintf(h->host, sizeof(h->host), "%s", host);
    snprintf(h->job, sizeof(h->job), "%s", o->job);
    r->comm = (void *)((char *)h + h->comm_at);
    r->record = (void *)((char *)h + h->ring_at);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(h->magic, RECORD_MAGIC, sizeof(h->magic));
}

/* --- the thread that writes the file --- */
enum {
    TICK_NS = 100000000,
    TICK_BYTES = 2 << 20,
    GIVE_UP_NS = 1000000000,
    BATCH = 16 * RING_GROUP, /* records a write */
    TRIES = 64
};

static struct writer {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    struct ring *ring;
    int fd;
    bool ready, apart;        /* apart: its descriptors are its own */
    int error;                /* errno of the last write; 0: it went well */
    unsigned asked, finished; /* ring_flush(): requests, and those that are done */
    uint64_t at;              /* group at which the pass goes on */
    struct record_head head;  /* at the beginning of the pass */
    struct record_head wrote; /* in the file */
    struct record_comm comm[RECORD_COMMS];
    struct record batch[BATCH];
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits go by the monotonic clock: one that is set must not let the writer sleep on. */
static void make_conditions(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&writer.wake, &attr);
    pthread_cond_init(&writer.done, &attr);
    pthread_condattr_destroy(&attr);
}

static struct timespec after(uint64_t ns)
{
    uint64_t at = ring_now() + ns;

    return (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
}

static int write_at(const void *data, size_t bytes, uint64_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(writer.fd, (const char *)data + done, bytes - done, (off_t)(at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            writer.error = n < 0 ? errno : ENOSPC;
            return -1;
        }
        done += (size_t)n;
    }
    return 0;
}

/* Copy what other threads may change meanwhile, word by word.  The copy is used only where a word
 * says that it is whole, or where each word is good by itself: no race for ThreadSanitizer, which
 * knows no such protocol. */
__attribute__((no_sanitize("thread"))) static void copy_words(void *to, const void *from,
                                                              size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        ((uint64_t *)to)[i] = LOAD((const uint64_t *)from + i);
}

/* Copy one record as it was at one moment.  One that is filled meanwhile is tried again, and is
 * marked as not complete in the end. */
static void copy_record(struct record *to, const struct record *from)
{
    uint64_t before = 0, after = BUSY;

    for (int i = 0; i < TRIES && (before & BUSY || (before ^ after) >> 15); i++) {
        before = __atomic_load_n(&from->word, __ATOMIC_ACQUIRE);
        copy_words(to, from, sizeof(*to));
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = LOAD(&from->word);
    }
    to->word = (before ^ after) >> 15 ? after | BUSY : before;
}

static uint64_t groups_of(const struct ring *r)
{
    return (r->capacity + RING_GROUP - 1) / RING_GROUP;
}

/* Write changed groups from `at` on that lie side by side, at most a batch.  Returns the bytes
 * written, 0: none is left, -1: failed. */
static long write_batch(struct ring *r, uint64_t *at)
{
    uint64_t groups = groups_of(r), first, place, n = 0;

    while (*at < groups && !LOAD(&r->changed[*at]))
        ++*at;
    first = *at;
    for (; *at < groups && n + RING_GROUP <= BATCH &&
           __atomic_exchange_n(&r->changed[*at], 0, __ATOMIC_ACQUIRE);
         ++*at)
        for (int i = 0; i < RING_GROUP; i++) {
            place = *at * RING_GROUP + (uint64_t)i;
            if (place < r->capacity)
                copy_record(&writer.batch[n++], &r->record[place]);
        }
    if (n && write_at(writer.batch, n * sizeof(struct record),
                      writer.head.ring_at + first * RING_GROUP * sizeof(struct record))) {
        for (uint64_t g = first; g < *at; g++)
            STORE(&r->changed[g], 1);
        *at = first;
        return -1;
    }
    return (long)(n * sizeof(struct record));
}

/* The table of communicators and then the header, unless the file has them. */
static int write_tables(const struct ring *r)
{
    static struct record_comm comm[RECORD_COMMS];
    const struct record_head *h = &writer.head;
    size_t bytes = (h->comms < RECORD_COMMS ? h->comms : RECORD_COMMS) * sizeof(*comm);

    copy_words(comm, r->comm, bytes);
    if (memcmp(writer.comm, comm, bytes)) {
        memcpy(writer.comm, comm, bytes);
        if (write_at(comm, bytes, h->comm_at))
            return -1;
    }
    if (memcmp(&writer.wrote, h, sizeof(*h)) && write_at(h, sizeof(*h), 0))
        return -1;
    writer.wrote = *h;
    return 0;
}

/* A file that somebody cut is written anew. */
static void look_at_size(struct ring *r)
{
    struct stat st;

    if (fstat(writer.fd, &st) || (uint64_t)st.st_size >= r->bytes)
        return;
    for (uint64_t g = 0; g < groups_of(r); g++)
        STORE(&r->changed[g], 1);
    memset(writer.comm, 0, sizeof(writer.comm));
    memset(&writer.wrote, 0, sizeof(writer.wrote));
    (void)!ftruncate(writer.fd, (off_t)r->bytes);
}

/* Write at most `most` bytes of a pass.  What fails is tried again in the next pass. */
static void write_some(struct ring *r, long most)
{
    long n = 0;

    if (!writer.at) {
        look_at_size(r);
        copy_words(&writer.head, r->head, sizeof(writer.head));
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
    while (most > 0 && (n = write_batch(r, &writer.at)) > 0)
        most -= n;
    if (n < 0 || writer.at >= groups_of(r)) {
        writer.at = 0;
        if (n >= 0 && !write_tables(r))
            writer.error = 0;
    }
}

static void close_all(unsigned from, unsigned to)
{
    struct rlimit most;

#ifdef SYS_close_range /* Linux 5.9 */
    if (!syscall(SYS_close_range, from, to, 0))
        return;
#endif
    if (!getrlimit(RLIMIT_NOFILE, &most) && to > most.rlim_cur)
        to = (unsigned)most.rlim_cur;
    for (unsigned fd = from; fd <= to; fd++)
        close((int)fd);
}

/* Descriptors of its own: a job that closes all of its files and opens others must not find its
 * file overwritten.  The copies of the job's descriptors are closed at once. */
static bool separate(void)
{
    const unsigned own = (unsigned)writer.fd;

    if (unshare(CLONE_FILES))
        return false;
    if (own)
        close_all(0, own - 1);
    close_all(own + 1, ~0u);
    return true;
}

static void *write_ever(void *none)
{
    struct timespec until;

    (void)none;
    pthread_mutex_lock(&writer.lock);
    writer.apart = separate();
    writer.ready = true;
    pthread_cond_broadcast(&writer.done);
    for (;;) {
        until = after(TICK_NS);
        if (writer.asked == writer.finished)
            pthread_cond_timedwait(&writer.wake, &writer.lock, &until);
        unsigned asked = writer.asked;
        bool all = asked != writer.finished;
        pthread_mutex_unlock(&writer.lock);
        if (all) /* the end of a pass under way, and a whole one */
            write_some(writer.ring, LONG_MAX);
        write_some(writer.ring, all ? LONG_MAX : TICK_BYTES);
        pthread_mutex_lock(&writer.lock);
        writer.finished = asked;
        pthread_cond_broadcast(&writer.done);
    }
    return NULL;
}

/* Signals are for the job's threads. */
static int start_writer(struct ring *r, int fd)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;

    make_conditions();
    writer.ring = r;
    writer.fd = fd;
    writer.ready = false;
    writer.at = 0;
    memset(&writer.wrote, 0, sizeof(writer.wrote));
    memset(writer.comm, 0, sizeof(writer.comm));
    write_some(r, LONG_MAX);
    if (!writer.wrote.order)
        return -1;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    errno = pthread_create(&thread, &attr, write_ever, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (errno)
        return -1;
    pthread_setname_np(thread, "railgauge-nccl");
    pthread_mutex_lock(&writer.lock);
    while (!writer.ready)
        pthread_cond_wait(&writer.done, &writer.lock);
    pthread_mutex_unlock(&writer.lock);
    if (writer.apart)
        close(fd);
    return 0;
}

int ring_flush(void)
{
    struct timespec until = after(GIVE_UP_NS);
    int why = 0;

    pthread_mutex_lock(&writer.lock);
    unsigned mine = ++writer.asked;
    pthread_cond_signal(&writer.wake);
    while ((int)(writer.finished - mine) < 0)
        if ((why = pthread_cond_timedwait(&writer.done, &writer.lock, &until)) != 0)
            break;
    why = why ? why : writer.error;
    pthread_mutex_unlock(&writer.lock);
    return why;
}

/* Memory of the records and of `changed`, without a file behind it. */
static int map_memory(struct ring *r, uint64_t bytes)
{
    const size_t before = RECORD_HEAD_BYTES + RECORD_COMMS * sizeof(struct record_comm);
    const uint64_t most = 1u << RING_PLACE_BITS;

    r->capacity = bytes > before ? (bytes - before) / sizeof(struct record) : 0;
    r->capacity = r->capacity < 64 ? 64 : r->capacity < most ? r->capacity : most;
    r->bytes = before + r->capacity * sizeof(struct record);
    r->head = mmap(NULL, r->bytes + groups_of(r), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (r->head == MAP_FAILED)
        return -1;
    r->changed = (uint8_t *)r->head + r->bytes;
    return 0;
}

static int open_memory(struct ring *r, const struct ring_options *o, const char *host, int fd)
{
    if (map_memory(r, o->bytes))
        return -1;
    fill_head(r, o, node_or(host));
    if (!allocate(fd, r->bytes) && !start_writer(r, fd))
        return 0;
    int why = errno;
    munmap(r->head, r->bytes + groups_of(r));
    errno = why;
    return -1;
}

int ring_open(struct ring *r, const struct ring_options *o, char why[RING_WHY])
{
    char host[64] = "";
    int fd, rc;

    memset(r, 0, sizeof(*r));
    memset(words.known, 0, sizeof(words.known));
    if (gethostname(host, sizeof(host) - 1) || !*host || strchr(host, '/'))
        snprintf(host, sizeof(host), "host");
    if (make_dir(o->dir)) {
        snprintf(why, RING_WHY, "%.150s cannot be made: %s", o->dir, strerror(errno));
        return -1;
    }
    fd = make_file(r, o->dir, host);
    if (fd < 0) {
        snprintf(why, RING_WHY, "%.150s cannot be made: %s", r->path, strerror(errno));
        return -1;
    }
    rc = open_memory(r, o, host, fd);
    if (rc) {
        snprintf(why, RING_WHY, "%.150s: no room for %zu bytes: %s", r->path, r->bytes,
                 strerror(errno));
        unlink(r->path);
        close(fd);
        memset(r, 0, sizeof(*r));
    }
    return rc;
}

void ring_forget(struct ring *r)
{
    if (r->head) {
        munmap(r->head, r->bytes + groups_of(r));
        if (!writer.apart)
            close(writer.fd);
    }
    memset(r, 0, sizeof(*r));
    memset(&writer, 0, sizeof(writer)); /* the thread is not in this process */
    pthread_mutex_init(&writer.lock, NULL);
    make_conditions();
    pthread_mutex_init(&words.lock, NULL);
}
