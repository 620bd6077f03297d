/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/nccl_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/libraries.h"

struct nccl_api nccl;

enum {
    OLDEST = 21900, /* first version with ncclMemAlloc and ncclCommRegister */
    NEWEST = 23299  /* last version whose ncclConfig_t is completely known here */
};

#define ROW(name, since, ...) {"nccl" #name, offsetof(struct nccl_api, name), since},
static const struct library_call functions[] = {NCCL_CALLS(ROW)};
static const struct library_call version_call = {
    "ncclGetVersion", offsetof(struct nccl_api, GetVersion), LIBRARY_NEEDED};

static int read_version(struct nccl_api *api, void *library, struct err *err)
{
    char text[24];
    int rc;

    if (library_resolve(api, library, &version_call, 1, 0, api->path, err) < 0)
        return -1;
    rc = api->GetVersion(&api->version);
    if (rc)
        return err_config(err, "%s: ncclGetVersion failed with %d", api->path, rc);
    if (api->version < OLDEST)
        return err_config(err, "%s is NCCL %s; 2.19 or newer is needed", api->path,
                          nccl_version_text(api->version, text));
    return 0;
}

int nccl_load(struct err *err)
{
    struct library_found found;
    struct nccl_api api = {0};
    void *library;

    if (nccl.version)
        return 0;
    library = libraries_open(LIBRARY_NCCL, 0, &found, err);
    if (!library)
        return -1;
    snprintf(api.path, sizeof(api.path), "%s", found.file);
    api.by = found.by;
    if (read_version(&api, library, err) ||
        library_resolve(&api, library, functions, sizeof(functions) / sizeof(*functions),
                        api.version, api.path, err)) {
        dlclose(library);
        return -1;
    }
    nccl = api; /* stays loaded: its threads may outlive every communicator */
    return 0;
}

/* Size of ncclConfig_t by version (nccl.h.in of the tags v2.19.3-1 to v2.30.7-1, nccl.h of the
 * packages 2.31.2 and 2.32.3).  trafficClass of 2.26 lies in padding of 2.19, graphStreamOrdering
 * of 2.30.5 in padding of 2.30.3. */
static size_t config_size(int version)
{
    static const struct {
        int since;
        size_t size;
    } sizes[] = {
        {23200, sizeof(struct nccl_config)},
        {23100, offsetof(struct nccl_config, nvls_host_mode)},
        {23000, offsetof(struct nccl_config, launch_order_implicit)},
        {22900, offsetof(struct nccl_config, max_p2p_peers)},
        {22800, offsetof(struct nccl_config, graph_usage_mode)},
        {22700, offsetof(struct nccl_config, n_channels_per_net_peer)},
        {0, offsetof(struct nccl_config, comm_name)},
    };
    int i = 0;

    while (version < sizes[i].since)
        i++;
    return sizes[i].size;
}

#define FIELD(name, field, since)                                                                  \
    {                                                                                              \
        name, offsetof(struct nccl_config, field), since                                           \
    }
const struct nccl_config_field nccl_config_field[] = {
    FIELD("cgaClusterSize", cga_cluster_size, 0),
    FIELD("minCTAs", min_ctas, 0),
    FIELD("maxCTAs", max_ctas, 0),
    FIELD("splitShare", split_share, 0),
    FIELD("trafficClass", traffic_class, 22600),
    FIELD("collnetEnable", collnet_enable, 22700),
    FIELD("CTAPolicy", cta_policy, 22700),
    FIELD("shrinkShare", shrink_share, 22700),
    FIELD("nvlsCTAs", nvls_ctas, 22700),
    FIELD("nChannelsPerNetPeer", n_channels_per_net_peer, 22800),
    FIELD("nvlinkCentricSched", nvlink_centric_sched, 22800),
    FIELD("graphUsageMode", graph_usage_mode, 22900),
    FIELD("numRmaCtx", num_rma_ctx, 22900),
    FIELD("maxP2pPeers", max_p2p_peers, 23000),
    FIELD("graphStreamOrdering", graph_stream_ordering, 23005),
    FIELD("launchOrderImplicit", launch_order_implicit, 23100),
    FIELD("numRmaSig", num_rma_sig, 23100),
    FIELD("rmaEagerInit", rma_eager_init, 23100),
    FIELD("hostCftMode", host_cft_mode, 23100),
    FIELD("nvlsHostMode", nvls_host_mode, 23200),
    {0},
};

const struct nccl_config_field *nccl_config_find(const char *name)
{
    for (const struct nccl_config_field *f = nccl_config_field; f->name; f++)
        if (!strcasecmp(f->name, name))
            return f;
    return NULL;
}

void nccl_config(struct nccl_config *c)
{
    const int unset = NCCL_UNDEF_INT;

    *c = (struct nccl_config){
        .size = config_size(nccl.version),
        .magic = 0xcafebeef,
        .version = (unsigned)(nccl.version > NEWEST ? NEWEST : nccl.version),
        .blocking = NCCL_UNDEF_INT,
    };
    for (const struct nccl_config_field *f = nccl_config_field; f->name; f++)
        memcpy((char *)c + f->at, &unset, sizeof(unset));
}

char *nccl_version_text(int version, char buf[24])
{
    snprintf(buf, 24, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return buf;
}

const char *const nccl_dtype_name[NCCL_DTYPES] = {
    "int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
    "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2",
};
const char *const nccl_redop_name[NCCL_REDOPS] = {"sum", "prod", "max", "min", "avg"};
static const size_t dtype_size[NCCL_DTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/* Other names of the types: those of nccl-tests' -d, of nccl.h and of PyTorch users. */
static const struct {
    const char *word;
    int dtype;
} aliases[] = {
    {"char", NCCL_INT8},          {"int", NCCL_INT32},          {"half", NCCL_FLOAT16},
    {"fp16", NCCL_FLOAT16},       {"float", NCCL_FLOAT32},      {"fp32", NCCL_FLOAT32},
    {"double", NCCL_FLOAT64},     {"fp64", NCCL_FLOAT64},       {"bf16", NCCL_BFLOAT16},
    {"f8e4m3", NCCL_FLOAT8E4M3},  {"fp8e4m3", NCCL_FLOAT8E4M3}, {"f8e5m2", NCCL_FLOAT8E5M2},
    {"fp8e5m2", NCCL_FLOAT8E5M2},
};

size_t nccl_dtype_size(int dtype)
{
    return dtype >= 0 && dtype < NCCL_DTYPES ? dtype_size[dtype] : 0;
}

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(names[i], name))
            return i;
    return -1;
}

int nccl_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
        if (!strcasecmp(aliases[i].word, name))
            return aliases[i].dtype;
    return find(nccl_dtype_name, NCCL_DTYPES, name);
}

int nccl_redop_find(const char *name)
{
    return find(nccl_redop_name, NCCL_REDOPS, name);
}
