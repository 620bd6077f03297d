/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mpi/mpi_readback.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "transport/mpi/mpi_used_impl.h"

enum { LOG_MAX = 8 << 20, SOCKETS_MAX = 256, NAME_LEN = 64 };

static int ucx_log = -1; /* file in memory */

/* Components that are useless without an adapter and cost every rank a quarter of a second to load:
 * libpsm2 and libpsm_infinipath measure the clock for 0.1 s each, and hwloc looks up the names of
 * PCI devices, which MPI uses to choose the nearest adapter. */
static const struct {
    const char *name, *value;
} spared[] = {{"OMPI_MCA_mtl", "^psm,psm2,ofi"},
              {"HWLOC_COMPONENTS", "-pci,-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero"}};
enum { SPARED = sizeof(spared) / sizeof(*spared) };
static bool is_spared[SPARED];

static bool has_adapters(void)
{
    glob_t found;
    int none = glob("{/sys/class/{infiniband,cxi}/*,/dev/{hfi1,cxi}*}", GLOB_BRACE, NULL, &found);

    globfree(&found);
    return !none;
}

/* If the user chose a component, load whatever it needs. */
static void spare_adapters(void)
{
    if (getenv("OMPI_MCA_pml") || has_adapters())
        return;
    for (int i = 0; i < SPARED; i++) {
        is_spared[i] = !getenv(spared[i].name);
        if (is_spared[i])
            setenv(spared[i].name, spared[i].value, 1);
    }
}

static void open_ucx_log(void)
{
    char path[32];

    /* Otherwise UCX is part of the MPI library and has read its variables before main(). */
    if (!dlsym(RTLD_DEFAULT, "ompi_mpi_init") || dlsym(RTLD_DEFAULT, "ucp_get_version") ||
        getenv("UCX_LOG_LEVEL") || getenv("UCX_LOG_FILE"))
        return;
    ucx_log = memfd_create("ucx-log", MFD_CLOEXEC);
    if (ucx_log < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ucx_log);
    setenv("UCX_LOG_FILE", path, 1);
    setenv("UCX_LOG_LEVEL", "info", 1);
}

void mpi_readback_open(void)
{
    spare_adapters();
    open_ucx_log();
}

void mpi_readback_opened(void)
{
    for (int i = 0; i < SPARED; i++)
        if (is_spared[i])
            unsetenv(spared[i].name);
    if (ucx_log < 0)
        return;
    unsetenv("UCX_LOG_FILE");
    unsetenv("UCX_LOG_LEVEL");
}

/* Add a name to a list of texts unless present. */
static void add(json_t *list, const char *name)
{
    size_t i;
    json_t *x;

    json_array_foreach(list, i, x) if (!strcmp(json_string_value(x), name)) return;
    json_array_append_new(list, json_string(name));
}

/* --- Open MPI's selected components --- */

/* Layout of mca_base_component_2_1_0_t (opal/mca/mca.h): three ints, project[16], three ints,
 * type[32], three ints, component[64].  NULL if the component is not of this framework. */
static const char *component_name(const char *component, const char *framework)
{
    enum { PROJECT = 12, TYPE = PROJECT + 16 + 12, NAME = TYPE + 32 + 12 };

    if (!component || strcmp(component + PROJECT, "ompi") != 0 ||
        strcmp(component + TYPE, framework) != 0 || !memchr(component + NAME, '\0', NAME_LEN))
        return NULL;
    return component + NAME;
}

static void read_components(json_t *to)
{
    const char *pml = dlsym(RTLD_DEFAULT, "mca_pml_base_selected_component");
    const char **mtl = dlsym(RTLD_DEFAULT, "ompi_mtl_base_selected_component");
    const char *name = component_name(pml, "pml");

    if (name)
        json_object_set_new(to, "pml", json_string(name));
    name = mtl ? component_name(*mtl, "mtl") : NULL;
    if (name)
        json_object_set_new(to, "mtl", json_string(name));
}

/* --- libfabric --- */

/* rdma/fabric.h, since 1.0: struct fi_fabric_attr begins with a handle, the fabric's name and the
 * provider's name. */
struct fi_fabric_attr {
    void *fabric;
    char *name, *prov_name;
};
typedef int fi_fabric_call(struct fi_fabric_attr *attr, void **fabric, void *context);

static char provider[NAME_LEN];

/* This definition precedes the library's for every component loaded later.  It notes what was
 * opened and calls the library's. */
fi_fabric_call fi_fabric;
int fi_fabric(struct fi_fabric_attr *attr, void **fabric, void *context)
{
    void *library = dlopen("libfabric.so.1", RTLD_LAZY | RTLD_NOLOAD);
    fi_fabric_call *call =
        library ? (fi_fabric_call *)(uintptr_t)dlsym(library, "fi_fabric") : NULL;

    if (library)
        dlclose(library);
    int rc = call && call != fi_fabric ? call(attr, fabric, context) : -38; /* -FI_ENOSYS */
    if (rc == 0 && attr && attr->prov_name)
        snprintf(provider, sizeof(provider), "%s", attr->prov_name);
    return rc;
}

/* --- connections --- */

static void address_text(const struct sockaddr_storage *a, char *host, size_t size, int *port)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;

    if (a->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, host, (socklen_t)size);
    else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, host, (socklen_t)size);
    else
        inet_ntop(AF_INET6, &six->sin6_addr, host, (socklen_t)size);
    *port = ntohs(a->ss_family == AF_INET ? four->sin_port : six->sin6_port);
}

/* Interface with this address, "eth0"; "" if no network of this process has the address. */
static const char *interface_of(const struct ifaddrs *all, const char *address)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        int port;
        if (!i->ifa_addr ||
            (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        struct sockaddr_storage a = {0};
        memcpy(&a, i->ifa_addr,
               i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                 : sizeof(struct sockaddr_in6));
        address_text(&a, text, sizeof(text), &port);
        if (!strcmp(text, address))
            return i->ifa_name;
    }
    return "";
}

/* Append [local, remote, interface] of an established TCP connection. */
static void read_socket(json_t *list, int fd, const struct ifaddrs *all)
{
    struct sockaddr_storage mine, theirs;
    socklen_t n = sizeof(mine), m = sizeof(theirs), len = sizeof(int);
    char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
    int type = 0, p, q;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM ||
        getsockname(fd, (struct sockaddr *)&mine, &n) < 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &m) < 0 ||
        (mine.ss_family != AF_INET && mine.ss_family != AF_INET6))
        return;
    address_text(&mine, a, sizeof(a), &p);
    address_text(&theirs, b, sizeof(b), &q);
    char *local = mem_printf("%s %d", a, p), *remote = mem_printf("%s %d", b, q);
    json_array_append_new(list, json_pack("[s, s, s]", local, remote, interface_of(all, a)));
    free(local);
    free(remote);
}

/* Append the adapter of a device file, "mlx5_0" for /dev/infiniband/uverbs0; else the file's
 * name. */
static void read_device(json_t *list, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char *from, *text = NULL;
    size_t len;

    if (!strncmp(path, "/dev/infiniband/uverbs", 22)) {
        from = mem_printf("/sys/class/infiniband_verbs/%s/ibdev", name);
        if (file_read(&text, &len, from, NAME_LEN, NULL) == 0)
            text[strcspn(text, "\n")] = '\0';
        add(list, text ? text : name);
        free(text);
        free(from);
    } else if (!strncmp(path, "/dev/hfi1", 9) || !strncmp(path, "/dev/cxi", 8))
        add(list, name);
}

static void read_files(json_t *to)
{
    json_t *sockets = json_array(), *devices = json_array();
    struct ifaddrs *all = NULL;
    DIR *dir = opendir("/proc/self/fd");

    if (getifaddrs(&all) < 0)
        all = NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[512], link[32];
        snprintf(link, sizeof(link), "/proc/self/fd/%.10s", e->d_name);
        ssize_t n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0)
            continue;
        path[n] = '\0';
        if (!strncmp(path, "socket:", 7) && json_array_size(sockets) < SOCKETS_MAX)
            read_socket(sockets, atoi(e->d_name), all);
        else if (!strncmp(path, "/dev/", 5))
            read_device(devices, path);
    }
    if (dir)
        closedir(dir);
    freeifaddrs(all);
    json_object_set_new(to, "sockets", sockets);
    json_object_set_new(to, "devices", devices);
}

/* --- shared memory --- */

/* Mapped segments: the rank's own, and those of its partners. */
static void read_maps(json_t *to)
{
    json_t *list = json_array();
    char line[1024], *name;
    FILE *f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if ((name = strstr(line, "vader_segment.")) || (name = strstr(line, "sm_segment.")) ||
            (name = strstr(line, "mpich_shar_tmp")) || (name = strstr(line, "mpich_shm")))
            add(list, name);
    }
    if (f)
        fclose(f);
    json_object_set_new(to, "segments", list);
}

/* --- UCX --- */

/* Find "tag(sysv/memory cma/memory)" in lines that name a configuration of endpoints: 1.13 writes
 * "ep_cfg[1]: tag(...)", later releases "intra-node cfg#1 tag(...)". */
static void read_ucx(json_t *to)
{
    json_t *list = json_array();
    char path[32], *text = NULL, *save = NULL;
    size_t len;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", ucx_log);
    fflush(NULL); /* UCX writes through a buffered stream */
    if (ucx_log < 0 || file_read(&text, &len, path, LOG_MAX, NULL) < 0)
        text = NULL;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char *tag = strstr(line, "cfg") ? strstr(line, "tag(") : NULL, *word, *rest;
        if (!tag)
            continue;
        tag[strcspn(tag, ")")] = '\0';
        for (word = strtok_r(tag + 4, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            if (strchr(word, '/'))
                add(list, word);
    }
    free(text);
    json_object_set_new(to, "ucx", list);
}

/* --- all facts --- */

static char *own_text(void)
{
    json_t *own = json_object();

    read_components(own);
    read_files(own);
    read_maps(own);
    read_ucx(own);
    if (*provider)
        json_object_set_new(own, "provider", json_string(provider));
    char *text = json_dumps(own, JSON_COMPACT);
    json_decref(own);
    return text ? text : mem_strdup("{}");
}

int mpi_readback_learn(struct world *w, struct topo *t, struct err *err)
{
    char **part = mem_calloc((size_t)w->size, sizeof(*part)), *mine = own_text();
    size_t *len = mem_calloc((size_t)w->size, sizeof(*len));
    int rc = w->agree(w, world_collect(w, mine, strlen(mine), part, len, err), err);

    if (rc == 0 && w->rank == 0)
        rc = mpi_used(t, part, w->size, err);
    for (int i = 0; i < w->size; i++)
        free(part[i]);
    free(part);
    free(len);
    free(mine);
    return w->agree(w, rc, err);
}
