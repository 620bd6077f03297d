/* nodes.c - how long a scheduler waits for the cost of a node list, and for the best of the free
 * ones; lines "name value" in ms of processor time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "matrix/matrix.h"
#include "railgauge.h"

enum { RUNS = 7, NEED_MAX = 1024, BEST = 8 };

static const char job_text[] = "model=llama3.1-70b layout=tp=4,pp=2,dp=auto batch=8192";
static const char mix_text[] = "all_gather 64M x 12; all_to_all 8M x 4 groups of 8";

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double once(const struct railgauge_job *job, const int *hosts, int n, int need)
{
    static int best[BEST * NEED_MAX];
    char why[256];
    double sec[BEST], start = cpu();

    if (need ? railgauge_nodes_best(job, hosts, n, need, BEST, best, sec, NULL, why) == BEST
             : railgauge_nodes_cost(job, hosts, n, why) < INFINITY)
        return cpu() - start;
    fprintf(stderr, "nodes: %s\n", why);
    exit(1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of a few; need 0: the cost of n hosts, else the best of them. */
static void ask(const char *name, const struct railgauge_job *job, const int *hosts, int n,
                int need)
{
    double ms[RUNS];

    for (int i = 0; i < RUNS; i++)
        ms[i] = once(job, hosts, n, need);
    qsort(ms, RUNS, sizeof(*ms), ascending);
    if (need)
        printf("%s_best%d_%d_of_%d_ms %.3f\n", name, BEST, need, n, ms[RUNS / 2]);
    else
        printf("%s_cost_%d_ms %.3f\n", name, n, ms[RUNS / 2]);
}

static void ask_all(const char *name, const struct railgauge *r, const char *text)
{
    static int hosts[4096], some[64];
    struct railgauge_job *job;
    char why[256];

    if (railgauge_job_open(&job, r, text, why) < 0) {
        fprintf(stderr, "nodes: %s\n", why);
        exit(1);
    }
    for (int i = 0; i < 4096; i++)
        hosts[i] = i;
    for (int i = 0; i < 64; i++) /* 8 free hosts in each of 8 racks, every other one */
        some[i] = i / 8 * 18 + i % 8 * 2;
    ask(name, job, hosts, 8, 0);
    ask(name, job, hosts, 128, 0);
    ask(name, job, hosts, 1024, 0);
    ask(name, job, some, 64, 8);
    ask(name, job, some, 64, 32);
    ask(name, job, hosts, 1152, 128);
    railgauge_job_close(job);
}

/* 64 racks of GB200 NVL72, as published. */
static int write_matrix(const char *path)
{
    struct fabric f = {0};
    struct matrix m;
    struct err err;

    matrix_init(&m);
    int rc = fabric_load(&f, "gb200-nvl72", &err) < 0 || matrix_from_fabric(&m, &f, 64, &err) < 0 ||
             matrix_save(&m, path, &err) < 0;
    if (rc)
        fprintf(stderr, "nodes: %s\n", err.text);
    matrix_free(&m);
    fabric_free(&f);
    return rc ? -1 : 0;
}

int main(void)
{
    char path[] = "/tmp/railgauge-nodes-XXXXXX", why[256];
    struct railgauge *r = NULL;
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    if (write_matrix(path) == 0 && railgauge_open(&r, path, why) < 0)
        fprintf(stderr, "nodes: %s\n", why);
    unlink(path);
    if (!r)
        return 1;
    ask_all("model", r, job_text);
    ask_all("mix", r, mix_text);
    railgauge_close(r);
    return 0;
}
