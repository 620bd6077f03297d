/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/device/gpu_binding.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/gpu.h"

int gpu_binding_trade(struct world *w, struct gpu_binding **all, struct err *err)
{
    const struct gpu_facts *gpu = gpu_facts();
    struct gpu_binding mine = {.host = ""};
    void *each;

    host_self(mine.host, sizeof(mine.host));
    if (gpu) {
        snprintf(mine.uuid, sizeof(mine.uuid), "%s", gpu->uuid);
        snprintf(mine.busid, sizeof(mine.busid), "%s", gpu->busid);
    }
    int rc = world_trade(w, &mine, sizeof(mine), &each, err);
    *all = each;
    return rc;
}

bool gpu_binding_same(const struct gpu_binding *a, const struct gpu_binding *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->busid, b->busid) && !strcmp(a->uuid, b->uuid);
}

/* Place among the ranks of a host, as the launcher declares it; -1: not declared. */
static int local_by_launcher(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID", "PMI_LOCAL_RANK"};
    int local;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *text = getenv(names[i]);
        if (text && units_int(&local, text, 0, 1 << 20, NULL) == 0)
            return local;
    }
    return -1;
}

static int local_by_host(const struct gpu_binding *all, int rank)
{
    int local = 0;

    for (int r = 0; r < rank; r++)
        local += !strcmp(all[r].host, all[rank].host);
    return local;
}

static int open_gpu(int local, struct err *err)
{
    int gpus = gpu_count(err);

    return gpus < 1 ? -1 : gpu_open(local % gpus, err);
}

/* Find the first two ranks on one GPU. */
static bool find_shared(const struct gpu_binding *all, int n, int *a, int *b)
{
    for (*b = 1; *b < n; ++*b)
        for (*a = 0; *a < *b; ++*a)
            if (gpu_binding_same(&all[*a], &all[*b]))
                return true;
    return false;
}

static bool same_host(const struct gpu_binding *all, int n)
{
    for (int r = 1; r < n; r++)
        if (strcmp(all[r].host, all[0].host))
            return false;
    return true;
}

static int judge_sharing(bool share, const struct gpu_binding *all, int n, struct err *err)
{
    int a, b;

    if (!find_shared(all, n, &a, &b))
        return 0;
    if (!share)
        return err_config(err,
                          "ranks %d and %d (host %s) would use the same GPU %s: start one rank a "
                          "GPU, or try things out with --share-gpu",
                          a, b, all[a].host, all[a].busid);
    json_provenance_add("shared_gpu", "several ranks share one GPU: not a fabric measurement");
    return 0;
}

int gpu_binding_take(struct world *w, bool share, bool *one_host, struct err *err)
{
    int local = local_by_launcher();
    struct gpu_binding *all;
    int rc = gpu_binding_trade(w, &all, err);

    if (rc == 0 && one_host)
        *one_host = same_host(all, w->size);
    if (rc == 0 && local < 0)
        local = local_by_host(all, w->rank);
    free(all);
    if (rc < 0 || w->agree(w, open_gpu(local, err), err) < 0)
        return -1;
    char *device = mem_printf("bus/pci/devices/%s", gpu_facts() ? gpu_facts()->busid : "");
    rc = gpu_binding_place(w, device, err);
    free(device);
    if (rc < 0)
        return -1;
    rc = gpu_binding_trade(w, &all, err);
    if (rc == 0)
        rc = judge_sharing(share, all, w->size, err);
    free(all);
    return rc;
}

/* --- NUMA nodes --- */

enum gpu_bind gpu_bind_asked;

enum place_state { PLACE_FREE, PLACE_BOUND, PLACE_UNKNOWN, PLACE_CLOSED };
struct place {
    char host[64];
    enum place_state state;
    int node, cores;
};

/* First line of a file of the device; false: not readable. */
static bool read_fact(const char *device, const char *name, char line[4096])
{
    char *path = mem_printf("%s/%s/%s", host_sys(), device, name);
    FILE *f = fopen(path, "re");
    bool read = f && fgets(line, 4096, f);

    if (f)
        fclose(f);
    free(path);
    line[read ? strcspn(line, "\n") : 0] = '\0';
    return read;
}

/* Parse a list of the kernel, "0-15,32-47". */
static void parse_cores(cpu_set_t *set, const char *text)
{
    int first, last, used;

    CPU_ZERO(set);
    for (; sscanf(text, "%d%n", &first, &used) == 1; text += *text == ',') {
        text += used;
        last = first;
        if (sscanf(text, "-%d%n", &last, &used) == 1)
            text += used;
        for (int i = first; i >= 0 && i <= last && i < CPU_SETSIZE; i++)
            CPU_SET(i, set);
    }
}

/* Memory of this thread comes from the node while it has some: MPOL_PREFERRED of
 * linux/mempolicy.h.  In containers that forbid the call the first touch decides, which is by the
 * bound cores as well. */
static void prefer_memory(int node)
{
    enum { PREFERRED = 1, NODES = 1024, LONG = 8 * (int)sizeof(unsigned long) };
    unsigned long mask[NODES / LONG] = {0};

    if (node < NODES) {
        mask[node / LONG] |= 1UL << node % LONG;
        syscall(SYS_set_mempolicy, PREFERRED, mask, NODES + 1);
    }
}

static struct place bind_to(const char *device)
{
    struct place p = {.node = -1};
    cpu_set_t allowed, near, both;
    char line[4096];

    host_self(p.host, sizeof(p.host));
    if (gpu_bind_asked == GPU_BIND_NONE)
        return p;
    p.state = PLACE_UNKNOWN;
    if (!read_fact(device, "numa_node", line) || sscanf(line, "%d", &p.node) != 1 || p.node < 0 ||
        !read_fact(device, "local_cpulist", line) ||
        sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return p;
    parse_cores(&near, line);
    CPU_AND(&both, &allowed, &near);
    p.cores = CPU_COUNT(&both);
    p.state =
        p.cores && sched_setaffinity(0, sizeof(both), &both) == 0 ? PLACE_BOUND : PLACE_CLOSED;
    if (p.state == PLACE_BOUND)
        prefer_memory(p.node);
    return p;
}

static int judge_place(const struct place *p, const char *device, struct err *err)
{
    if (gpu_bind_asked != GPU_BIND_DEVICE || p->state == PLACE_BOUND)
        return 0;
    return p->state == PLACE_CLOSED
               ? err_config(
                     err,
                     "--bind device: %s (host %s) is at NUMA node %d, of which this rank may "
                     "use no core (launcher or cgroup)",
                     device, p->host, p->node)
               : err_config(err, "--bind device: the kernel names no NUMA node of %s (host %s)",
                            device, p->host);
}

/* "0-3 to NUMA node 0, 4-7 to NUMA node 1" for the ranks of a host, counted on it.  The caller
 * frees. */
static char *binding_text(const struct place *all, int n, const char *host)
{
    char *text = mem_strdup("");
    const struct place *before = NULL;
    int local = 0, first = 0;

    for (int r = 0; r <= n; r++) {
        const struct place *p = r < n ? &all[r] : NULL;
        if (p && strcmp(p->host, host) != 0)
            continue;
        if (before && (!p || p->node != before->node || p->state != before->state)) {
            text = mem_append(text, first < local - 1 ? "%s%d-%d" : "%s%d", *text ? ", " : "",
                              first, local - 1);
            text = before->state == PLACE_BOUND
                       ? mem_append(text, " to NUMA node %d", before->node)
                       : mem_append(text, before->state == PLACE_CLOSED
                                              ? " not: no core at their device may be used"
                                              : " not");
            first = local;
        }
        before = p;
        local++;
    }
    return text;
}

/* On rank 0. */
static void tell_places(const struct place *all, int n)
{
    char *usual = binding_text(all, n, all[0].host), *named = NULL;
    int hosts = 0;

    json_provenance_add("binding", usual);
    if (strstr(usual, "NUMA"))
        log_info("ranks of a host are bound: %s", usual);
    for (int r = 0; r < n; r++) {
        int first = 0;
        while (strcmp(all[first].host, all[r].host) != 0)
            first++;
        char *text = first == r ? binding_text(all, n, all[r].host) : NULL;
        if (text && strcmp(text, usual) != 0 && hosts++ < 3)
            named = mem_append(named, "%s%s binds %s", named ? "; " : "", all[r].host, text);
        free(text);
    }
    if (hosts)
        log_warn("hosts bind their ranks differently: %s binds %s; %s%s", all[0].host, usual, named,
                 hosts > 3 ? "; and others" : "");
    free(named);
    free(usual);
}

int gpu_binding_place(struct world *w, const char *device, struct err *err)
{
    static bool told;
    struct place mine = bind_to(device);
    void *all = NULL;

    int rc = w->agree(w, judge_place(&mine, device, err), err);
    if (rc == 0)
        rc = world_trade(w, &mine, sizeof(mine), &all, err);
    if (rc == 0 && w->rank == 0 && !told)
        tell_places(all, w->size);
    told = true;
    free(all);
    return rc;
}
