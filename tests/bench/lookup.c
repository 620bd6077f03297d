/* lookup.c - how fast a matrix of 100,000 endpoints opens and answers; lines "name value".
 * Processor time, so that neighbours on the machine do not count. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../unit/small.h"
#include "railgauge.h"

enum { RACKS = 1389, GPUS = 4, QUERIES = 20000000 };

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned long long dice = 7; /* of a linear congruential generator */

static int below(int n)
{
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)(((dice >> 33) * (unsigned)n) >> 31);
}

/* An exception of every kind of part in turn, until one endpoint in twenty has its own; leaves and racks, which slow
 * 72 endpoints each, are one in twenty of theirs. */
static void slow_every_kind(struct matrix *m)
{
    for (int i = 0; i < m->topo.endpoints / 20; i++) {
        enum part part = (enum part)(i % PART_COUNT);
        bool wide = part == PART_LEAF || part == PART_RACK || part == PART_RACK_UPLINKS;
        int parts = part_count(m, part), a = below(parts),
            b = part_is_two(part) ? below(parts) : -1;

        if (a != b && (!wide || below(20) == 0))
            small_exception(m, part, a, b, -1, 0.3 + 0.001 * below(600))->side =
                (enum side)below(SIDE_COUNT);
    }
}

/* 1,389 racks of 18 hosts with 4 GPUs and 4 NICs, and a slow GPU in a thousand; hostile: exceptions of every kind. */
static int write_matrix(const char *path, bool hostile)
{
    struct matrix m;
    struct err err;
    int rc = -1;

    if (matrix_open(&m, NULL, "gb200-nvl72", RACKS, &err) == 0) {
        for (int i = 0; i < m.topo.endpoints && !hostile; i += 1000)
            small_exception(&m, PART_ENDPOINT, i, -1, -1, 0.5);
        if (hostile)
            slow_every_kind(&m);
        rc = matrix_save(&m, path, &err);
        matrix_free(&m);
    }
    if (rc < 0)
        fprintf(stderr, "lookup: %s\n", err.text);
    return rc;
}

/* Seconds of one. */
static double ask(const struct railgauge *r, double *sum)
{
    unsigned long long x = 12345;
    unsigned n = (unsigned)railgauge_count(r);
    double start = cpu();

    for (int q = 0; q < QUERIES; q++) { /* a linear congruential generator costs 1 ns */
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        int i = (int)(((x >> 33) * n) >> 31);
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        int j = (int)(((x >> 33) * n) >> 31);
        *sum += railgauge_pair(r, i, j, (size_t)1 << (x >> 59));
    }
    return (cpu() - start) / QUERIES;
}

/* Seconds of one that waits for the answer before it. */
static double ask_dependent(const struct railgauge *r, double *sum)
{
    enum { ASKED = QUERIES / 4 };
    unsigned long long x = 54321;
    unsigned n = (unsigned)railgauge_count(r);
    double start = cpu(), sec = 0;

    for (int q = 0; q < ASKED; q++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL + (unsigned long long)(sec * 1e12);
        int i = (int)(((x >> 33) * n) >> 31);
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        int j = (int)(((x >> 33) * n) >> 31);
        *sum += sec = railgauge_pair(r, i, j, (size_t)1 << (x >> 59));
    }
    return (cpu() - start) / ASKED;
}

/* Seconds of one after something else used the caches. */
static double ask_cold(const struct railgauge *r, double *sum)
{
    enum { TURNS = 40, ASKED = 256, OTHER = 64 << 20 };
    unsigned n = (unsigned)railgauge_count(r);
    volatile char *other = calloc(OTHER, 1);
    double sec = 0;

    for (int t = 0; t < TURNS && other; t++) {
        for (int i = 0; i < OTHER; i += 64)
            other[i]++;
        double start = cpu();
        for (int q = 0; q < ASKED; q++)
            *sum += railgauge_pair(r, below((int)n), below((int)n), 1 << 20);
        sec += cpu() - start;
    }
    free((void *)other);
    return sec / (TURNS * ASKED);
}

/* A matrix with exceptions of every kind: opened, and asked. */
static int ask_hostile(const char *path)
{
    struct railgauge *r;
    char text[256];
    double sum = 0;

    if (write_matrix(path, true) < 0)
        return 1;
    double start = cpu();
    if (railgauge_open(&r, path, text) < 0) {
        fprintf(stderr, "lookup: %s\n", text);
        return 1;
    }
    printf("hostile_open_s %.4f\n", cpu() - start);
    printf("hostile_pair_s %.4g\n", ask(r, &sum));
    printf("hostile_dependent_s %.4g\n", ask_dependent(r, &sum));
    printf("hostile_cold_s %.4g\n", ask_cold(r, &sum));
    railgauge_close(r);
    return sum > 0 ? 0 : 1;
}

/* Seconds of one look-up of a group of ranks in a row, as a range. */
static double ask_range(const struct railgauge *r, const char *op, int first, int ranks)
{
    enum { ASKED = 200000 };
    struct railgauge_range range = {first, ranks, 1};
    double sum = 0, start = cpu();

    for (int q = 0; q < ASKED; q++) {
        range.first = first + q % GPUS;
        sum += railgauge_collective_ranges(r, op, &range, 1, (size_t)1 << (q % 30));
    }
    return sum > 0 ? (cpu() - start) / ASKED : NAN;
}

/* The same by its members, and resolved. */
static int ask_group(const struct railgauge *r, double *members, double *resolved)
{
    enum { RANKS = 8192, BY_MEMBERS = 50, RESOLVED = 5000000 };
    static int ids[RANKS];
    struct railgauge_group *g;
    char text[256];
    double sum = 0;

    for (int i = 0; i < RANKS; i++)
        ids[i] = i;
    double start = cpu();
    for (int q = 0; q < BY_MEMBERS; q++)
        sum += railgauge_collective(r, "all_gather", ids, RANKS, (size_t)1 << (q % 30));
    *members = (cpu() - start) / BY_MEMBERS;
    if (railgauge_group_open(&g, r, "all_gather", ids, RANKS, text) < 0) {
        fprintf(stderr, "lookup: %s\n", text);
        return -1;
    }
    start = cpu();
    for (int q = 0; q < RESOLVED; q++)
        sum += railgauge_group_time(g, (size_t)1 << (q % 30));
    *resolved = (cpu() - start) / RESOLVED;
    railgauge_group_close(g);
    return sum > 0 ? 0 : -1;
}

/* Seconds of 10,000 lists of 128 nodes, by two threads, and of one swap; both of processor time. */
enum { LISTS = 10000, NODES = 128, THREADS = 2, SWAPS = 5000 };

struct share {
    const struct railgauge_job *job;
    const int *hosts;
    const size_t *start;
    double *seconds;
    int priced;
};

static void *rank_share(void *arg)
{
    struct share *s = arg;
    char text[256];

    s->priced = railgauge_rank(s->job, s->hosts, s->start, LISTS / THREADS, s->seconds, NULL, text);
    if (s->priced < LISTS / THREADS)
        fprintf(stderr, "lookup: %s\n", text);
    return NULL;
}

/* Nodes of a list ascend, as schedulers have them, and lie all over the cluster. */
static void fill_lists(int *hosts, size_t *start, int count)
{
    unsigned long long x = 54321;

    for (int i = 0; i <= LISTS; i++)
        start[i] = (size_t)i * NODES;
    for (int i = 0; i < LISTS; i++)
        for (int k = 0, at = -1; k < NODES; k++) {
            int left = NODES - k, room = count - at - left, most = 2 * room / left;
            x = x * 6364136223846793005ULL + 1442695040888963407ULL;
            at += 1 + (int)((x >> 33) % (unsigned)(most < 1 ? 1 : most < room ? most : room));
            hosts[i * NODES + k] = at;
        }
}

static int ask_lists(const struct railgauge_job *job, const int *hosts, const size_t *start)
{
    static double seconds[LISTS];
    struct share share[THREADS];
    pthread_t thread[THREADS];
    double from = cpu();
    int priced = 0;

    for (int i = 0; i < THREADS; i++) {
        int first = i * LISTS / THREADS;
        share[i] = (struct share){job, hosts, start + first, seconds + first, 0};
        if (pthread_create(&thread[i], NULL, rank_share, &share[i]) != 0)
            return -1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        priced += share[i].priced;
    }
    printf("rank_s %.3f\n", (cpu() - from) / THREADS);
    return priced == LISTS ? 0 : -1;
}

static int ask_swaps(const struct railgauge_job *job, const int *hosts)
{
    struct railgauge_list *list;
    char text[256];
    int good = 0;

    if (railgauge_list_open(&list, job, hosts, NODES, text) < 0)
        return -1;
    double from = cpu();
    for (int i = 0; i < SWAPS; i++) /* by one of another list, which may be there already */
        good += isfinite(railgauge_list_swap(list, i % NODES, hosts[NODES + i], NULL));
    printf("swap_s %.3g\n", (cpu() - from) / SWAPS);
    railgauge_list_close(list);
    return good > SWAPS * 9 / 10 ? 0 : -1;
}

static int ask_jobs(const struct railgauge *r)
{
    static int hosts[LISTS * NODES];
    static size_t start[LISTS + 1];
    struct railgauge_job *job;
    char text[256];

    fill_lists(hosts, start, railgauge_host_count(r));
    if (railgauge_job_open(&job, r, "all_gather 64M x 12; all_to_all 8M x 4 groups of 8", text) <
        0) {
        fprintf(stderr, "lookup: %s\n", text);
        return -1;
    }
    int rc = ask_lists(job, hosts, start) < 0 || ask_swaps(job, hosts) < 0 ? -1 : 0;
    railgauge_job_close(job);
    return rc;
}

/* How much longer 65,536 ranks take than 8, of a machine without slow parts, which are a look each. */
static int ask_growth(void)
{
    struct railgauge *r;
    char text[256];

    if (railgauge_open(&r, "preset:gb200-nvl72:1389", text) < 0) {
        fprintf(stderr, "lookup: %s\n", text);
        return 1;
    }
    double few = ask_range(r, "all_gather", 0, 8), many = ask_range(r, "all_gather", 0, 65536);
    printf("group_range_growth %.3g\n", many / few);
    railgauge_close(r);
    return isfinite(many / few) ? 0 : 1;
}

int main(void)
{
    char path[] = "/tmp/railgauge-lookup-XXXXXX", text[256];
    struct railgauge *r;
    struct stat st;
    double sum = 0, members, resolved;
    int fd = mkstemp(path), rc = 1;

    if (fd < 0 || write_matrix(path, false) < 0)
        return 1;
    double start = cpu();
    if (railgauge_open(&r, path, text) < 0) {
        fprintf(stderr, "lookup: %s\n", text);
    } else {
        printf("open_s %.4f\n", cpu() - start);
        printf("pair_s %.4g\n", ask(r, &sum));
        printf("dependent_s %.4g\n", ask_dependent(r, &sum));
        printf("cold_s %.4g\n", ask_cold(r, &sum));
        if (stat(path, &st) == 0)
            printf("file_bytes %lld\n", (long long)st.st_size);
        rc = sum > 0 && ask_group(r, &members, &resolved) == 0 && ask_jobs(r) == 0 ? 0 : 1;
        if (rc == 0)
            printf("group_members_s %.3g\ngroup_resolved_s %.3g\n", members, resolved);
        printf("group_range_s %.3g\ngroup_range_reduce_s %.3g\n",
               ask_range(r, "all_gather", 0, 8192), ask_range(r, "all_reduce", 0, 8192));
        rc = rc == 0 ? ask_growth() : rc;
        railgauge_close(r);
        rc = rc == 0 ? ask_hostile(path) : rc;
    }
    close(fd);
    unlink(path);
    return rc;
}
