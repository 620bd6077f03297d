/* SPDX-License-Identifier: BSD-3-Clause */
/* nvml_topo.c - makes a topology of NVML's facts: GPUs, NVLink domains and racks. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/host/nvml.h"

/* --- channels for memory shared between hosts, as files --- */

/* Number of channels that this user may open; 0: none, -1: no /dev. */
static int imex_channels(const char *root)
{
    static const char folder[] = "/dev/nvidia-caps-imex-channels";
    char *path = mem_printf("%s%s", root, folder);
    int channels = host_has_file(root, "/dev", "") ? 0 : -1;
    DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *one = mem_printf("%s/%s", path, e->d_name);
        if (!strncmp(e->d_name, "channel", 7) && access(one, R_OK | W_OK) == 0 && channels < 65535)
            channels++;
        free(one);
    }
    if (dir)
        closedir(dir);
    free(path);
    return channels;
}

/* Number of lines in IMEX's list of nodes; -1: no such file. */
static int imex_nodes(const char *root)
{
    char *path = mem_printf("%s/etc/nvidia-imex/nodes_config.cfg", root), line[512];
    FILE *f = fopen(path, "r");
    int nodes = f ? 0 : -1;

    while (f && fgets(line, sizeof(line), f)) {
        size_t skip = strspn(line, " \t\r\n");
        nodes += line[skip] && line[skip] != '#' && nodes < 65535;
    }
    if (f)
        fclose(f);
    free(path);
    return nodes;
}

/* --- endpoints: GPUs that the driver reports, in its order --- */

static struct endpoint *find_endpoint(struct topo *t, const char *busid)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].kind == ENDPOINT_GPU && !strcmp(t->endpoint[i].busid, busid))
            return &t->endpoint[i];
    return NULL;
}

/* Replace the endpoints: PCI may list GPUs that this process may not use (or that failed), and a
 * container may hide PCI.  Only for a topology of one host. */
static void set_endpoints(struct topo *t, int host, int first)
{
    int on_pci = 0, known = 0;
    struct topo old = *t;

    for (int i = 0; i < old.endpoints; i++)
        on_pci += old.endpoint[i].kind == ENDPOINT_GPU;
    t->endpoint = NULL;
    t->endpoints = t->host[host].endpoints = 0;
    for (int i = first; i < t->gpus; i++) {
        const struct gpu *g = &t->gpu[i];
        if (gpu_is_lost(g))
            continue;
        const struct endpoint *was = find_endpoint(&old, g->busid);
        int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
        struct endpoint *e = &t->endpoint[id];
        known += was != NULL;
        e->local = g->index; /* which may have gaps */
        e->numa = was ? was->numa : -1;
        e->nic = was ? was->nic : -1;
        e->gpu = i;
        memcpy(e->busid, g->busid, sizeof(e->busid));
        snprintf(e->model, sizeof(e->model), "%s", *g->model || !was ? g->model : was->model);
    }
    if (!on_pci)
        topo_unseen(t, "GPUs",
                    "not on the PCI buses of this host: their NUMA node and nearest NIC are "
                    "not known");
    else if (on_pci > known)
        topo_unseen(t, "GPUs", "%d of the %d on PCI are not shown by the driver's library",
                    on_pci - known, on_pci);
    free(old.endpoint);
}

static void read_gpus(struct topo *t, int host, struct nvml *n, const char *root)
{
    int channels = imex_channels(root), nodes = imex_nodes(root), split = 0;

    for (int i = 0; i < nvml_count(n); i++) {
        struct err why;
        struct gpu g;
        if (nvml_read(n, i, &g, &why) < 0) {
            char what[300];
            snprintf(what, sizeof(what), "GPU %d of %s", i, t->host[host].name);
            topo_unseen(t, what, "%s", why.text);
            continue;
        }
        g.host = host;
        g.imex_channels = channels;
        g.imex_nodes = nodes;
        split += g.split;
        MEM_PUSH(t->gpu, t->gpus) = g;
    }
    host_mig(t, host, split);
}

int topo_read_nvml(struct topo *t, int host, const char *root, struct err *err)
{
    const char *named = secure_getenv("RAILGAUGE_NVML");
    int first = t->gpus;
    struct nvml *n;
    struct err why;

    named = named && *named ? named : NULL;
    if (*root && !named) {
        if (host_has_file(root, "/proc/driver/nvidia/version", ""))
            topo_unseen(t, "NVLink domain",
                        "the NVIDIA driver is there, but its library (NVML) is not asked about a "
                        "recorded machine");
        return 0;
    }
    if (nvml_open(&n, &why) < 0) {
        if (named)
            return err_code(err, why.code, "%s", why.text);
        if (host_has_file(root, "/proc/driver/nvidia/version", ""))
            topo_unseen(t, "NVLink domain", "the NVIDIA driver is there, but: %.400s", why.text);
        return 0;
    }
    read_gpus(t, host, n, root);
    nvml_close(n);
    if (t->gpus == first)
        return 0;
    set_endpoints(t, host, first);
    host_finish(t, host, SOURCE_NVML);
    return 0;
}
