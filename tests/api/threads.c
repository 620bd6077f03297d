/* threads.c - many threads ask one handle at once; run under ThreadSanitizer, all must agree. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>

#include "railgauge.h"

enum { THREADS = 4, ROUNDS = 200 };

static const struct railgauge *shared;

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
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, ask, &sum[i]) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    railgauge_close(r);
    for (int i = 1; i < THREADS; i++)
        if (sum[i] != sum[0]) {
            fprintf(stderr, "threads: thread %d got %.17g, thread 0 %.17g\n", i, sum[i], sum[0]);
            return 1;
        }
    puts("all threads agree");
    return 0;
}
