/* SPDX-License-Identifier: BSD-3-Clause */
/* place_jobs.c - several jobs at once: assign free hosts to each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "place/place_impl.h"

/* --- the file --- */

enum { PAIRED = 16 }; /* limit of jobs for placing them again in pairs */
enum { JOBS_MAX = 4096, JOB_NAME_MAX = 64, JOBS_BYTES = 16 << 20 };
static const char name_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

/* Names become parts of file names. */
static int check_name(const struct place_pack *p, const char *name, struct err *err)
{
    if (strlen(name) > JOB_NAME_MAX || *name == '.' || *name == '-' ||
        name[strspn(name, name_letters)])
        return err_usage(err, "\"%.80s\": a name is up to %d of letters, digits, \"_-.\"", name,
                         JOB_NAME_MAX);
    for (int i = 0; i < p->entries; i++)
        if (!strcmp(p->entry[i].name, name))
            return err_usage(err, "job %s is in line %d too", name, p->entry[i].line);
    return 0;
}

/* Set the number of hosts if not given: as many as the ranks of the layout fill. */
static int need_of(struct place_entry *e, int hosts, struct err *err)
{
    int per = host_slots_room(&e->job->slots, 0, e->job->per_node);
    struct place_step step;

    if (!e->need && !e->job->trains)
        return err_usage(err, "collectives do not say how many nodes: a number is needed, not -");
    if (place_job_step(&step, e->job, e->need ? e->need * per : hosts * per, err) < 0)
        return -1;
    e->ranks = step.ranks;
    if (!e->need)
        e->need = (step.ranks + per - 1) / per;
    return e->need <= hosts ? 0
                            : err_usage(err, "%d ranks are %d nodes, and %d are free", step.ranks,
                                        e->need, hosts);
}

/* "NAME NODES WORDS" */
static int read_job(struct place_pack *p, const struct matrix *m, char *line, int at, int hosts,
                    struct err *err)
{
    char *name = strsep(&line, " "), *nodes;
    struct err why;

    line = line ? line + strspn(line, " ") : NULL;
    nodes = line ? strsep(&line, " ") : NULL;
    if (!line)
        return err_usage(err, "\"%.80s\" is no job: NAME NODES WORDS", name);
    if (check_name(p, name, err) < 0)
        return -1;
    MEM_PUSH(p->entry, p->entries) = (struct place_entry){
        .name = mem_strdup(name), .line = at, .job = mem_calloc(1, sizeof(struct place_job))};
    struct place_entry *e = &p->entry[p->entries - 1];
    if (strcmp(nodes, "-") != 0 && units_int(&e->need, nodes, 1, hosts, &why) < 0)
        return err_usage(err, "nodes: %.200s", why.text);
    if (place_job_open(e->job, m, line, err) < 0)
        return -1;
    return need_of(e, hosts, err);
}

int place_pack_read(struct place_pack *p, const struct matrix *m, int hosts, struct err *err)
{
    char *text, *rest, *line;
    size_t len;
    int rc = file_read(&text, &len, p->path, JOBS_BYTES, err);

    if (rc < 0)
        return -1;
    rest = text;
    for (int at = 1; rc == 0 && (line = strsep(&rest, "\n")) != NULL; at++) {
        struct err why = {0, ""};
        line[strcspn(line, "#\r")] = '\0';
        for (char *c = line; *c; c++)
            *c = *c == '\t' ? ' ' : *c;
        line += strspn(line, " ");
        if (*line && p->entries == JOBS_MAX)
            rc = err_data(err, "%s:%d: more than %d jobs", p->path, at, JOBS_MAX);
        else if (*line && read_job(p, m, line, at, hosts, &why) < 0)
            rc = err_data(err, "%s:%d: %.400s", p->path, at, why.text);
    }
    free(text);
    return rc < 0 || p->entries ? rc : err_data(err, "%s: no job", p->path);
}

void place_pack_free(struct place_pack *p)
{
    for (int i = 0; i < p->entries; i++) {
        placed_free(&p->entry[i].placed);
        place_job_close(p->entry[i].job);
        free(p->entry[i].job);
        free(p->entry[i].name);
    }
    free(p->entry);
    *p = (struct place_pack){.path = NULL};
}

/* --- assignment of hosts --- */

struct packing {
    struct place_entry *entry;
    int entries;
    const struct matrix *matrix;
    const int *host;
    int hosts;
    double limit;
    bool *taken; /* per host of the topology */
};

static void take(const struct packing *k, const struct placed *p, bool taken)
{
    for (int r = 0; r < p->ranks; r++)
        k->taken[topo_at(&k->matrix->topo, p->order[r], LEVEL_HOST)] = taken;
}

/* Place one job on the hosts that are not taken. */
static int place_one(const struct packing *k, struct placed *out, int i, struct err *err)
{
    const struct place_entry *e = &k->entry[i];
    int *left = mem_calloc((size_t)k->hosts + 1, sizeof(int)), n = 0, rc = -1;

    for (int h = 0; h < k->hosts; h++)
        if (!k->taken[k->host[h]])
            left[n++] = k->host[h];
    *out = (struct placed){.order = NULL};
    if (n < e->need)
        err_usage(err, "%d nodes are needed and %d are left", e->need, n);
    else
        rc = place_job_run(out, e->job, left, n, e->need, k->limit, err);
    if (rc == 0 && !(out->sec < INFINITY)) {
        placed_free(out);
        rc = err_usage(err, "%d nodes are needed, and those that are left have a dead part",
                       e->need);
        if (err)
            err->code = EXIT_UNJUDGED;
    }
    if (rc == 0)
        take(k, out, true);
    free(left);
    return rc;
}

/* Place the jobs in this order.  -1: *failed has no place.  The caller owns out in every case. */
static int in_turn(const struct packing *k, const int *turn, struct placed *out, int *failed,
                   struct err *err)
{
    memset(k->taken, 0, (size_t)k->matrix->topo.hosts * sizeof(bool));
    for (int i = 0; i < k->entries; i++)
        if (place_one(k, &out[turn[i]], turn[i], err) < 0) {
            *failed = turn[i];
            return -1;
        }
    return 0;
}

/* Objective to minimise: sum over jobs of step / step alone. */
static double slowdown(const struct packing *k, const struct placed *p)
{
    double sum = 0;

    for (int i = 0; i < k->entries; i++)
        sum += p[i].sec / k->entry[i].alone;
    return sum;
}

/* Place these jobs again, one after the other, on the hosts left by the others.  Kept if their sum
 * is smaller. */
static bool place_again(const struct packing *k, struct placed *p, const int *which, int n)
{
    struct placed again[2] = {{.order = NULL}, {.order = NULL}};
    double before = 0, after = 0;
    bool found = true;

    for (int i = 0; i < n; i++) {
        take(k, &p[which[i]], false);
        before += p[which[i]].sec / k->entry[which[i]].alone;
    }
    for (int i = 0; i < n && found; i++) {
        found = place_one(k, &again[i], which[i], NULL) == 0;
        after += found ? again[i].sec / k->entry[which[i]].alone : INFINITY;
    }
    bool gain = after < before * (1 - 1e-6);
    for (int i = 0; i < n; i++)
        if (again[i].order)
            take(k, &again[i], false);
    for (int i = 0; i < n; i++) {
        struct placed keep = p[which[i]];
        if (gain) {
            p[which[i]] = again[i];
            again[i] = keep;
        }
        take(k, &p[which[i]], true);
        placed_free(&again[i]);
    }
    return gain;
}

/* Place again each job that is slower than alone; with few jobs also together with each other one,
 * placed after it.  Repeat while one improves. */
static void improve(const struct packing *k, struct placed *p)
{
    bool better = true;

    for (int turn = 0; better && turn < k->entries; turn++) {
        better = false;
        for (int i = 0; i < k->entries; i++) {
            bool slow = p[i].sec > k->entry[i].alone * (1 + 1e-6);
            if (slow)
                better |= place_again(k, p, &i, 1);
            for (int j = 0; slow && k->entries <= PAIRED && j < k->entries; j++)
                if (j != i)
                    better |= place_again(k, p, (const int[]){i, j}, 2);
        }
    }
}

struct by_need {
    int need, at;
};

static int largest_first(const void *a, const void *b)
{
    const struct by_need *x = a, *y = b;

    return x->need != y->need ? y->need - x->need : x->at - y->at;
}

static void turns_of(const struct packing *k, int *listed, int *large)
{
    struct by_need *by = mem_calloc((size_t)k->entries + 1, sizeof(*by));

    for (int i = 0; i < k->entries; i++)
        by[i] = (struct by_need){k->entry[i].need, listed[i] = i};
    qsort(by, (size_t)k->entries, sizeof(*by), largest_first);
    for (int i = 0; i < k->entries; i++)
        large[i] = by[i].at;
    free(by);
}

/* Try large jobs first, then jobs as listed.  The better result is improved. */
static int best_turn(const struct packing *k, int *failed, struct err *err)
{
    size_t n = (size_t)k->entries + 1;
    int *turn[2] = {mem_calloc(n, sizeof(int)), mem_calloc(n, sizeof(int))}, best = -1;
    struct placed *p[2] = {mem_calloc(n, sizeof(**p)), mem_calloc(n, sizeof(**p))};
    double sum[2] = {INFINITY, INFINITY};

    turns_of(k, turn[1], turn[0]);
    bool same = !memcmp(turn[0], turn[1], (size_t)k->entries * sizeof(int));
    for (int t = 0; t < (same ? 1 : 2); t++) {
        struct err why = {0, ""};
        if (in_turn(k, turn[t], p[t], failed, best < 0 ? err : &why) == 0) {
            improve(k, p[t]);
            sum[t] = slowdown(k, p[t]);
            best = best < 0 || sum[t] < sum[best] * (1 - 1e-9) ? t : best;
        }
    }
    for (int i = 0; best >= 0 && i < k->entries; i++) {
        k->entry[i].placed = p[best][i];
        p[best][i] = (struct placed){.order = NULL};
    }
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < k->entries; i++)
            placed_free(&p[t][i]);
        free(p[t]);
        free(turn[t]);
    }
    return best < 0 ? -1 : 0;
}

static int alone(const struct packing *k, int *failed, struct err *err)
{
    for (int i = 0; i < k->entries; i++) {
        struct placed p;
        memset(k->taken, 0, (size_t)k->matrix->topo.hosts * sizeof(bool));
        int rc = place_one(k, &p, i, err);
        k->entry[i].alone = p.sec;
        placed_free(&p);
        if (rc < 0) {
            *failed = i;
            return -1;
        }
    }
    return 0;
}

/* --- hosts left --- */

static int descending(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

/* Count the groups of the level that a job touches, and the fewest that could hold it on the empty
 * machine. */
static void count_touched(const struct packing *k, struct place_entry *e, struct place_level *l,
                          int at, const int *size, const int *of)
{
    int *mine = mem_calloc((size_t)l->groups + 1, sizeof(int)), left = e->need;
    int *sorted = mem_calloc((size_t)l->groups + 1, sizeof(int));

    for (int r = 0; r < e->placed.ranks; r++) {
        int group = of[topo_at(&k->matrix->topo, e->placed.order[r], LEVEL_HOST)];
        if (group >= 0)
            mine[group]++;
    }
    memcpy(sorted, size, (size_t)l->groups * sizeof(int));
    qsort(sorted, (size_t)l->groups, sizeof(int), descending);
    for (int g = 0; g < l->groups; g++) {
        e->touched[at] += mine[g] > 0;
        e->fewest[at] += left > 0;
        left -= sorted[g];
    }
    free(mine);
    free(sorted);
}

static void count_level(const struct packing *k, struct place_level *l, int at)
{
    const struct topo *t = &k->matrix->topo;
    int groups = t->group[l->level].count, *of = mem_calloc((size_t)t->hosts + 1, sizeof(int));
    int *size = mem_calloc((size_t)groups + 1, sizeof(int));
    int *empty = mem_calloc((size_t)groups + 1, sizeof(int));

    l->groups = groups;
    for (int e = 0; e < t->endpoints; e++)
        of[topo_at(t, e, LEVEL_HOST)] = topo_at(t, e, l->level);
    for (int h = 0; h < k->hosts; h++) {
        if (of[k->host[h]] < 0) /* group unknown */
            continue;
        size[of[k->host[h]]]++;
        empty[of[k->host[h]]] += !k->taken[k->host[h]];
    }
    for (int g = 0; g < groups; g++) {
        l->whole += size[g] > 0 && empty[g] == size[g];
        l->split += empty[g] > 0 && empty[g] < size[g];
        l->nodes += empty[g] < size[g] ? empty[g] : 0;
        l->largest = empty[g] > l->largest ? empty[g] : l->largest;
    }
    for (int i = 0; i < k->entries; i++)
        count_touched(k, &k->entry[i], l, at, size, of);
    free(of);
    free(size);
    free(empty);
}

static int count_left(struct place_pack *out, const struct packing *k, struct err *err)
{
    struct host_slots slots;
    struct node_pool pool;
    int level[LEVEL_COUNT];

    memset(k->taken, 0, (size_t)k->matrix->topo.hosts * sizeof(bool));
    for (int i = 0; i < k->entries; i++)
        take(k, &k->entry[i].placed, true);
    for (int h = 0; h < k->hosts; h++)
        out->free_hosts += !k->taken[k->host[h]];
    host_slots_make(&slots, &k->matrix->topo);
    int rc = node_pool_make(&pool, k->matrix, &slots, k->host, k->hosts, 0, err);
    out->levels = rc == 0 ? node_pool_levels(&pool, level) : 0;
    for (int i = 0; i < out->levels; i++) {
        out->level[i].level = level[i];
        count_level(k, &out->level[i], i);
    }
    node_pool_free(&pool);
    host_slots_free(&slots);
    return rc;
}

int place_pack(struct place_pack *p, const struct matrix *m, const int *host, int hosts,
               double limit, struct err *err)
{
    struct packing k = {p->entry, p->entries, m, host, hosts, limit, NULL};
    struct err why = {0, ""};
    int failed = 0;

    k.taken = mem_calloc((size_t)m->topo.hosts + 1, sizeof(bool));
    int rc = alone(&k, &failed, &why);
    if (rc == 0)
        rc = best_turn(&k, &failed, &why);
    if (rc == 0)
        rc = count_left(p, &k, &why);
    if (rc < 0) {
        err_usage(err, "%s:%d: job %s: %.400s", p->path, p->entry[failed].line,
                  p->entry[failed].name, why.text);
        err->code = why.code;
    }
    free(k.taken);
    return rc;
}
