/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "matrix/collective.h"
#include "railgauge.h"
#include "small.h"

/* The matrix in memory and the same opened through the library. */
struct both {
    struct matrix m;
    struct railgauge *r;
};

static void open_both(struct both *b, void (*change)(struct matrix *m))
{
    char path[] = "/tmp/railgauge-api-XXXXXX", text[256];
    struct err err;
    int fd = mkstemp(path);

    small_matrix(&b->m);
    if (change)
        change(&b->m);
    assert_true(fd >= 0);
    close(fd);
    if (matrix_save(&b->m, path, &err) < 0)
        fail_msg("%s", err.text);
    if (railgauge_open(&b->r, path, text) < 0)
        fail_msg("%s", text);
    unlink(path);
}

static void close_both(struct both *b)
{
    railgauge_close(b->r);
    matrix_free(&b->m);
}

static void slow_parts(struct matrix *m)
{
    small_exception(m, PART_ENDPOINT, 2, -1, 1, 0.5)->side = SIDE_TX;
    small_exception(m, PART_HOST, 7, -1, -1, 0.8)->alpha_add = 1e-4;
    small_exception(m, PART_RACK_PAIR, 0, 1, -1, 0.7)->side = SIDE_RX;
    small_exception(m, PART_PAIR, 0, 4, -1, 0.3)->side = SIDE_RX;
    small_exception(m, PART_HOST, 3, -1, -1, 0);
}

static void rack_parts(struct matrix *m)
{
    small_exception(m, PART_RACK_UPLINKS, 1, -1, -1, 0.5);
    small_exception(m, PART_RACK_PAIR, 0, 1, -1, 0.7);
    small_exception(m, PART_PAIR, 2, 9, -1, 0.3);
    small_exception(m, PART_HOST, 2, -1, 0, 0.9);
}

static void compare_all(struct both *b)
{
    struct cost c;

    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            for (double s = 1; s < 1e11; s = ceil(s * 1.31)) {
                double t = railgauge_pair(b->r, i, j, (size_t)s);
                matrix_pair(&b->m, i, j, s, &c);
                if (isinf(c.sec) ? !isinf(t) : !(fabs(t - c.sec) <= 1e-3 * c.sec))
                    fail_msg("%d to %d, %.0f bytes: %g where the matrix says %g", i, j, s, t,
                             c.sec);
            }
}

static void pairs_are_within_a_thousandth_of_the_curves(void **state)
{
    struct both b;

    (void)state;
    open_both(&b, NULL);
    compare_all(&b);
    close_both(&b);
}

static void slow_and_dead_parts_are_the_same_too(void **state)
{
    struct both b;

    (void)state;
    open_both(&b, slow_parts);
    compare_all(&b);
    close_both(&b);
}

/* Levels of which much is not known, and more groups than a key has bits for. */
static void forget_places(struct matrix *m, unsigned seed)
{
    struct rng rng;

    rng_seed(&rng, seed);
    for (int i = 0; i < m->topo.endpoints; i++)
        for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
            if (!rng_below(&rng, 3))
                m->topo.endpoint[i].place.at[l] = -1;
}

static unsigned forgotten;

static void forget_some(struct matrix *m)
{
    slow_parts(m);
    forget_places(m, forgotten);
}

static void what_is_not_known_is_the_same_as_nothing(void **state)
{
    (void)state;
    for (forgotten = 1; forgotten <= 20; forgotten++) {
        struct both b;
        open_both(&b, forget_some);
        compare_all(&b);
        close_both(&b);
    }
}

/* Parts of every kind, side and tier, few (one endpoint in eight is odd, or fewer) and many. */
static void all_parts(struct matrix *m)
{
    struct rng rng;

    rng_seed(&rng, forgotten);
    for (int i = forgotten % 3 ? 30 : 1; i > 0; i--) {
        enum part part = (enum part)rng_below(&rng, PART_COUNT);
        int parts = part_count(m, part), b = -1;
        if (parts < 2)
            continue;
        int a = (int)rng_below(&rng, (unsigned)parts);
        if (part_is_two(part))
            b = (a + 1 + (int)rng_below(&rng, (unsigned)parts - 1)) % parts;
        int tier = (int)rng_below(&rng, (unsigned)m->tiers + 1) - 1;
        struct exception *e = small_exception(m, part, a, b, tier, 0.1 * rng_below(&rng, 11));
        e->side = (enum side)rng_below(&rng, SIDE_COUNT);
        e->alpha_add = 1e-6 * rng_below(&rng, 3);
    }
    if (forgotten % 4 == 0)
        forget_places(m, forgotten);
}

static void exceptions_of_every_kind_are_the_same(void **state)
{
    (void)state;
    for (forgotten = 1; forgotten <= 60; forgotten++) {
        struct both b;
        open_both(&b, all_parts);
        compare_all(&b);
        close_both(&b);
    }
}

/* A vector says the same as its pairs, to the bit; what is out of range is unknown. */
static void many_pairs_are_pairs(void **state)
{
    enum { N = 18 * 18 };
    int src[N], dst[N];
    double sec[N + 1];
    struct both b;

    (void)state;
    open_both(&b, slow_parts);
    for (int i = 0; i < N; i++) {
        src[i] = i / 18 - 1;
        dst[i] = i % 18 - 1;
    }
    for (size_t s = 0; s < 1 << 20; s = 3 * s + 1) {
        sec[N] = -7;
        railgauge_pairs(b.r, src, dst, N, s, sec);
        assert_true(sec[N] == -7);
        for (int i = 0; i < N; i++) {
            double one = railgauge_pair(b.r, src[i], dst[i], s);
            assert_true(sec[i] == one || (isnan(sec[i]) && isnan(one)));
        }
    }
    close_both(&b);
}

static void endpoints_are_found_by_host_and_index(void **state)
{
    struct both b;

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_count(b.r), 16);
    assert_int_equal(railgauge_find(b.r, "n00", 0), 0);
    assert_int_equal(railgauge_find(b.r, "n05", 1), 11);
    assert_int_equal(railgauge_find(b.r, "n05", 2), -1);
    assert_int_equal(railgauge_find(b.r, "n05", -1), -1);
    assert_int_equal(railgauge_find(b.r, "n08", 0), -1);
    close_both(&b);
}

static void hosts_and_their_groups_have_names(void **state)
{
    struct both b;

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_host_count(b.r), 8);
    assert_string_equal(railgauge_host_name(b.r, 7), "n07");
    assert_null(railgauge_host_name(b.r, 8));
    assert_null(railgauge_host_name(b.r, -1));
    assert_int_equal(railgauge_host_find(b.r, "n07"), 7);
    assert_int_equal(railgauge_host_find(b.r, "n7"), -1);
    assert_int_equal(railgauge_host_find(b.r, NULL), -1);
    assert_string_equal(railgauge_level(b.r, 9, "rack"), "rack-01");
    assert_string_equal(railgauge_level(b.r, 9, "host"), "n04");
    assert_null(railgauge_level(b.r, 9, "domain"));
    assert_null(railgauge_level(b.r, 9, "shelf"));
    assert_null(railgauge_level(b.r, 9, NULL));
    assert_null(railgauge_level(b.r, 16, "rack"));
    assert_null(railgauge_level(b.r, -1, "rack"));
    close_both(&b);
}

static void jobs_cost_what_their_collectives_do(void **state)
{
    static const int hosts[] = {0, 1, 4, 5}, ids[] = {0, 1, 2, 3, 8, 9, 10, 11};
    struct railgauge_job *job = (struct railgauge_job *)1;
    char text[256] = "before";
    struct both b;

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_job_open(&job, b.r, "all_gather", text), -1);
    assert_null(job);
    assert_non_null(strstr(text, "its size is missing"));
    if (railgauge_job_open(&job, b.r, "all_gather 16M x 3", text) < 0)
        fail_msg("%s", text);
    double sec = railgauge_nodes_cost(job, hosts, 4, text);
    double one = railgauge_collective(b.r, "all_gather", ids, 8, 16 << 20);
    assert_true(fabs(sec - 3 * one) < 1e-12 * sec);
    assert_string_equal(text, "");
    assert_true(railgauge_nodes_cost(job, hosts, 4, NULL) == sec);
    assert_true(isnan(railgauge_nodes_cost(job, hosts, 0, text)));
    assert_non_null(strstr(text, "a list of 0 hosts"));
    assert_true(isnan(railgauge_nodes_cost(job, hosts, 0, NULL)));
    railgauge_job_close(job);
    railgauge_job_close(NULL);
    close_both(&b);
}

static const char *const jobs[] = {
    "all_gather 16M x 3",
    "all_gather 64M x 12; all_to_all 8M x 4 groups of 4; per_node=1",
    "all_reduce 1G groups of 2; all_to_all 1M; spread=cyclic",
    "sendrecv 1M groups of 4 apart 2; reduce_scatter 3M",
    "ep_dispatch 8M groups of 4; ep_combine 16M",
    "model=llama3.1-8b layout=tp=2,dp=auto flops=1e14",
};
enum { JOBS = sizeof(jobs) / sizeof(*jobs) };

/* Some of the eight hosts, in any order; at times one that is not there, or one twice. */
static int random_list(struct rng *rng, int *hosts)
{
    int all[8] = {0, 1, 2, 3, 4, 5, 6, 7}, n = 1 + (int)rng_below(rng, 8);

    rng_shuffle(rng, all, 8);
    memcpy(hosts, all, sizeof(all));
    if (!rng_below(rng, 10))
        hosts[rng_below(rng, (unsigned)n)] = (int)rng_below(rng, 10) - 1;
    return n;
}

static void same_price(const struct railgauge_job *job, const int *hosts, int n, double sec)
{
    double one = railgauge_nodes_cost(job, hosts, n, NULL);

    if (!(sec == one || (isnan(sec) && isnan(one))))
        fail_msg("%.17g where the list alone costs %.17g", sec, one);
}

static void rank_random_lists(const struct railgauge_job *job, struct rng *rng)
{
    enum { LISTS = 200 };
    int hosts[8 * LISTS], order[LISTS], finite = 0;
    size_t start[LISTS + 1] = {0};
    double sec[LISTS + 1];
    char text[256] = "before";

    for (int i = 0; i < LISTS; i++)
        start[i + 1] = start[i] + (size_t)random_list(rng, hosts + start[i]);
    sec[LISTS] = -7;
    int n = railgauge_rank(job, hosts, start, LISTS, sec, order, text);
    assert_true(sec[LISTS] == -7);
    for (int i = 0; i < LISTS; i++) {
        same_price(job, hosts + start[i], (int)(start[i + 1] - start[i]), sec[i]);
        finite += isfinite(sec[i]);
        double a = sec[order[i ? i - 1 : 0]], b = sec[order[i]];
        assert_true(a <= b || isnan(b));
        assert_true(i == 0 || a != b || order[i - 1] < order[i]);
    }
    assert_int_equal(n, finite);
    assert_true(n == LISTS ? !*text : !strncmp(text, "list ", 5));
}

/* Lists priced at once cost to the bit what each does alone, slow and dead parts or none. */
static void many_lists_are_lists(void **state)
{
    struct railgauge_job *job;
    char text[256];
    struct both b;
    struct rng rng;

    (void)state;
    rng_seed(&rng, 5);
    for (int k = 0; k < 3 * JOBS; k++) {
        open_both(&b, k % 3 == 1 ? slow_parts : k % 3 == 2 ? rack_parts : NULL);
        if (railgauge_job_open(&job, b.r, jobs[k / 3], text) < 0)
            fail_msg("%s", text);
        rank_random_lists(job, &rng);
        railgauge_job_close(job);
        close_both(&b);
    }
}

static void lists_that_are_none_are_refused(void **state)
{
    static const int hosts[] = {0, 1, 2};
    static const size_t start[] = {0, 3, 1, 1, 3}, huge[] = {0, SIZE_MAX / 2};
    struct railgauge_list *list = (struct railgauge_list *)1;
    struct railgauge_job *job;
    char text[256];
    struct both b;
    double sec[4];

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_job_open(&job, b.r, "all_gather 1M", text), 0);
    assert_int_equal(railgauge_rank(job, hosts, start, 4, sec, NULL, text), 2);
    assert_string_equal(text, "list 1: a list of -1 hosts: the matrix has 8");
    assert_true(isfinite(sec[0]) && isnan(sec[1]) && isnan(sec[2]) && isfinite(sec[3]));
    assert_int_equal(railgauge_rank(job, hosts, huge, 1, sec, NULL, NULL), 0);
    assert_int_equal(railgauge_rank(job, hosts, start, 0, sec, NULL, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(railgauge_rank(job, hosts, start, -1, sec, NULL, text), -1);
    assert_string_equal(text, "-1 lists");
    assert_int_equal(railgauge_list_open(&list, job, hosts, 0, text), -1);
    assert_null(list);
    assert_string_equal(text, "a list of 0 hosts: the matrix has 8");
    railgauge_list_close(NULL);
    railgauge_job_close(job);
    close_both(&b);
}

/* Hosts put in one after the other: the price is that of the whole list, to the bit. */
static void a_list_that_changes_costs_what_it_is(void **state)
{
    struct railgauge_list *list;
    struct railgauge_job *job;
    char text[256];
    struct both b;
    struct rng rng;
    int swaps = 0;

    (void)state;
    rng_seed(&rng, 6);
    for (int k = 0; k < 3 * JOBS; k++) {
        int hosts[8], n;
        open_both(&b, k % 3 == 1 ? slow_parts : k % 3 == 2 ? rack_parts : NULL);
        assert_int_equal(railgauge_job_open(&job, b.r, jobs[k / 3], text), 0);
        do
            n = random_list(&rng, hosts);
        while (n < 3 || railgauge_list_open(&list, job, hosts, n, NULL) < 0);
        same_price(job, hosts, n, railgauge_list_cost(list));
        for (int i = 0; i < 300; i++) {
            int at = (int)rng_below(&rng, (unsigned)n + 2) - 1, host = (int)rng_below(&rng, 10) - 1;
            double sec = railgauge_list_swap(list, at, host, text);
            assert_true(isfinite(sec) == !*text);
            if (!isnan(sec))
                hosts[at] = host;
            swaps += !isnan(sec);
            same_price(job, hosts, n, railgauge_list_cost(list));
        }
        railgauge_list_close(list);
        railgauge_job_close(job);
        close_both(&b);
    }
    assert_true(swaps > 1000);
}

static void the_best_hosts_share_a_rack(void **state)
{
    static const int free_hosts[] = {0, 1, 4, 5, 6};
    struct railgauge_job *job;
    char text[256];
    struct both b;
    int hosts[3 * 8], exact = -1;
    double sec[8];

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_job_open(&job, b.r, "all_reduce 16M", text), 0);
    assert_int_equal(railgauge_nodes_best(job, free_hosts, 5, 3, 8, hosts, sec, &exact, text), 8);
    assert_int_equal(exact, 1);
    static const int rack[] = {4, 5, 6};
    assert_memory_equal(hosts, rack, sizeof(rack));
    for (int i = 0; i < 8; i++) {
        assert_true(railgauge_nodes_cost(job, hosts + 3 * i, 3, text) == sec[i]);
        assert_true(i == 0 || sec[i] >= sec[i - 1]);
    }
    assert_true(sec[1] > sec[0]);
    assert_int_equal(railgauge_nodes_best(job, free_hosts, 5, 5, 8, hosts, sec, NULL, NULL), 1);
    assert_int_equal(railgauge_nodes_best(job, free_hosts, 5, 6, 8, hosts, sec, NULL, text), -1);
    assert_non_null(strstr(text, "6 hosts of the 5 free ones"));
    assert_int_equal(railgauge_nodes_best(job, free_hosts, 5, 6, 8, hosts, sec, NULL, NULL), -1);
    railgauge_job_close(job);
    close_both(&b);
}

static void a_place_has_nodes_and_an_order(void **state)
{
    static const int free_hosts[] = {0, 4, 1, 5, 6}, twice[] = {0, 0};
    struct railgauge_placed placed = {.ranks = -7};
    struct railgauge_job *job;
    char text[256];
    struct both b;
    int order[16];

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_job_open(&job, b.r, "all_reduce 16M", text), 0);
    assert_int_equal(railgauge_place(job, free_hosts, 5, 3, 0, order, 16, &placed, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(placed.ranks, 6);
    for (int r = 0; r < 6; r++) /* those of the second rack, two endpoints each */
        assert_in_range(order[r], 8, 13);
    assert_true(placed.seconds == railgauge_collective(b.r, "all_reduce", order, 6, 16 << 20));
    assert_true(placed.as_listed == railgauge_nodes_cost(job, free_hosts, 3, text));
    assert_true(placed.bound <= placed.seconds && placed.seconds < placed.as_listed);
    assert_true(*placed.how);
    assert_int_equal(railgauge_place(job, free_hosts, 5, 0, 0.1, order, 16, &placed, NULL), 0);
    assert_int_equal(placed.ranks, 10);
    placed.ranks = -7;
    order[0] = -7;
    assert_int_equal(railgauge_place(job, free_hosts, 5, 3, 0, order, 5, &placed, text), -1);
    assert_non_null(strstr(text, "there is room for 5"));
    assert_int_equal(railgauge_place(job, free_hosts, 5, 6, 0, order, 16, &placed, text), -1);
    assert_non_null(strstr(text, "6 hosts of the 5 free ones"));
    assert_int_equal(railgauge_place(job, free_hosts, 5, -1, 0, order, 16, &placed, text), -1);
    assert_non_null(strstr(text, "-1 hosts of the 5 free ones"));
    assert_int_equal(railgauge_place(job, twice, 2, 0, 0, order, 16, &placed, text), -1);
    assert_non_null(strstr(text, "listed twice"));
    assert_int_equal(railgauge_place(job, free_hosts, 0, 0, 0, order, 16, &placed, text), -1);
    assert_non_null(strstr(text, "a list of 0 hosts"));
    assert_int_equal(railgauge_place(job, free_hosts, 5, 3, -1, order, 16, &placed, text), -1);
    assert_non_null(strstr(text, "0 to 86400"));
    assert_int_equal(railgauge_place(job, free_hosts, 5, 3, NAN, order, 16, &placed, NULL), -1);
    assert_true(placed.ranks == -7 && order[0] == -7);
    railgauge_job_close(job);
    close_both(&b);
}

/* A rank twice is no group; a million times the same takes no time either. */
static void an_endpoint_that_is_there_twice_is_no_answer(void **state)
{
    struct both b;
    int id[16], *many = mem_calloc(1000000, sizeof(*many));
    struct railgauge_range twice[] = {{0, 4, 1}, {3, 4, 1}}, once[] = {{4, 4, 1}, {0, 4, 1}};
    struct railgauge_group *g;
    char err[256];

    (void)state;
    open_both(&b, NULL);
    for (int i = 0; i < 16; i++)
        id[i] = 15 - i;
    assert_false(isnan(railgauge_collective(b.r, "all_gather", id, 16, 8)));
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < i; k++) {
            int was = id[i];
            id[i] = id[k];
            assert_true(isnan(railgauge_collective(b.r, "all_gather", id, 16, 8)));
            assert_int_equal(railgauge_group_open(&g, b.r, "all_gather", id, 16, err), -1);
            assert_non_null(strstr(err, "is twice in the group"));
            id[i] = was;
        }
    clock_t begin = clock();
    assert_true(isnan(railgauge_collective(b.r, "all_gather", many, 1000000, 8)));
    assert_true(clock() - begin < CLOCKS_PER_SEC / 10);
    assert_true(isnan(railgauge_collective_ranges(b.r, "all_gather", twice, 2, 8)));
    assert_false(isnan(railgauge_collective_ranges(b.r, "all_gather", once, 2, 8)));
    close_both(&b);
    free(many);
}

static void unknown_things_are_nan_and_nothing_takes_no_time(void **state)
{
    struct both b;
    const int ids[] = {0, 2, 4}, bad[] = {0, 99};

    (void)state;
    open_both(&b, NULL);
    assert_true(isnan(railgauge_pair(b.r, 0, 16, 8)));
    assert_true(isnan(railgauge_pair(b.r, -1, 0, 8)));
    assert_true(railgauge_pair(b.r, 3, 3, 8) == 0);
    assert_true(isnan(railgauge_collective(b.r, "all_gather", bad, 2, 8)));
    assert_true(isnan(railgauge_collective(b.r, "all_gossip", ids, 3, 8)));
    assert_true(isnan(railgauge_collective(b.r, "pair_bw", ids, 2, 8)));
    assert_true(isnan(railgauge_collective(b.r, "all_gather", ids, 1, 8)));
    assert_true(isnan(railgauge_collective(b.r, "all_gather", NULL, 3, 8)));
    assert_true(isnan(railgauge_collective(b.r, NULL, ids, 3, 8)));
    assert_true(isnan(railgauge_collective(NULL, "all_gather", ids, 3, 8)));
    assert_true(isnan(railgauge_collective_ranges(NULL, "all_gather", NULL, 1, 8)));
    assert_true(isnan(railgauge_collective_ranges(b.r, "all_gather", NULL, 1, 8)));
    assert_true(railgauge_pair(b.r, 0, 15, 0) > 0);
    assert_true(railgauge_pair(b.r, 0, 15, SIZE_MAX) > 1e9);
    close_both(&b);
    railgauge_close(NULL);
}

static void collectives_are_the_matrix_own(void **state)
{
    struct both b;
    struct cost c;
    const int ids[] = {0, 2, 4, 8};

    (void)state;
    open_both(&b, slow_parts);
    matrix_collective(&b.m, OP_ALL_REDUCE, ids, 4, 1 << 20, &c);
    double t = railgauge_collective(b.r, "all_reduce", ids, 4, 1 << 20);
    assert_true(fabs(t - c.sec) <= 1e-6 * c.sec);
    close_both(&b);
}

/* Many slow parts, of all kinds, on any group: what concerns nobody of it is not looked at. */
static void many_parts(struct matrix *m)
{
    struct rng rng;

    slow_parts(m);
    rack_parts(m);
    rng_seed(&rng, forgotten);
    for (int i = 0; i < 100; i++) {
        int a = (int)rng_below(&rng, 16), b = (a + 1 + (int)rng_below(&rng, 15)) % 16;
        if (i % 2)
            small_exception(m, PART_PAIR, a, b, -1, 0.2 + 0.007 * i);
        else if (forgotten % 2)
            small_exception(m, PART_ENDPOINT, a, -1, i % 3 - 1, 0.9 - 0.007 * i)->alpha_add =
                1e-7 * i;
    }
}

static void only_parts_near_a_group_slow_it(void **state)
{
    static const char *const ops[] = {"all_gather", "all_to_all", "all_reduce", "sendrecv"};
    struct rng rng;

    (void)state;
    rng_seed(&rng, 12);
    for (forgotten = 1; forgotten <= 6; forgotten++) {
        struct both b;
        struct cost c;
        open_both(&b, many_parts);
        for (int i = 0; i < 500; i++) {
            int ids[16], n = 2 + (int)rng_below(&rng, 15), op = op_find(ops[i % 4]);
            for (int k = 0; k < 16; k++)
                ids[k] = k;
            rng_shuffle(&rng, ids, 16);
            double size = (double)((size_t)1 << rng_below(&rng, 33));
            double sec = railgauge_collective(b.r, ops[i % 4], ids, n, (size_t)size);
            matrix_collective(&b.m, (enum op)op, ids, n, size, &c);
            if (!(isinf(c.sec) ? isinf(sec) : fabs(sec - c.sec) <= 1e-12 * c.sec))
                fail_msg("%s of %d: %.17g where the matrix says %.17g", ops[i % 4], n, sec, c.sec);
        }
        close_both(&b);
    }
}

/* A group resolved once says of any size what is said of its members. */
static void a_group_is_its_collective(void **state)
{
    static const char *ops[] = {"all_gather", "reduce_scatter", "all_to_all", "all_reduce",
                                "broadcast"};
    struct railgauge_group *g;
    char text[256];
    struct both b;
    struct rng rng;

    (void)state;
    rng_seed(&rng, 11);
    open_both(&b, slow_parts);
    for (int k = 0; k < 200; k++) {
        int ids[16], n = 2 + (int)rng_below(&rng, 15);
        const char *op = ops[k % 5];
        for (int i = 0; i < 16; i++)
            ids[i] = i;
        rng_shuffle(&rng, ids, 16);
        if (railgauge_group_open(&g, b.r, op, ids, n, text) < 0)
            fail_msg("%s", text);
        for (size_t s = 0; s < (size_t)1 << 33; s = 5 * s + 1) {
            double want = railgauge_collective(b.r, op, ids, n, s),
                   got = railgauge_group_time(g, s);
            if (!(got == want || (isnan(got) && isnan(want))))
                fail_msg("%s of %d, %zu bytes: %g, by its members %g", op, n, s, got, want);
            struct railgauge_price price;
            struct cost c;
            railgauge_group_price(g, s, &price);
            matrix_collective(&b.m, (enum op)op_find(op), ids, n, (double)s, &c);
            assert_true(price.seconds == want || isnan(want));
            assert_true((price.low == c.lo && price.high == c.hi) || isnan(want));
            assert_string_equal(price.basis, basis_name[c.basis]);
            assert_string_equal(price.source, c.source);
        }
        railgauge_group_close(g);
    }
    railgauge_group_close(NULL);
    assert_int_equal(railgauge_group_open(&g, b.r, "all_gossip", (int[]){0, 1}, 2, text), -1);
    assert_null(g);
    assert_string_equal(text, "all_gossip is no collective");
    assert_int_equal(railgauge_group_open(&g, b.r, "pair_bw", (int[]){0, 1}, 2, text), -1);
    assert_int_equal(railgauge_group_open(&g, b.r, NULL, (int[]){0, 1}, 2, NULL), -1);
    assert_int_equal(railgauge_group_open(&g, b.r, "all_gather", (int[]){0}, 1, text), -1);
    assert_string_equal(text, "a group of 1: it takes two endpoints");
    assert_int_equal(railgauge_group_open(&g, b.r, "all_gather", (int[]){0, 16}, 2, text), -1);
    assert_string_equal(text, "endpoint 16 of 16");
    close_both(&b);
}

/* Lists, sets and orders of a job with some GPUs taken: what is left is priced, and given. */
static void ranks_run_on_free_gpus(void **state)
{
    static const uint64_t one[8] = {1, 2, 1, 2, 1, 2, 1, 2}, none[8] = {0, 3, 3, 3, 3, 3, 3, 3};
    static const int hosts[] = {0, 1, 6, 7}, ids[] = {0, 3, 12, 15};
    struct railgauge_placed placed;
    struct railgauge_job *job;
    char text[256] = "before";
    int order[16], best[4];
    struct both b;
    double sec;

    (void)state;
    open_both(&b, slow_parts);
    assert_int_equal(railgauge_job_open(&job, b.r, "all_gather 16M", text), 0);
    double whole = railgauge_nodes_cost(job, hosts, 4, text);
    assert_int_equal(railgauge_job_free_gpus(job, one, text), 0);
    assert_string_equal(text, "");
    sec = railgauge_nodes_cost(job, hosts, 4, text);
    assert_true(fabs(sec / railgauge_collective(b.r, "all_gather", ids, 4, 16 << 20) - 1) < 1e-12);
    assert_int_equal(railgauge_place(job, hosts, 4, 0, 0.1, order, 16, &placed, text), 0);
    assert_int_equal(placed.ranks, 4);
    for (int i = 0; i < 4; i++)
        assert_true(order[i] == 0 || order[i] == 3 || order[i] == 12 || order[i] == 15);
    assert_int_equal(railgauge_place(job, hosts, 4, 2, 0.1, order, 16, &placed, text), 0);
    assert_int_equal(railgauge_nodes_best(job, hosts, 4, 2, 1, best, &sec, NULL, text), 1);
    assert_true(placed.seconds <= sec * (1 + 1e-12));
    assert_true(sec == railgauge_nodes_cost(job, best, 2, text));
    assert_int_equal(railgauge_job_free_gpus(job, none, NULL), 0);
    assert_true(isnan(railgauge_nodes_cost(job, hosts, 4, text)));
    assert_non_null(strstr(text, "host n00 has 0 endpoints"));
    assert_int_equal(railgauge_job_free_gpus(job, NULL, text), 0);
    assert_true(railgauge_nodes_cost(job, hosts, 4, text) == whole);
    railgauge_job_close(job);
    close_both(&b);
}

static void bits_are_hosts(void **state)
{
    const uint64_t bits[] = {0xa1 | 1ULL << 60}; /* of hosts that there are */
    int hosts[9] = {[3] = -7};
    struct both b;

    (void)state;
    open_both(&b, NULL);
    assert_int_equal(railgauge_hosts_in(b.r, bits, hosts), 3);
    assert_true(hosts[0] == 0 && hosts[1] == 5 && hosts[2] == 7 && hosts[3] == -7);
    close_both(&b);
}

static void a_preset_is_a_matrix(void **state)
{
    static const struct {
        const char *path, *says;
    } bad[] = {
        {"preset:no-such", "no-such"},
        {"preset:", "a preset has a name"},
        {"preset:../topo/fabrics/hgx-h100.json", "is no file"},
        {"preset:hgx-h100:0", "racks"},
        {"preset:hgx-h100:1e3", "racks"},
        {"preset:hgx-h100:-1", "racks"},
        {"preset:hgx-h100:99999999999", "racks"},
        {"preset:hgx-h100:2000000000", "endpoints"},
    };
    struct railgauge *r;
    char text[256];

    (void)state;
    if (railgauge_open(&r, "preset:gb200-nvl72:2", text) < 0)
        fail_msg("%s", text);
    assert_int_equal(railgauge_count(r), 144);
    assert_true(railgauge_pair(r, 0, 100, 1 << 20) > railgauge_pair(r, 0, 4, 1 << 20));
    assert_int_equal(railgauge_changed(r), 0);
    railgauge_close(r);
    assert_int_equal(railgauge_open(&r, "preset:hgx-h100", text), 0);
    railgauge_close(r);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(railgauge_open(&r, bad[i].path, text), -1);
        assert_null(r);
        if (!strstr(text, bad[i].says))
            fail_msg("%s: \"%s\" where \"%s\" is expected", bad[i].path, text, bad[i].says);
    }
}

/* Replaced by rename, as files are here, in place, or gone; by its own name or its directory's. */
static void a_file_that_is_another_by_now_has_changed(void **state)
{
    char dir[] = "/tmp/railgauge-api-XXXXXX", path[64], text[256];
    struct railgauge *r[2];
    struct matrix m;
    struct err err;

    (void)state;
    small_matrix(&m);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/matrix.json", dir);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(matrix_save(&m, path, &err), 0);
        for (int i = 0; i < 2; i++) {
            if (railgauge_open(&r[i], i ? dir : path, text) < 0)
                fail_msg("%s", text);
            assert_int_equal(railgauge_changed(r[i]), 0);
        }
        if (round == 0)
            assert_int_equal(matrix_save(&m, path, &err), 0);
        else if (round == 1)
            assert_int_equal(truncate(path, 10), 0);
        else
            unlink(path);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(railgauge_changed(r[i]), 1);
            assert_true(railgauge_pair(r[i], 0, 5, 1 << 20) > 0); /* it answers as before */
            railgauge_close(r[i]);
        }
    }
    rmdir(dir);
    matrix_free(&m);
}

static void a_file_that_cannot_be_read_is_refused_with_a_reason(void **state)
{
    struct railgauge *r = (struct railgauge *)1;
    char text[256];

    (void)state;
    assert_int_equal(railgauge_open(&r, "/nowhere/m.json", text), -1);
    assert_null(r);
    assert_non_null(strstr(text, "/nowhere/m.json"));
}

/* --- ranges --- */

static unsigned long long dice = 0x853c49e6748fea9bULL;

static int roll(int sides)
{
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((dice >> 33) % (unsigned)sides);
}

static void put(struct topo *t, int id, enum level level, const char *kind, int group)
{
    char name[32];

    snprintf(name, sizeof(name), "%s-%03d", kind, group);
    topo_place(t, &t->endpoint[id], level, name, SOURCE_USER);
}

/* Racks of a random number of hosts, mostly of one size; NVLink domains and leaves of several kinds. */
static void random_machine(struct matrix *m)
{
    int gpus = 1 << roll(4), racks = 1 + roll(7), usual = 1 + roll(6), uneven = roll(3) == 0, h = 0;
    int domain = roll(3), leaf = roll(4), under = 1 + roll(3), known = roll(5) > 0;
    struct topo *t = &m->topo;
    char name[32];

    matrix_init(m);
    m->transport = mem_strdup("sim");
    topo_init(t);
    for (int r = 0; r < racks; r++)
        for (int k = uneven ? roll(usual + 1) : 0; k < usual; k++, h++) {
            snprintf(name, sizeof(name), "n%03d", h);
            int host = topo_add_host(t, name);
            for (int g = 0; g < gpus; g++) {
                int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
                if (known)
                    put(t, id, LEVEL_RACK, "rack", r);
                if (domain)
                    put(t, id, LEVEL_DOMAIN, "domain", domain == 1 ? r : h);
                if (leaf)
                    put(t, id, LEVEL_LEAF, "leaf",
                        leaf == 1   ? r
                        : leaf == 2 ? r / under
                                    : r / under * gpus + g);
            }
        }
}

static void random_tiers(struct matrix *m)
{
    small_tier(m, "host", 1u << LEVEL_HOST, 2e-6, 400e9, false);
    if (roll(2))
        small_tier(m, "mnnvl", 1u << LEVEL_DOMAIN, 3e-6, 390e9, false);
    if (roll(2))
        small_tier(m, "rail", 1u << LEVEL_LEAF, 5e-6, roll(2) ? 49e9 : 40e9, true);
    if (roll(2))
        small_tier(m, "near", 1u << LEVEL_RACK | (roll(2) ? 1u << LEVEL_LEAF : 0), 6e-6, 45e9,
                   true);
    small_tier(m, "fabric", 0, 8e-6, roll(2) ? 40e9 : 30e9, true);
    if (roll(3) == 0)
        m->tier[m->tiers - 1].loaded = 0.4;
    if (roll(6) == 0)
        curve_free(&m->tier[roll(m->tiers)].curve[DIR_UNI]);
}

static void random_parts(struct matrix *m)
{
    struct topo *t = &m->topo;

    for (int i = roll(3) ? roll(6) : 0; i > 0; i--) {
        enum part part = (enum part)roll(PART_COUNT);
        int parts = part_count(m, part), a = parts ? roll(parts) : 0, b = -1;
        if (part_is_two(part) && parts > 1)
            b = (a + 1 + roll(parts - 1)) % parts;
        if (parts < 1 + part_is_two(part) || (part == PART_PAIR && t->endpoints < 2))
            continue;
        small_exception(m, part, a, b, roll(3) ? -1 : roll(m->tiers), 0.3 + 0.1 * roll(6))
            ->alpha_add = roll(2) * 1e-5;
    }
}

/* Up to three ranges one after the other; how many. */
static int random_ranges(struct railgauge_range range[3], int endpoints)
{
    static const int steps[] = {1, 1, 1, 2, 4, 8, 3, 5, 16, 24};
    int n = 0, at = roll(endpoints);

    for (int left = 1 + roll(3); left > 0 && at < endpoints; left--) {
        int step = steps[roll(10)], most = (endpoints - 1 - at) / step + 1;
        range[n] = (struct railgauge_range){at, 1 + roll(most), step};
        at += (range[n].count - 1) * step + 1 + roll(6);
        n++;
    }
    return n;
}

static int members_of(const struct railgauge_range *range, int n, int *ids)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < range[i].count; k++)
            ids[count++] = range[i].first + k * range[i].step;
    return count;
}

/* Both ways equal?  1: by ranges, 0: only members told. */
static int same_ways(const struct matrix *m, const struct stairs *stairs,
                     const struct railgauge_range *range, int n, const int *ids, int ranks)
{
    struct ranges g = {stairs, range, n, ranks};
    struct ways by_ids, by_ranges;
    enum op op = roll(2) ? OP_ALL_TO_ALL : OP_ALL_GATHER;

    ways_of(&by_ids, m, ids, ranks, op, false);
    if (!stairs->regular || ways_of_some(&by_ranges, m, &(struct members){NULL, ranks, &g}, op,
                                         NULL, m->exceptions) < 0)
        return 0;
    bool same = !memcmp(&by_ids, &by_ranges, offsetof(struct ways, slow));
    for (int i = 0; i < SCHEDULES; i++)
        same = same && by_ids.slow[i].outer == by_ranges.slow[i].outer &&
               by_ids.slow[i].add == by_ranges.slow[i].add &&
               by_ids.slow[i].exception == by_ranges.slow[i].exception;
    if (!same)
        fail_msg("%d ranks from %d by %d: %dr %dd x%d %dn %dr, nics %d, lone's share %g, by ranges "
                 "%dr %dd "
                 "x%d %dn %dr, nics %d, %g",
                 ranks, range->first, range->step, by_ids.shape.ranks, by_ids.shape.domains,
                 by_ids.shape.per_domain, by_ids.shape.nodes, by_ids.shape.racks, by_ids.shape.nics,
                 by_ids.share[0], by_ranges.shape.ranks, by_ranges.shape.domains,
                 by_ranges.shape.per_domain, by_ranges.shape.nodes, by_ranges.shape.racks,
                 by_ranges.shape.nics, by_ranges.share[0]);
    return 1;
}

static void same_time(const struct both *b, const struct railgauge_range *range, int n,
                      const int *ids, int ranks)
{
    static const char *const ops[] = {"all_gather", "all_reduce", "all_to_all", "sendrecv"};
    const char *op = ops[roll(4)];
    size_t bytes = (size_t)1 << roll(34);
    double x = railgauge_collective(b->r, op, ids, ranks, bytes);
    double y = railgauge_collective_ranges(b->r, op, range, n, bytes);

    if (memcmp(&x, &y, sizeof(x)) && !(isnan(x) && isnan(y)))
        fail_msg("%s of %d ranks: %.17g, as ranges %.17g", op, ranks, x, y);
}

static struct matrix *machine; /* what change() hands over */

static void take_machine(struct matrix *m)
{
    matrix_free(m);
    *m = *machine;
}

/* Asked of one machine: how many groups were told by ranges. */
static int ask_machine(struct both *b, int asked)
{
    int *ids = malloc((size_t)b->m.topo.endpoints * sizeof(*ids)), told = 0;
    struct railgauge_range range[3];
    struct stairs stairs;

    stairs_make(&stairs, &b->m.topo);
    for (int i = 0; i < asked; i++) {
        int n = random_ranges(range, b->m.topo.endpoints), ranks = members_of(range, n, ids);
        if (ranks < 2)
            continue;
        told += same_ways(&b->m, &stairs, range, n, ids, ranks);
        same_time(b, range, n, ids, ranks);
    }
    stairs_free(&stairs);
    free(ids);
    return told;
}

static void ranges_cost_what_their_members_do(void **state)
{
    enum { MACHINES = 200, ASKED = 60 };
    int told = 0;

    (void)state;
    dice += (unsigned long long)getpid();
    print_message("seed %llu\n", dice);
    for (int i = 0; i < MACHINES; i++) {
        struct matrix m;
        struct both b;
        random_machine(&m);
        if (m.topo.endpoints < 2) {
            matrix_free(&m);
            continue;
        }
        random_tiers(&m);
        random_parts(&m);
        machine = &m;
        open_both(&b, take_machine);
        told += ask_machine(&b, ASKED);
        close_both(&b);
    }
    assert_true(told > MACHINES * ASKED / 3);
}

static void ranges_of_a_preset_cost_what_their_members_do(void **state)
{
    static const char *const presets[] = {"gb200-nvl72", "hgx-h100", "hgx-a100-omnipath"};
    struct err err;
    int told = 0;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(presets) / sizeof(*presets); i++) {
        const char *preset = presets[i / 2];
        char path[64] = "/tmp/rg-api-preset-XXXXXX", text[256];
        struct both b;
        if (matrix_open(&b.m, NULL, preset, 5, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(b.m.topo.nics > 0 && b.m.topo.nic);
        if (i % 2) /* as a file, whose NICs are not read */
            close(mkstemp(path));
        if (i % 2 && matrix_save(&b.m, path, &err) < 0)
            fail_msg("%s", err.text);
        if (i % 2 == 0)
            snprintf(path, sizeof(path), "preset:%s:5", preset);
        if (railgauge_open(&b.r, path, text) < 0)
            fail_msg("%s", text);
        unlink(path);
        told += ask_machine(&b, 300);
        close_both(&b);
    }
    assert_true(told > 300);
}

static void ranges_that_are_none_have_no_price(void **state)
{
    struct railgauge_range r[] = {{0, 8, 1}, {0, 17, 1}, {-1, 3, 1},           {0, 4, 0},
                                  {0, 0, 1}, {5, 1, 1},  {0, INT_MAX, INT_MAX}};
    struct railgauge_range hosts;
    struct both b;

    (void)state;
    open_both(&b, NULL);
    assert_false(isnan(railgauge_collective_ranges(b.r, "all_gather", r, 1, 1 << 20)));
    for (int i = 1; i < 7; i++)
        assert_true(isnan(railgauge_collective_ranges(b.r, "all_gather", &r[i], 1, 1 << 20)));
    assert_true(isnan(railgauge_collective_ranges(b.r, "pair_bw", r, 1, 1 << 20)));
    assert_true(isnan(railgauge_collective_ranges(b.r, NULL, r, 1, 1 << 20)));
    assert_true(isnan(railgauge_collective_ranges(b.r, "all_gather", r, 0, 1 << 20)));
    assert_int_equal(railgauge_hosts_range(b.r, 2, 3, &hosts), 0);
    assert_int_equal(hosts.first, 4);
    assert_int_equal(hosts.count, 6);
    assert_int_equal(hosts.step, 1);
    assert_int_equal(railgauge_hosts_range(b.r, 7, 2, &hosts), -1);
    assert_int_equal(railgauge_hosts_range(b.r, -1, 2, &hosts), -1);
    assert_int_equal(railgauge_hosts_range(b.r, 1, 0, &hosts), -1);
    close_both(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_cost_what_their_members_do),
        cmocka_unit_test(ranges_of_a_preset_cost_what_their_members_do),
        cmocka_unit_test(ranges_that_are_none_have_no_price),
        cmocka_unit_test(pairs_are_within_a_thousandth_of_the_curves),
        cmocka_unit_test(slow_and_dead_parts_are_the_same_too),
        cmocka_unit_test(what_is_not_known_is_the_same_as_nothing),
        cmocka_unit_test(exceptions_of_every_kind_are_the_same),
        cmocka_unit_test(many_pairs_are_pairs),
        cmocka_unit_test(endpoints_are_found_by_host_and_index),
        cmocka_unit_test(hosts_and_their_groups_have_names),
        cmocka_unit_test(jobs_cost_what_their_collectives_do),
        cmocka_unit_test(many_lists_are_lists),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(a_list_that_changes_costs_what_it_is),
        cmocka_unit_test(the_best_hosts_share_a_rack),
        cmocka_unit_test(a_place_has_nodes_and_an_order),
        cmocka_unit_test(an_endpoint_that_is_there_twice_is_no_answer),
        cmocka_unit_test(unknown_things_are_nan_and_nothing_takes_no_time),
        cmocka_unit_test(collectives_are_the_matrix_own),
        cmocka_unit_test(a_group_is_its_collective),
        cmocka_unit_test(only_parts_near_a_group_slow_it),
        cmocka_unit_test(ranks_run_on_free_gpus),
        cmocka_unit_test(bits_are_hosts),
        cmocka_unit_test(a_preset_is_a_matrix),
        cmocka_unit_test(a_file_that_is_another_by_now_has_changed),
        cmocka_unit_test(a_file_that_cannot_be_read_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
