/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_job.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "record/plugin/record.h"
#include "record/record_messages_impl.h"
#include "topo/topo.h"

/* --- one file of record/plugin/record.h, opened and checked: header and table of communicators are
 * in memory, the ring is read in pieces --- */

struct record_ring {
    const char *path;
    int fd;
    uint64_t bytes;
    union {
        struct record_head head;
        char text[RECORD_HEAD_BYTES];
    };
    struct record_comm *comm;
    int *slot; /* per communicator: index of the rank in this file */
    int *team; /* per communicator: index in the job; -1: none */
    int slots;
};

static int record_ring_read(const struct record_ring *f, void *to, size_t bytes, uint64_t at,
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

/* Message for a file that record_wrong() rejects. */
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

/* EXIT_NOINPUT, or EXIT_DATA: wrong kind of file, cut short, of another version.  Call
 * record_ring_close() also after an error.  path is kept. */
static int record_ring_open(struct record_ring *f, const char *path, struct err *err)
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

static void record_ring_close(struct record_ring *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->comm);
    free(f->slot);
    free(f->team);
}

enum {
    LOAD_CHUNK = 4096,         /* records read at a time */
    LOAD_MEMBERS_MAX = 1 << 24 /* ranks of all communicators together */
};

/* --- communicators --- */

static bool in_use(const struct record_comm *c)
{
    return c->state == RECORD_COMM_OPEN || c->state == RECORD_COMM_CLOSED;
}

/* Size of each communicator by its hash: as declared in a file, else the highest rank plus one
 * (NCCL declares it from interface 4 on). */
struct load_sizes {
    struct map at;
    int *size, sizes;
    long long members;
    char *first, *job; /* path of the first file, and its job */
    bool lost;         /* the oldest records of a file were overwritten */
};

static int note_size(struct load_sizes *s, const struct record_ring *f, const struct record_comm *c,
                     int i, struct err *err)
{
    int size = c->ranks ? c->ranks : c->rank + 1;
    int *at = map_at(&s->at, c->hash, NULL, NULL);

    if (c->rank < 0 || c->ranks < 0 || c->rank >= 1 << 24 || (c->ranks && c->rank >= c->ranks))
        return err_data(err, "%s: byte %llu: rank %d of %d in a communicator", f->path,
                        (unsigned long long)(f->head.comm_at + (uint64_t)i * sizeof(*c)), c->rank,
                        c->ranks);
    if (*at == MAP_NONE) {
        *at = s->sizes;
        MEM_PUSH(s->size, s->sizes) = 0;
    }
    if (size > s->size[*at]) {
        s->members += size - s->size[*at];
        s->size[*at] = size;
    }
    return s->members <= LOAD_MEMBERS_MAX
               ? 0
               : err_data(err, "%s: byte %llu: a communicator of %d ranks: no job has so many",
                          f->path, (unsigned long long)(f->head.comm_at + (uint64_t)i * sizeof(*c)),
                          size);
}

static int note_sizes(struct load_sizes *s, const struct record_ring *f, struct err *err)
{
    for (uint32_t i = 0; i < f->head.comms; i++)
        if (in_use(&f->comm[i]) && note_size(s, f, &f->comm[i], (int)i, err) < 0)
            return -1;
    return 0;
}

/* A process with several GPUs is in a communicator several times.  Its ranks there, in ascending
 * order, are the slots of the file; single ranks use the first slot. */
static void find_slots(struct record_ring *f)
{
    f->slots = 1;
    for (uint32_t i = 0; i < f->head.comms; i++) {
        for (uint32_t k = 0; k < f->head.comms; k++)
            f->slot[i] += in_use(&f->comm[k]) && f->comm[k].hash == f->comm[i].hash &&
                          f->comm[k].rank < f->comm[i].rank;
        if (in_use(&f->comm[i]) && f->slot[i] >= f->slots)
            f->slots = f->slot[i] + 1;
    }
}

static int join_teams(struct record_job *j, struct record_ring *f, int slot,
                      const struct load_sizes *s, struct err *err)
{
    for (uint32_t i = 0; i < f->head.comms; i++) {
        const struct record_comm *c = &f->comm[i];
        if (!in_use(c) || f->slot[i] != slot)
            continue;
        int size = s->size[map_find(&s->at, c->hash, NULL, NULL)];
        if (record_job_team(&f->team[i], j, c->hash, size, c->rank, err) < 0)
            return -1;
    }
    return 0;
}

/* --- records --- */

/* Records of a rank, to be converted to entries. */
struct load_rank {
    struct record_job *j;
    const struct record_ring *f;
    int slot;
    struct record_raw *raw;
    int raws;
    double *ahead; /* time of the GPU's timer ahead of the host's clock, ns */
    int aheads;
    struct record_messages messages;
    long under_way, untimed, engines, unknown, torn, alone; /* engines: by copy engines */
    uint64_t first_under_way; /* number of its first record under way */
};

/* enum op of "AllReduce" and so on; -1: none. */
static int op_of(const char *name)
{
    char low[RECORD_NAME_LEN];
    size_t n = strlen(name);

    for (size_t i = 0; i <= n; i++)
        low[i] = (char)tolower((unsigned char)name[i]);
    return op_find(low);
}

static int word_of(struct record_job *j, const struct record_head *h, unsigned index)
{
    const char *name = record_name(h, index);

    if (!*name || topo_text_check(name, RECORD_NAME_LEN, "", NULL) < 0)
        return -1;
    return names_add(&j->words, name);
}

static bool under_way(const struct record_ring *f, const struct record *r)
{
    if (r->gpu_stop && r->channels_stopped >= r->channels_started)
        return f->head.abi >= 4 && r->channels > r->channels_stopped;
    return r->channels_started > r->channels_stopped || r->proxy_started > r->proxy_stopped;
}

/* Start and end, and their clock; false: not known. */
static bool times_of(struct record_raw *e, struct load_rank *k, const struct record *r)
{
    const uint64_t most = (uint64_t)1 << 62;

    e->gpu = r->gpu_start && r->gpu_stop >= r->gpu_start && r->gpu_stop < most;
    if (e->gpu) {
        e->start = r->gpu_start;
        e->end = r->gpu_stop;
        if (r->first_ns && r->first_ns < most)
            MEM_PUSH(k->ahead, k->aheads) = (double)((int64_t)r->first_ns - (int64_t)r->gpu_start);
        return true;
    }
    e->start = r->first_ns;
    e->end = r->last_ns;
    return r->first_ns && r->last_ns >= r->first_ns && r->last_ns < most;
}

static void take_record(struct load_rank *k, const struct record *r)
{
    const struct record_ring *f = k->f;
    struct record_raw e = {.what = {.src = -1, .dst = -1}};
    const char *op = record_name(&f->head, r->op);
    int team = r->comm < f->head.comms && f->slot[r->comm] == k->slot ? f->team[r->comm] : -1;
    int size = team < 0 ? 0 : k->j->team[team].size, known = r->kind == RECORD_P2P ? 0 : op_of(op);

    if (team < 0)
        return;
    if (known < 0 || op_is_pair((enum op)known) || r->bytes > (uint64_t)1 << 50 ||
        (r->kind == RECORD_P2P && (r->peer < 0 || r->peer >= size))) {
        k->unknown++;
    } else if (under_way(f, r)) {
        if (!k->under_way++)
            k->first_under_way = record_seq(r);
    } else if (size < 2) {
        k->alone++;
    } else if (!times_of(&e, k, r)) {
        *(r->flags & RECORD_CE ? &k->engines : &k->untimed) += 1;
        *(r->flags & RECORD_CE ? &k->j->engines : &k->j->untimed) += 1;
    } else {
        e.what.comm = team;
        e.what.op = (enum op)known;
        e.what.bytes = r->bytes;
        if (r->kind == RECORD_COLL && (known == OP_ALL_GATHER || known == OP_REDUCE_SCATTER))
            e.what.bytes *= (uint64_t)size;
        e.what.algorithm = word_of(k->j, &f->head, r->algo);
        e.what.protocol = word_of(k->j, &f->head, r->proto);
        e.what.channels = r->channels;
        e.number = (uint32_t)r->nccl_seq;
        e.wait = (double)(r->send_peer_ns + r->send_net_ns + r->recv_net_ns) / 1e9;
        if (r->kind == RECORD_P2P)
            record_messages_add(
                &k->messages, (struct record_message){team, f->comm[r->comm].rank, r->peer, k->raws,
                                                      !strcasecmp(op, "send"), record_seq(r),
                                                      r->parent, r->start_ns, r->stop_ns});
        MEM_PUSH(k->raw, k->raws) = e;
    }
}

/* Process the record at `place` of the ring. */
static void look_at(struct load_rank *k, const struct record *r, uint64_t place)
{
    if (!(r->word >> 16))
        return;
    if (!record_whole(r, place, k->f->head.capacity))
        k->torn++;
    else if (r->kind == RECORD_COLL || r->kind == RECORD_P2P)
        take_record(k, r);
    else if (r->kind == RECORD_CALL)
        record_messages_call(&k->messages, record_seq(r), r->parent);
}

static int read_ring(struct load_rank *k, struct err *err)
{
    const struct record_ring *f = k->f;
    struct record *buf = mem_calloc(LOAD_CHUNK, sizeof(*buf));
    int rc = 0;

    for (uint64_t at = 0, n; at < f->head.capacity && rc == 0; at += n) {
        n = f->head.capacity - at < LOAD_CHUNK ? f->head.capacity - at : LOAD_CHUNK;
        if (f->head.next <= at) /* the rest was never written */
            break;
        rc = record_ring_read(f, buf, n * sizeof(*buf), f->head.ring_at + at * sizeof(*buf), err);
        for (uint64_t i = 0; i < n && rc == 0; i++)
            look_at(k, &buf[i], at + i);
    }
    free(buf);
    return rc;
}

/* --- entries --- */

/* ns by which the host's real time is ahead of the monotonic clock: the same value for all files of
 * a host. */
static int64_t wall_of(const struct record_job *j, const struct record_ring *f)
{
    int64_t wall = (int64_t)(f->head.wall_ns - f->head.mono_ns);

    for (int p = 0; p < j->processes - 1; p++)
        if (!strcmp(j->process[p].host, f->head.host))
            return j->process[p].wall;
    return wall;
}

/* Times more than nine years from the first host's clock are invalid. */
static const int64_t TIME_MAX = (int64_t)1 << 58;

static void add_entries(struct load_rank *k, struct record_process *p)
{
    int64_t ahead = k->aheads ? (int64_t)stats_median(k->ahead, k->aheads) : 0;

    p->wall = wall_of(k->j, k->f);
    for (int i = 0; i < k->raws; i++) {
        const struct record_raw *e = &k->raw[i];
        uint64_t by = (uint64_t)p->wall - (uint64_t)k->j->process[0].wall;
        by += e->gpu ? (uint64_t)ahead : 0;
        int64_t start = (int64_t)(by + e->start), end = (int64_t)(by + e->end);
        if (e->what.comm < 0)
            continue;
        if (start < -TIME_MAX || start > TIME_MAX || end < start || end > TIME_MAX) {
            k->untimed++;
            continue;
        }
        p->own_clock |= e->gpu;
        record_job_add(k->j, &e->what, e->number, start, end, e->wait);
    }
}

static void say_counts(const struct load_rank *k)
{
    const struct record_ring *f = k->f;
    struct record_job *j = k->j;

    if (k->under_way)
        record_job_say(j, "%s: under way when it ends: %ld, the first is record %llu", f->path,
                       k->under_way, (unsigned long long)k->first_under_way);
    if (k->untimed)
        record_job_say(j, "%s: left out, for NCCL told no times of their channels: %ld", f->path,
                       k->untimed);
    if (k->engines)
        record_job_say(
            j,
            "%s: left out, for copy engines ran them, of which NCCL tells a profiler when "
            "they were enqueued and not when they ended (ceColl): %ld; NCCL_CTA_POLICY=DEFAULT "
            "runs kernels instead",
            f->path, k->engines);
    if (k->unknown)
        record_job_say(j, "%s: left out, for they are no operation that is known here: %ld",
                       f->path, k->unknown);
    if (k->torn)
        record_job_say(j, "%s: records that are not whole: %ld", f->path, k->torn);
}

static void say_file(struct record_job *j, const struct record_ring *f)
{
    const struct record_head *h = &f->head;

    if (h->next > h->capacity)
        record_job_say(j, "%s: its oldest %llu records were overwritten", f->path,
                       (unsigned long long)(h->next - h->capacity));
    if (h->dropped)
        record_job_say(j, "%s: events that had no place: %llu", f->path,
                       (unsigned long long)h->dropped);
}

static int load_rank(struct record_job *j, struct record_ring *f, int slot,
                     const struct load_sizes *sizes, struct err *err)
{
    const struct record_head *h = &f->head;
    struct record_process *p = record_job_process(j, f->path, h->host);
    struct load_rank k = {.j = j, .f = f, .slot = slot};

    p->pid = (int)h->pid;
    p->rank = f->slots == 1 && h->job_rank >= 0 ? h->job_rank : -1;
    p->lost = h->next > h->capacity ? (long)(h->next - h->capacity) : 0;
    p->ended = h->closed_ns != 0;
    int rc = join_teams(j, f, slot, sizes, err);
    if (rc == 0)
        rc = read_ring(&k, err);
    if (rc == 0) {
        record_messages_end(&k.messages, j, k.raw, sizes->lost);
        add_entries(&k, p);
        say_counts(&k);
    }
    record_messages_free(&k.messages);
    free(k.raw);
    free(k.ahead);
    return rc;
}

static int load_file(struct record_job *j, const char *path, const struct load_sizes *sizes,
                     struct err *err)
{
    struct record_ring f;
    int rc = record_ring_open(&f, path, err);

    if (rc == 0) {
        find_slots(&f);
        say_file(j, &f);
    }
    for (int slot = 0; rc == 0 && slot < f.slots; slot++)
        rc = load_rank(j, &f, slot, sizes, err);
    record_ring_close(&f);
    return rc;
}

/* --- the folder --- */

/* Check that a file is of the same job, and note the sizes of its communicators. */
static int look_file(struct load_sizes *s, const char *path, struct err *err)
{
    struct record_ring f;
    int rc = record_ring_open(&f, path, err);

    if (rc == 0 && !s->first) {
        s->first = mem_strdup(path);
        s->job = mem_strdup(f.head.job);
    } else if (rc == 0 && strcmp(s->job, f.head.job))
        rc = err_data(err, "%s: of job \"%s\", but %s is of job \"%s\": one folder a job", path,
                      f.head.job, s->first, s->job);
    if (rc == 0)
        rc = note_sizes(s, &f, err);
    if (rc == 0)
        s->lost |= f.head.next > f.head.capacity;
    record_ring_close(&f);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_suffix(const char *name)
{
    size_t n = strlen(name), tail = strlen(RECORD_SUFFIX);

    return n > tail && !strcmp(name + n - tail, RECORD_SUFFIX);
}

/* Paths of the files in dir, sorted. */
static int list_files(char ***path, int *paths, const char *dir, struct err *err)
{
    DIR *d = opendir(dir);

    if (!d)
        return err_noinput(err, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (has_suffix(e->d_name))
            MEM_PUSH(*path, *paths) = file_join(dir, e->d_name);
    closedir(d);
    if (!*paths)
        return err_noinput(err, "%s: no file NAME%s in it", dir, RECORD_SUFFIX);
    qsort(*path, (size_t)*paths, sizeof(**path), by_name);
    return 0;
}

/* Report the ranks without a file, for the largest communicator that has some. */
static void say_missing(struct record_job *j)
{
    const struct record_team *most = NULL;
    char ranks[160];
    int teams = 0;

    for (int i = 0; i < j->teams; i++) {
        teams += j->team[i].missing > 0;
        if (j->team[i].missing && (!most || j->team[i].size > most->size))
            most = &j->team[i];
    }
    if (!most)
        return;
    bool *set = mem_calloc((size_t)most->size, sizeof(*set));
    for (int r = 0; r < most->size; r++)
        set[r] = most->member[r] < 0;
    units_ranks_text(ranks, sizeof(ranks), set, most->size);
    record_job_say(j,
                   "communicators of which files are missing: %d of %d; the largest, of %d ranks, "
                   "lacks its %s",
                   teams, j->teams, most->size, ranks);
    free(set);
}

int record_load(struct record_job *j, const char *dir, struct err *err)
{
    struct load_sizes sizes = {.first = NULL};
    char **path = NULL;
    int paths = 0, rc = list_files(&path, &paths, dir, err);

    for (int i = 0; i < paths && rc == 0; i++)
        rc = look_file(&sizes, path[i], err);
    for (int i = 0; i < paths && rc == 0; i++)
        rc = load_file(j, path[i], &sizes, err);
    if (rc == 0)
        rc = record_job_end(j, err);
    if (rc == 0)
        say_missing(j);
    for (int i = 0; i < paths; i++)
        free(path[i]);
    free(path);
    map_free(&sizes.at);
    free(sizes.size);
    free(sizes.first);
    free(sizes.job);
    return rc;
}
