/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/gather.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/net/rails.h"

/* --- this host --- */

/* Record what no source of this machine shows.  Measuring may still find it. */
static void say_unseen(struct topo *t, const char *root)
{
    bool gpu = t->endpoints > 0 && t->endpoint[0].kind == ENDPOINT_GPU, domain = false;

    for (int i = 0; i < t->unseens; i++)
        domain = domain || !strcmp(t->unseen[i].what, "NVLink domain");
    if (!domain && !t->group[LEVEL_DOMAIN].count)
        topo_unseen(t, "NVLink domain",
                    t->gpus ? "NVML tells of none that is up and registered"
                    : host_has_file(root, "/proc/driver/nvidia/version", "")
                        ? "the NVIDIA driver is there, but shows no GPU"
                    : gpu ? "GPUs on PCI, but no NVIDIA driver on this host"
                          : "no NVIDIA driver on this host");
    topo_unseen(t, "leaf switch", "neither the InfiniBand subnet nor LLDP is asked");
    if (!t->group[LEVEL_RACK].count)
        topo_unseen(t, "rack", "nothing on a host names it; measured pairs may show it");
}

/* Read all local sources in order, for one host named `hostname`. */
static int read_local(struct topo *t, const char *hostname, const char *root, struct err *err)
{
    int host = topo_add_host(t, hostname);

    if (topo_read_sysfs_net(t, host, root, err) < 0 || topo_read_verbs(t, host, root, err) < 0 ||
        topo_read_hwloc(t, host, root, err) < 0 || topo_read_nvml(t, host, root, err) < 0 ||
        topo_read_gdr(t, host, root, err) < 0)
        return -1;
    say_unseen(t, root);
    topo_default_tiers(t);
    return 0;
}

/* --- all ranks --- */

/* Description of one rank, sent as bytes between equal programs. */
struct who {
    char host[256]; /* the node */
    char seen[256]; /* MPI's name: the pod, of which a node can have several */
    char boot[40]; /* kernel's boot id, the same in all containers of a machine; "": not readable */
    char busid[16]; /* PCI address of the GPU it uses; "": unknown */
    int numa;       /* NUMA node of the core it is bound to; -1: not bound or not visible */
};

/* Return the lowest failed rank's error on all ranks. */
static int agree(MPI_Comm comm, int rc, struct err *err)
{
    struct {
        int rc, rank;
    } mine = {rc, 0}, worst;
    struct err told = {0};

    MPI_Comm_rank(comm, &mine.rank);
    MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, comm);
    if (worst.rc == 0)
        return 0;
    if (worst.rank == mine.rank && err)
        told = *err;
    MPI_Bcast(&told, (int)sizeof(told), MPI_BYTE, worst.rank, comm);
    told.text[sizeof(told.text) - 1] = '\0';
    return err_code(err, told.code, "rank %d: %.400s", worst.rank, told.text);
}

static int numa_of_cpu(int cpu, const char *root)
{
    char path[80];

    for (int node = 0; node < 1024; node++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (host_has_file(root, path, ""))
            return node;
    }
    return -1;
}

/* MPI's name, unless something names the node. */
static void name_host(struct who *w)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "", kernel[256];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    int len;

    MPI_Get_processor_name(name, &len);
    snprintf(w->seen, sizeof(w->seen), "%.255s", name);
    host_self(w->host, sizeof(w->host));
    if (!strcmp(w->host, host_kernel(kernel, sizeof(kernel))))
        memcpy(w->host, w->seen, sizeof(w->host));
    if (f && fscanf(f, "%39s", w->boot) != 1)
        w->boot[0] = '\0';
    if (f)
        fclose(f);
}

/* Launchers can hand on one host's environment to all: then $NODE_NAME names many machines. */
static int check_name(const struct who *all, int rank, struct err *err)
{
    const struct who *me = &all[rank], *w = all;

    for (int r = 0; r < rank; r++, w++)
        if (*w->boot && *me->boot && !strcmp(w->host, me->host) && strcmp(w->seen, me->seen) &&
            strcmp(w->boot, me->boot))
            return err_config(err,
                              "ranks %d (%s) and %d (%s) are on two machines, and both are told to "
                              "be on node %s (unset NODE_NAME, or set it for each pod)",
                              r, w->seen, rank, me->seen, me->host);
    return 0;
}

/* Report the NUMA node only if the rank is bound: a rank that runs on every core has no place. */
static void describe(struct who *w, const char *root, const char *busid)
{
    cpu_set_t set;

    memset(w, 0, sizeof(*w));
    name_host(w);
    snprintf(w->busid, sizeof(w->busid), "%.15s", busid ? busid : "");
    w->numa = -1;
    if (sched_getaffinity(0, sizeof(set), &set) != 0 ||
        CPU_COUNT(&set) >= sysconf(_SC_NPROCESSORS_ONLN))
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            w->numa = numa_of_cpu(cpu, root);
            return;
        }
}

static bool same_pod(const struct who *all, int r, int other)
{
    return !strcmp(all[r].host, all[other].host) && !strcmp(all[r].seen, all[other].seen);
}

/* Return the lowest rank on this rank's host; where a node has several pods, in its pod, because
 * each pod sees its own GPUs. */
static int leader_of(const struct who *all, int rank)
{
    for (int r = 0; r < rank; r++)
        if (same_pod(all, r, rank))
            return r;
    return rank;
}

/* Send the host facts of every leader, as JSON text, to rank 0.  texts[r] is the text of rank r,
 * "" for ranks that do not lead; all are in one block, which the caller frees through *block. */
static int collect(MPI_Comm comm, const char *mine, char **block, const char ***texts,
                   struct err *err)
{
    int rank, size, len = mine ? (int)strlen(mine) + 1 : 0, rc = 0;
    int *lens = NULL, *offsets = NULL;
    long long total = 0;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    *block = NULL;
    *texts = NULL;
    if (rank == 0) {
        lens = mem_calloc((size_t)size, sizeof(*lens));
        offsets = mem_calloc((size_t)size, sizeof(*offsets));
    }
    MPI_Gather(&len, 1, MPI_INT, lens, 1, MPI_INT, 0, comm);
    for (int r = 0; rank == 0 && r < size; r++) {
        offsets[r] = (int)(total < INT_MAX ? total : INT_MAX);
        total += lens[r];
    }
    if (total > INT_MAX)
        rc = err_set(err, "the hosts' facts are %lld bytes, more than %d", total, INT_MAX);
    if (rc == 0 && rank == 0 && !(*block = calloc((size_t)total + 1, 1)))
        rc = err_set(err, "no memory for %lld bytes of the hosts' facts", total);
    rc = agree(comm, rc, err);
    if (rc == 0)
        MPI_Gatherv(mine, len, MPI_CHAR, *block, lens, offsets, MPI_CHAR, 0, comm);
    if (rc == 0 && rank == 0) {
        *texts = mem_calloc((size_t)size, sizeof(**texts));
        for (int r = 0; r < size; r++)
            (*texts)[r] = lens[r] ? *block + offsets[r] : "";
    }
    free(lens);
    free(offsets);
    return rc;
}

/* A pod: usually the whole host. */
struct pod {
    struct topo one; /* what its leader saw */
    int *nic;        /* index in the whole for each NIC of it */
    int ranks, given;
};

static int same_nic(const struct topo *t, const struct nic *n, int host)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, n->name))
            return i;
    return -1;
}

static bool has_gpu(const struct topo *t, const struct gpu *g, int host)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].host == host && !strcmp(t->gpu[i].busid, g->busid))
            return true;
    return false;
}

/* Add the devices that another pod of the node did not see. */
static void merge_pod(struct topo *out, int host, struct pod *p)
{
    for (int i = 0; i < p->one.nics; i++) {
        p->nic[i] = same_nic(out, &p->one.nic[i], host);
        if (p->nic[i] >= 0)
            continue;
        p->nic[i] = out->nics;
        MEM_PUSH(out->nic, out->nics) = p->one.nic[i];
        out->nic[p->nic[i]].host = host;
    }
    for (int i = 0; i < p->one.gpus; i++) {
        if (has_gpu(out, &p->one.gpu[i], host))
            continue;
        MEM_PUSH(out->gpu, out->gpus) = p->one.gpu[i];
        out->gpu[out->gpus - 1].host = host;
    }
}

/* Append host, NICs and reasons of a one-host topology.  Its endpoints stay, as devices. */
static int merge_host(struct topo *out, struct pod *p, struct err *err)
{
    struct topo bare = p->one;
    int host = topo_find_host(out, p->one.host[0].name);

    p->nic = mem_calloc((size_t)p->one.nics + 1, sizeof(*p->nic));
    if (host >= 0) {
        merge_pod(out, host, p);
        return 0;
    }
    for (int i = 0; i < p->one.nics; i++)
        p->nic[i] = out->nics + i;
    bare.endpoints = 0;
    return topo_append(out, &bare, err);
}

static bool same_busid(const char *a, const char *b)
{
    unsigned x[4], y[4];

    return sscanf(a, "%x:%x:%x.%x", &x[0], &x[1], &x[2], &x[3]) == 4 &&
           sscanf(b, "%x:%x:%x.%x", &y[0], &y[1], &y[2], &y[3]) == 4 && !memcmp(x, y, sizeof(x));
}

/* Device of a rank, on a host with `ranks` ranks: the GPU that the rank named; else the GPU at the
 * same position, if there are enough GPUs; else the socket that the rank is bound to.  -1: no
 * device. */
static int device_of(const struct topo *one, const struct who *w, int local, int ranks)
{
    bool gpus = one->endpoints > 0 && one->endpoint[0].kind == ENDPOINT_GPU;

    for (int i = 0; *w->busid && i < one->endpoints; i++)
        if (same_busid(one->endpoint[i].busid, w->busid))
            return i;
    if (gpus && !*w->busid && ranks <= one->endpoints)
        return local;
    for (int i = 0; !gpus && !*w->busid && i < one->endpoints; i++)
        if (one->endpoints == 1 || (w->numa >= 0 && one->endpoint[i].numa == w->numa))
            return i;
    return -1;
}

/* Copy all coordinates of the device except its host. */
static void take_place(struct topo *out, struct endpoint *to, const struct topo *one,
                       const struct endpoint *from)
{
    for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
        if (from->place.at[l] >= 0)
            topo_place(out, to, l, one->group[l].name[from->place.at[l]], from->source[l]);
}

static void add_rank(struct topo *out, struct pod *p, const struct who *w)
{
    const struct topo *one = &p->one;
    int host = topo_add_host(out, w->host), at = device_of(one, w, p->given++, p->ranks);
    const struct endpoint *device = at < 0 ? NULL : &one->endpoint[at];
    bool gpu = *w->busid || (device && device->kind == ENDPOINT_GPU);
    int id = topo_add_endpoint(out, host, gpu ? ENDPOINT_GPU : ENDPOINT_CPU);
    struct endpoint *e = &out->endpoint[id];

    e->numa = w->numa;
    e->nic = one->nics == 1 ? p->nic[0] : -1;
    if (!device) {
        snprintf(e->busid, sizeof(e->busid), "%s", w->busid);
        if (!gpu && one->host[0].cpu)
            snprintf(e->model, sizeof(e->model), "%s", one->host[0].cpu);
        return;
    }
    if (device->numa >= 0)
        e->numa = device->numa;
    e->nic = device->nic < 0 ? -1 : p->nic[device->nic];
    memcpy(e->busid, device->busid, sizeof(e->busid));
    memcpy(e->model, device->model, sizeof(e->model));
    take_place(out, e, one, device);
}

/* Assemble the whole on rank 0: all hosts first, then the endpoints in rank order. */
static int assemble(struct topo *out, const struct who *all, int size, const char *const *texts,
                    struct err *err)
{
    struct pod *pod = mem_calloc((size_t)size, sizeof(*pod)); /* index: its lowest rank */
    int *leader = mem_calloc((size_t)size, sizeof(int)), rc = 0;

    for (int r = 0; r < size && rc == 0; r++) {
        struct pod *p = &pod[r];
        leader[r] = *texts[r] ? r : same_pod(all, r, r - 1) ? leader[r - 1] : leader_of(all, r);
        pod[leader[r]].ranks++;
        if (!*texts[r])
            continue;
        rc = topo_parse(&p->one, texts[r], strlen(texts[r]), all[r].seen, err);
        if (rc == 0 && p->one.hosts != 1)
            rc = err_set(err, "rank %d told of %d hosts", r, p->one.hosts);
        if (rc == 0)
            rc = merge_host(out, p, err);
    }
    for (int r = 0; r < size && rc == 0; r++)
        add_rank(out, &pod[leader[r]], &all[r]);
    for (int r = 0; r < size; r++) {
        topo_free(&pod[r].one);
        free(pod[r].nic);
    }
    free(pod);
    free(leader);
    topo_link_gpus(out);
    if (rc == 0) {
        rails_find(out);
        topo_default_tiers(out);
    }
    return rc;
}

int topo_gather(struct topo *out, MPI_Comm comm, const char *root, const char *busid,
                struct err *err)
{
    const char **texts = NULL;
    char *mine = NULL, *block = NULL;
    struct topo one;
    struct who me;
    int rank, size;

    topo_init(out);
    topo_init(&one);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    describe(&me, root, busid);
    struct who *all = mem_calloc((size_t)size, sizeof(*all));
    MPI_Allgather(&me, (int)sizeof(me), MPI_BYTE, all, (int)sizeof(me), MPI_BYTE, comm);
    int rc = agree(comm, check_name(all, rank, err), err);
    if (rc == 0 && leader_of(all, rank) == rank) {
        rc = read_local(&one, me.host, root, err);
        mine = rc == 0 ? topo_text(&one) : NULL;
    }
    rc = agree(comm, rc, err);
    if (rc == 0)
        rc = collect(comm, mine, &block, &texts, err);
    if (rc == 0) {
        if (rank == 0)
            rc = assemble(out, all, size, texts, err);
        rc = agree(comm, rc, err);
    }
    if (rc < 0)
        topo_free(out);
    topo_free(&one);
    free(texts);
    free(block);
    free(mine);
    free(all);
    return rc;
}
