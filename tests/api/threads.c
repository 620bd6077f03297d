/* threads.c - many threads ask one handle at once; run under ThreadSanitizer, all must agree. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>

#include "railgauge.h"

enum { THREADS = 4, ROUNDS = 200 };

static const struct railgauge *shared;
static const struct railgauge_job *job;

/* Costs of node lists, the best of half of the hosts, and an order of ranks on them. */
static double ask_nodes(int k)
{
    int hosts[16], best[16], n = railgauge_host_count(shared);
    double sec[2];

    n = n < 16 ? n : 16;
    for (int i = 0; i < n; i++)
        hosts[i] = (i + k) % n;
    if (railgauge_nodes_best(job, hosts, n, n / 2, 2, best, sec, NULL, NULL) != 2)
        return -1;
    sec[0] += sec[1] + railgauge_nodes_cost(job, hosts, n, NULL);
    if (k % 100 == 0) {
        struct railgauge_placed placed = {0};
        int order[256];
        if (railgauge_place(job, hosts, n, n / 2, 0.001, order, 256, &placed, NULL) < 0)
            return -1;
        sec[0] += placed.seconds + order[0];
    }
    return sec[0];
}

static void *ask(void *out)
{
    int n = railgauge_count(shared), ids[8];
    double sum = 0;

    for (int i = 0; i < 8; i++)
        ids[i] = i % n;
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < n; i++)
            sum += railgauge_pair(shared, i, (i + k + 1) % n, (size_t)1 << (k % 30));
        sum +=
            railgauge_collective(shared, "all_gather", ids, n < 8 ? n : 8, (size_t)1 << (k % 30));
        sum += railgauge_find(shared, "n03", 1);
        if (k % 20 == 0)
            sum += ask_nodes(k);
    }
    *(double *)out = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    double sum[THREADS];
    struct railgauge *r;
    char why[256];

    if (argc != 2 || railgauge_open(&r, argv[1], why) < 0) {
        fprintf(stderr, "threads: %s\n", argc == 2 ? why : "usage: threads MATRIX");
        return 1;
    }
    shared = r;
    struct railgauge_job *j;
    if (railgauge_job_open(&j, r, "all_gather 1M x 3; all_to_all 1M groups of 4", why) < 0) {
        fprintf(stderr, "threads: %s\n", why);
        return 1;
    }
    job = j;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, ask, &sum[i]) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    railgauge_job_close(j);
    railgauge_close(r);
    for (int i = 1; i < THREADS; i++)
        if (sum[i] != sum[0]) {
            fprintf(stderr, "threads: thread %d got %.17g, thread 0 %.17g\n", i, sum[i], sum[0]);
            return 1;
        }
    puts("all threads agree");
    return 0;
}
