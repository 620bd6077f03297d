/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - librailgauge where memory ends: a call answers or says "out of memory", the process
 * lives, and nothing that the call had taken is left. */
#include <errno.h>
#include <math.h>
#include <railgauge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static long count, fail_at, live;

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

static int is_there(void)
{
    if (++count != fail_at)
        return 1;
    errno = ENOMEM;
    return 0;
}

void *malloc(size_t size)
{
    return is_there() ? counted(__libc_malloc(size)) : NULL;
}

void *calloc(size_t n, size_t size)
{
    return is_there() ? counted(__libc_calloc(n, size)) : NULL;
}

void *realloc(void *p, size_t size)
{
    void *moved = is_there() ? __libc_realloc(p, size) : NULL;

    return p ? moved : counted(moved);
}

void free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}

/* Opens, prices, chooses and closes; 0 when all was answered. */
static int use(const char *path, char why[256])
{
    static const int hosts[] = {0, 1, 2, 3};
    struct railgauge *r = NULL;
    struct railgauge_job *job = NULL;
    struct railgauge_placed placed = {0};
    static const size_t start[] = {0, 2, 4};
    struct railgauge_list *list = NULL;
    uint64_t gpus[64];
    int best[2], order[64], rc = -1;
    double sec[2];

    if (railgauge_open(&r, path, why) == 0 &&
        railgauge_job_open(&job, r, "model=llama3.1-8b layout=dp_shard=auto", why) == 0 &&
        !isnan(railgauge_nodes_cost(job, hosts, 4, why)) &&
        railgauge_nodes_best(job, hosts, 4, 2, 1, best, sec, NULL, why) == 1 &&
        !railgauge_changed(r) && memset(gpus, -1, sizeof(gpus)) &&
        railgauge_job_free_gpus(job, gpus, why) == 0 &&
        railgauge_rank(job, hosts, start, 2, sec, order, why) == 2 &&
        railgauge_list_open(&list, job, hosts, 3, why) == 0 &&
        !isnan(railgauge_list_swap(list, 1, 5, why)) &&
        !isnan(railgauge_list_swap(list, 0, 7, why)) &&
        railgauge_place(job, hosts, 4, 2, 1e-4, order, 64, &placed, why) == 0)
        rc = 0;
    railgauge_list_close(list);
    railgauge_job_close(job);
    railgauge_close(r);
    return rc;
}

int main(int argc, char **argv)
{
    char why[256] = "";
    int times = argc == 4 ? atoi(argv[3]) : 0, failed = 0;

    if (!times || (use(argv[1], why), use(argv[1], why)) < 0) {
        printf("usage: memory MATRIX SEED TIMES; %s\n", why);
        return 64;
    }
    long before = count;
    use(argv[1], why);
    long all = count - before;
    srand48(atol(argv[2]));
    for (int i = 0; i < times; i++) {
        long at = 1 + lrand48() % all, held = live;
        *why = '\0';
        fail_at = count + at;
        int rc = use(argv[1], why);
        fail_at = 0;
        failed += rc < 0;
        if ((rc < 0 && !strstr(why, "out of memory") && !strstr(why, "no memory")) ||
            live != held) {
            printf("allocation %ld of %ld: %d \"%s\", %ld blocks left\n", at, all, rc, why,
                   live - held);
            return 1;
        }
    }
    printf("%d of %d calls said so\n", failed, times);
    return failed ? 0 : 1;
}
