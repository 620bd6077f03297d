/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_env.c - settings of a user that silently change what NCCL does in a measurement.  Files are
 * read in NCCL's order (src/misc/param.cc): the environment wins, then NCCL_CONF_FILE or
 * ~/.nccl.conf, then /etc/nccl.conf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "topo/nccl_profile.h"

extern char **environ;

enum { CONF_MAX = 1 << 16, SHOWN = 80 };

/* Only variables that silently change what is measured; the provenance lists the others. */
static const struct nccl_env {
    const char *name, *harm;
} vars[] = {
    {"NCCL_TOPO_FILE", "the machine is not looked at, this picture of it is believed"},
    {"NCCL_GRAPH_FILE", "rings and trees are not searched but taken from this file"},
    {"NCCL_ALGO", "the algorithm is fixed for all sizes"},
    {"NCCL_PROTO", "the protocol is fixed for all sizes"},
    {"NCCL_TUNER_PLUGIN", "a plugin chooses algorithm and protocol"},
    {"NCCL_TUNER_CONFIG_FILE", "a table chooses algorithm and protocol"},
    {"NCCL_MIN_NCHANNELS", "more channels than NCCL would use"},
    {"NCCL_MAX_NCHANNELS", "fewer channels than NCCL would use"},
    {"NCCL_MIN_CTAS", "more channels than NCCL would use"},
    {"NCCL_MAX_CTAS", "fewer channels than NCCL would use"},
    {"NCCL_P2P_DISABLE", "no NVLink and no PCIe between GPUs"},
    {"NCCL_P2P_LEVEL", "GPUs farther apart than this do not talk directly"},
    {"NCCL_SHM_DISABLE", "no host memory between GPUs"},
    {"NCCL_NET", "the network is fixed"},
    {"NCCL_NET_PLUGIN", "another network library is loaded"},
    {"NCCL_IB_DISABLE", "no InfiniBand and no RoCE"},
    {"NCCL_IB_HCA", "only some NICs are used"},
    {"NCCL_NET_GDR_LEVEL", "GPUDirect RDMA is on or off by distance"},
    {"NCCL_NET_GDR_C2C", "GPUDirect RDMA of Grace nodes is changed"},
    {"NCCL_CROSS_NIC", "rings may or may not change rails"},
    {"NCCL_PXN_DISABLE", "NICs of other GPUs are not used"},
    {"NCCL_NVLS_ENABLE", "the NVSwitches reduce or do not"},
    {"NCCL_MNNVL_ENABLE", "NVLink between hosts is on or off"},
    {"NCCL_CUMEM_ENABLE", "memory that NVLink between hosts needs is on or off"},
    {"NCCL_COLLNET_ENABLE", "the network switches reduce or do not"},
    {"NCCL_BUFFSIZE", "the size of NCCL's buffers is fixed"},
    {"NCCL_NTHREADS", "the number of threads is fixed"},
    {"NCCL_HOSTID", "hosts are not told apart by what they are"},
    {"NCCL_DEBUG_FILE", "the log goes there: what was used cannot be read back"},
};

static const struct nccl_env *find(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof(vars) / sizeof(*vars); i++)
        if (strlen(vars[i].name) == len && !strncmp(vars[i].name, text, len))
            return &vars[i];
    return NULL;
}

/* Examine "NAME=VALUE" from the environment (file NULL) or from a line of a file. */
static void look(char ***list, int *count, const char *line, size_t len, const char *file)
{
    size_t name = 0;

    while (name < len && line[name] != '=')
        name++;
    const struct nccl_env *s = name < len ? find(line, name) : NULL;
    if (!s || (file && getenv(s->name))) /* the environment wins and was reported already */
        return;
    char *text = mem_printf("%s=%.*s%s%s: %s", s->name,
                            (int)(len - name - 1 < SHOWN ? len - name - 1 : SHOWN), line + name + 1,
                            file ? " in " : "", file ? file : "", s->harm);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    MEM_PUSH(*list, *count) = text;
}

static void read_conf(char ***list, int *count, const char *path)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, CONF_MAX, NULL) < 0)
        return;
    for (char *line = text; *line;) {
        size_t n = strcspn(line, "\r\n");
        if (*line != '#')
            look(list, count, line, n, path);
        line += n;
        line += strspn(line, "\r\n");
    }
    free(text);
}

char **nccl_env_set(const char *root, int *count)
{
    const char *file = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
    char **list = NULL;

    *count = 0;
    for (char **e = environ; *e; e++)
        look(&list, count, *e, strlen(*e), NULL);
    char *own = file && *file ? mem_strdup(file) : home ? mem_printf("%s/.nccl.conf", home) : NULL;
    char *all = mem_printf("%s/etc/nccl.conf", root);
    if (own)
        read_conf(&list, count, own);
    read_conf(&list, count, all);
    free(own);
    free(all);
    if (!list)
        list = mem_calloc(1, sizeof(*list));
    return list;
}
