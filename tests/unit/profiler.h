/* profiler.h - NCCL's side of the profiler interface for tests: librailgauge-nccl.so is loaded and called
 * as the seven versions of NCCL's interface call it, and its file is read back. */
#ifndef TEST_PROFILER_H
#define TEST_PROFILER_H

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/plugin/profiler_abi.h"
#include "record/plugin/record.h"

#define SURE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #what);                           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static struct plugin {
    int abi, mask;
    prof_start *start;
    prof_stop *stop;
    prof_record *record;
    prof_finalize *finalize;
    void *table;
} plugin;

static char folder[64]; /* of this process's files */

/* NCCL's logger: what is no warning is said nowhere. */
static inline void logger(int level, unsigned long flags, const char *file, int line,
                          const char *fmt, ...)
{
    va_list args;

    (void)flags, (void)file, (void)line;
    va_start(args, fmt);
    if (level == 2)
        vfprintf(stderr, fmt, args);
    va_end(args);
}

static inline void plugin_load(int abi)
{
    const char *build = getenv("RG_BUILD");
    char path[512], name[32];
    void *lib;

    snprintf(path, sizeof(path), "%s/librailgauge-nccl.so", build ? build : "build");
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fprintf(stderr, "# %s\n", dlerror());
    SURE(lib);
    snprintf(name, sizeof(name), "ncclProfiler_v%d", abi);
    plugin.abi = abi;
    plugin.table = dlsym(lib, name);
    SURE(plugin.table);
#define TAKE(v)                                                                                    \
    (plugin.start = (v)->start, plugin.stop = (v)->stop, plugin.record = (v)->record,              \
     plugin.finalize = (v)->finalize)
    if (abi < 4)
        TAKE((struct prof_v1 *)plugin.table);
    else if (abi == 4)
        TAKE((struct prof_v4 *)plugin.table);
    else
        TAKE((struct prof_v5 *)plugin.table);
}

static inline void *comm_begin(uint64_t hash, int rank, int ranks, const char *name)
{
    void *context = (void *)1;
    int rc;

    if (plugin.abi < 4)
        rc = ((struct prof_v1 *)plugin.table)->init(&context, &plugin.mask);
    else if (plugin.abi == 4)
        rc = ((struct prof_v4 *)plugin.table)
                 ->init(&context, &plugin.mask, name, hash, 2, ranks, rank, logger);
    else
        rc = ((struct prof_v5 *)plugin.table)
                 ->init(&context, hash, &plugin.mask, name, 2, ranks, rank, logger);
    SURE(rc == 0);
    return context;
}

static inline void set_type(struct prof_descr *d, uint64_t type)
{
    memset(d, 0xa5, sizeof(*d)); /* what this version does not have, nobody may read */
    if (plugin.abi < 5)
        d->type8 = (uint8_t)type;
    else
        d->type64 = type;
    d->parent = NULL;
    d->rank = 0;
}

static inline void *event(void *context, struct prof_descr *d)
{
    void *handle = (void *)1;

    SURE(plugin.start(context, &handle, d) == 0);
    return handle;
}

static inline void *group_begin(void *context)
{
    struct prof_descr d;

    set_type(&d, PROF_GROUP);
    return event(context, &d);
}

struct call {
    const char *func, *dtype, *algo, *proto, *name;
    int func1, dtype1, algo1, proto1; /* their numbers in v1 */
    uint64_t hash, seq, count, tag;
    int root, channels, rank;
};
#define ALL_REDUCE                                                                                 \
    (struct call)                                                                                  \
    {                                                                                              \
        "AllReduce", "ncclFloat32", "RING", "SIMPLE", "dp", 4, 7, 1, 2, 0xabcd, 1, 1000, 0, 0, 4,  \
            3                                                                                      \
    }

static inline void *coll_begin(void *context, void *parent, void *group, const struct call *k)
{
    struct prof_descr d;

    set_type(&d, PROF_COLL);
    d.parent = parent;
    d.rank = k->rank;
#define NUMBERS(c)                                                                                 \
    ((c).seq = k->seq, (c).count = k->count, (c).root = k->root,                                   \
     (c).channels = (uint8_t)k->channels, (c).warps = 16)
#define WORDS(c)                                                                                   \
    ((c).func = k->func, (c).dtype = k->dtype, (c).algo = k->algo, (c).proto = k->proto)
#define COMM(c) ((c).name = k->name, (c).hash = k->hash)
    switch (plugin.abi) {
    case 1:
        NUMBERS(d.coll_v1), COMM(d.coll_v1);
        d.coll_v1.func = (uint8_t)k->func1;
        d.coll_v1.dtype = (uint8_t)k->dtype1;
        d.coll_v1.algo = (uint8_t)k->algo1;
        d.coll_v1.proto = (uint8_t)k->proto1;
        break;
    case 2:
        NUMBERS(d.coll_v2), WORDS(d.coll_v2), COMM(d.coll_v2);
        break;
    case 3:
        NUMBERS(d.coll_v3), WORDS(d.coll_v3), COMM(d.coll_v3);
        break;
    default:
        NUMBERS(d.coll_v4), WORDS(d.coll_v4);
        if (plugin.abi >= 5)
            d.coll_v4.group = group;
        if (plugin.abi >= 7)
            d.coll_v4.tag = k->tag, d.coll_v4.symmetric = false;
    }
    return event(context, &d);
}

static inline void *p2p_begin(void *context, void *parent, const struct call *k, int peer)
{
    struct prof_descr d;

    set_type(&d, PROF_P2P);
    d.parent = parent;
    d.rank = k->rank;
    if (plugin.abi == 1) {
        COMM(d.p2p_v1);
        d.p2p_v1.func = (uint8_t)k->func1;
        d.p2p_v1.dtype = (uint8_t)k->dtype1;
        d.p2p_v1.count = k->count;
        d.p2p_v1.peer = peer;
    } else if (plugin.abi < 4) {
        COMM(d.p2p_v2);
        d.p2p_v2.func = k->func;
        d.p2p_v2.dtype = k->dtype;
        d.p2p_v2.count = k->count;
        d.p2p_v2.peer = peer;
    } else {
        d.p2p_v4.func = k->func;
        d.p2p_v4.dtype = k->dtype;
        d.p2p_v4.count = k->count;
        d.p2p_v4.peer = peer;
        d.p2p_v4.channels = (uint8_t)k->channels;
        d.p2p_v4.group = NULL;
        if (plugin.abi >= 7)
            d.p2p_v4.tag = k->tag;
    }
    return event(context, &d);
}

static inline void *channel_begin(void *context, void *parent, int channel, uint64_t timer)
{
    struct prof_descr d;

    set_type(&d, PROF_KERNEL_CH);
    d.parent = parent;
    d.kernel_ch.channel = (uint8_t)channel;
    if (plugin.abi >= 4)
        d.kernel_ch.timer = timer;
    return event(context, &d);
}

static inline void channel_end(void *handle, uint64_t timer)
{
    union prof_state_args a = {.timer = timer};

    if (!handle)
        return;
    if (plugin.abi >= 4)
        plugin.record(handle, PROF_KERNEL_CH_STOP, &a);
    plugin.stop(handle);
}

static inline void *proxy_begin(void *context, void *parent, int pid, int channel, int peer,
                                int send)
{
    struct prof_descr d;

    set_type(&d, PROF_PROXY_OP);
    d.parent = parent;
    d.rank = 3;
    d.proxy_op = (struct prof_proxy_op){pid, (uint8_t)channel, peer, 8, 1 << 20, send};
    return event(context, &d);
}

static inline void *step_begin(void *context, void *op, int step)
{
    struct prof_descr d;

    set_type(&d, PROF_PROXY_STEP);
    d.parent = op;
    d.proxy_step = step;
    return event(context, &d);
}

/* --- files --- */
static inline char *file_read(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;

    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    text = malloc(*bytes + 1);
    if (fread(text, 1, *bytes, f) != *bytes)
        *bytes = 0;
    fclose(f);
    return text;
}

/* How many files there are; *path: the last one seen that has `word` in its name. */
static inline int file_find(const char *dir, const char *word, char path[512])
{
    DIR *d = opendir(dir);
    int n = 0;

    *path = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && strstr(e->d_name, word)) {
            snprintf(path, 512, "%s/%s", dir, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

/* How often the thread that writes the file of this process has slept; LONG_MAX: there is none. */
static inline long writer_sleeps(void)
{
    char path[300], line[128];
    long n = LONG_MAX;
    DIR *d = opendir("/proc/self/task");

    SURE(d);
    for (struct dirent *e; n == LONG_MAX && (e = readdir(d));) {
        FILE *f;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
        if (*e->d_name == '.' || !(f = fopen(path, "re")))
            continue;
        if (fgets(line, sizeof(line), f) && !strcmp(line, "Name:\trailgauge-nccl\n"))
            while (fgets(line, sizeof(line), f) &&
                   sscanf(line, "voluntary_ctxt_switches: %ld", &n) != 1)
                ;
        fclose(f);
    }
    closedir(d);
    return n;
}

/* What is in a file once nothing has been added in three turns of the thread that writes it: a busy
 * machine may keep it from running for longer than any time that is waited here. */
static inline char *file_settled(const char *path, size_t *bytes)
{
    char *text = file_read(path, bytes), *before;
    size_t was;

    do {
        long sleeps = writer_sleeps();

        do
            nanosleep(&(struct timespec){0, 50000000}, NULL);
        while (writer_sleeps() - 3 < sleeps && sleeps < LONG_MAX);
        before = text;
        was = *bytes;
        text = file_read(path, bytes);
        SURE(before && text);
    } while (was != *bytes || memcmp(before, text, was));
    return text;
}

/* The file of a process; it is whole in its head. */
static inline struct record_head *file_of(int pid)
{
    char word[32], path[512];
    size_t bytes = 0;
    char *text;

    snprintf(word, sizeof(word), "-%d" RECORD_SUFFIX, pid);
    SURE(file_find(folder, word, path) == 1);
    text = pid == getpid() ? file_settled(path, &bytes) : file_read(path, &bytes);
    SURE(text);
    if (record_wrong(text, bytes))
        fprintf(stderr, "# %s: %s\n", path, record_wrong(text, bytes));
    SURE(!record_wrong(text, bytes));
    return (struct record_head *)text;
}

static inline const struct record *whole_record(const struct record_head *h, uint64_t place)
{
    const struct record *r = (const struct record *)((const char *)h + h->ring_at) + place;

    return record_whole(r, place, h->capacity) ? r : NULL;
}

/* --- a child with an environment of its own; 0: it found nothing wrong --- */
static inline pid_t child_begin(void (*body)(int arg), int arg, const char *mb, const char *events)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    setenv("RAILGAUGE_NCCL_DIR", folder, 1);
    setenv("RAILGAUGE_NCCL_MB", mb, 1);
    setenv("RAILGAUGE_NCCL_EVENTS", events, 1);
    alarm(100);
    body(arg);
    _exit(0);
}

static inline int child(void (*body)(int arg), int arg, const char *mb, const char *events)
{
    int status;

    waitpid(child_begin(body, arg, mb, events), &status, 0);
    return status;
}

static inline int folder_make(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/profiler-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state)
{
    char path[512];

    (void)state;
    while (file_find(folder, "", path))
        if (remove(path))
            return -1;
    return rmdir(folder);
}

#endif
