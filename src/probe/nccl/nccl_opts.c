/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "probe/nccl/nccl_path.h"

enum {
    PATH = 0x600,
    ALGO,
    PROTO,
    SWEEP,
    GRAPH,
    SAME,
    IN_PLACE,
    NCCL_MEM,
    REGISTER,
    REDOP,
    SHARE,
    POOL
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "NCCL (--transport nccl):", 40},
    {"path", PATH, "NAME", 0,
     "what must carry the data: nvlink, mnnvl, p2p, pcie, shm, ib, roce or tcp; another one is a "
     "failure (default: as NCCL chooses)",
     40},
    {"algo", ALGO, "LIST", 0,
     "ring, tree, nvls, nvlstree, pat, collnetdirect, collnetchain (default: as NCCL chooses)", 40},
    {"proto", PROTO, "LIST", 0, "ll, ll128, simple (default: as NCCL chooses)", 40},
    {"sweep", SWEEP, NULL, 0,
     "the collectives again with every algorithm and protocol, each into sweep/ALGO-PROTO.tsv", 40},
    {"graph", GRAPH, NULL, 0,
     "replay a CUDA graph of up to 20 operations instead of launching them", 40},
    {"same-buffer", SAME, NULL, 0,
     "every operation on the same memory (default: each begins where the one before ended)", 40},
    {"in-place", IN_PLACE, NULL, 0, "collectives within one buffer", 40},
    {"nccl-mem", NCCL_MEM, NULL, 0, "buffers from ncclMemAlloc", 40},
    {"register", REGISTER, "HOW", 0,
     "none, buffer (ncclCommRegister) or symmetric (a window, with --nccl-mem); default none", 40},
    {"datatype", 'd', "TYPE", 0,
     "int8 ... float32, bfloat16, float8e4m3 (default uint8, sums: "
     "uint32)",
     40},
    {"redop", REDOP, "OP", 0, "sum, prod, max, min or avg (default sum)", 40},
    {"share-gpu", SHARE, NULL, 0,
     "several ranks on one GPU, over sockets: for trying things out, not for measuring a fabric",
     40},
    {"pool", POOL, "N", 0, "communicators kept open (default 16)", 40},
    {0},
};

const char *const nccl_algo_name[] = {"Ring", "Tree",          "NVLS",         "NVLSTree",
                                      "PAT",  "CollNetDirect", "CollNetChain", NULL};
const char *const nccl_proto_name[] = {"LL", "LL128", "Simple", NULL};
static const char *const register_name[] = {"none", "buffer", "symmetric", NULL};

void nccl_opts_defaults(struct nccl_opts *o)
{
    *o = (struct nccl_opts){.dtype = NCCL_UINT8, .redop = NCCL_SUM, .pool = 16};
}

static int find(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (!strcasecmp(names[i], word))
            return i;
    return -1;
}

/* Every word of the list is a name of the table. */
static int check_list(const char *list, const char *const *names, const char *what, struct err *err)
{
    char *copy = mem_strdup(list), *rest = copy, *word;
    int rc = 0;

    while (rc == 0 && (word = strsep(&rest, ",")) != NULL)
        if (find(names, word) < 0)
            rc = err_usage(err, "NCCL has no %s \"%s\"", what, word);
    free(copy);
    return rc;
}

static int parse_register(struct nccl_opts *o, const char *text, struct err *err)
{
    int how = find(register_name, text);

    if (how < 0)
        return err_usage(err, "\"%s\" is none of none, buffer, symmetric", text);
    o->registration = (enum nccl_register)how;
    return 0;
}

static int parse_type(struct nccl_opts *o, const char *text, struct err *err)
{
    o->dtype = nccl_dtype_find(text);
    o->dtype_given = true;
    return o->dtype < 0 ? err_usage(err, "NCCL has no datatype \"%s\"", text) : 0;
}

static int parse_redop(struct nccl_opts *o, const char *text, struct err *err)
{
    o->redop = nccl_redop_find(text);
    return o->redop < 0 ? err_usage(err, "\"%s\" is none of sum, prod, max, min, avg", text) : 0;
}

static int parse_words(struct nccl_opts *o, int key, const char *arg, struct err *err)
{
    switch (key) {
    case PATH:
        o->path = arg;
        return nccl_path_find(arg) ? 0 : err_usage(err, "no path \"%s\"", arg);
    case ALGO:
        o->algo = arg;
        return check_list(arg, nccl_algo_name, "algorithm", err);
    case PROTO:
        o->proto = arg;
        return check_list(arg, nccl_proto_name, "protocol", err);
    case REGISTER:
        return parse_register(o, arg, err);
    case 'd':
        return parse_type(o, arg, err);
    case REDOP:
        return parse_redop(o, arg, err);
    default:
        return units_int(&o->pool, arg, 1, 4096, err);
    }
}

/* On windows the large collectives run as kernels that know neither algorithm nor protocol (2.28:
 * src/enqueue.cc, ncclPrepareTasks: ncclMakeSymmetricTaskList comes before getAlgoInfo). */
static error_t check_symmetric(const struct nccl_opts *o, struct argp_state *state)
{
    if (o->registration != NCCL_REG_SYMMETRIC)
        return 0;
    if (!o->mem_alloc)
        argp_error(state, "--register symmetric needs --nccl-mem: windows lie in such memory");
    else if (o->sweep || o->algo || o->proto)
        argp_error(state, "--register symmetric takes kernels without algorithm and protocol: not "
                          "with --sweep, --algo, --proto");
    else
        return 0;
    return EINVAL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct nccl_opts *o = state->input;
    struct err err = {0, ""};

    switch (key) {
    case SWEEP:
        o->sweep = true;
        return 0;
    case GRAPH:
        o->graph = true;
        return 0;
    case SAME:
        o->same_buffer = true;
        return 0;
    case IN_PLACE:
        o->in_place = true;
        return 0;
    case NCCL_MEM:
        o->mem_alloc = true;
        return 0;
    case SHARE:
        o->share_gpu = true;
        return 0;
    case PATH:
    case ALGO:
    case PROTO:
    case REGISTER:
    case 'd':
    case REDOP:
    case POOL:
        if (parse_words(o, key, arg, &err) == 0)
            return 0;
        opt_error(state, options, key, &err);
        return EINVAL;
    case ARGP_KEY_END:
        if (o->sweep && (o->algo || o->proto))
            argp_error(state,
                       "--sweep tries every algorithm and protocol: not with --algo, --proto");
        return check_symmetric(o, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp nccl_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

char **nccl_opts_words(const struct nccl_opts *o, int *count)
{
    const struct {
        bool yes;
        const char *word;
    } flag[] = {{o->sweep, "--sweep"},
                {o->graph, "--graph"},
                {o->same_buffer, "--same-buffer"},
                {o->in_place, "--in-place"},
                {o->mem_alloc, "--nccl-mem"},
                {o->share_gpu, "--share-gpu"}};
    char **w = NULL;
    int n = 0;

    if (o->path)
        MEM_PUSH(w, n) = mem_printf("--path=%s", o->path);
    if (o->algo)
        MEM_PUSH(w, n) = mem_printf("--algo=%s", o->algo);
    if (o->proto)
        MEM_PUSH(w, n) = mem_printf("--proto=%s", o->proto);
    for (size_t i = 0; i < sizeof(flag) / sizeof(*flag); i++)
        if (flag[i].yes)
            MEM_PUSH(w, n) = mem_strdup(flag[i].word);
    if (o->registration != NCCL_REG_NONE)
        MEM_PUSH(w, n) = mem_printf("--register=%s", register_name[o->registration]);
    if (o->dtype_given)
        MEM_PUSH(w, n) = mem_printf("--datatype=%s", nccl_dtype_name[o->dtype]);
    if (o->redop != NCCL_SUM)
        MEM_PUSH(w, n) = mem_printf("--redop=%s", nccl_redop_name[o->redop]);
    MEM_PUSH(w, n) = mem_printf("--pool=%d", o->pool);
    *count = n;
    return w;
}

/* --- the variables that NCCL reads --- */

/* What this program set, so that it may set it anew; anything else there is the user's. */
enum { OWN = 24 };
static char *own[OWN][2];

static char **own_slot(const char *name)
{
    int i = 0;

    while (i < OWN - 1 && own[i][0] && strcmp(own[i][0], name))
        i++;
    if (!own[i][0])
        own[i][0] = mem_strdup(name);
    return &own[i][1];
}

static int set(const char *name, const char *value, const char *why, struct err *err)
{
    const char *there = getenv(name);
    char **mine = own_slot(name);

    if (there && !(*mine && !strcmp(*mine, there)) && strcasecmp(there, value))
        return err_config(err, "%s wants %s=%s, but the environment says %s=%s", why, name, value,
                          name, there);
    setenv(name, value, 1);
    free(*mine);
    *mine = mem_strdup(value);
    return 0;
}

/* Take back what an earlier call set. */
static void take_back(const char *name)
{
    char **mine = own_slot(name);

    if (*mine && getenv(name) && !strcmp(getenv(name), *mine))
        unsetenv(name);
    free(*mine);
    *mine = NULL;
}

/* The list in NCCL's spelling, which older versions take literally. */
static int set_list(const char *variable, const char *list, const char *const *names,
                    const char *option, struct err *err)
{
    char *copy, *rest, *word, *value = NULL;

    if (!list) {
        take_back(variable);
        return 0;
    }
    copy = rest = mem_strdup(list);
    while ((word = strsep(&rest, ",")) != NULL) {
        char *more =
            mem_printf("%s%s%s", value ? value : "", value ? "," : "", names[find(names, word)]);
        free(value);
        value = more;
    }
    int rc = set(variable, value, option, err);
    free(value);
    free(copy);
    return rc;
}

/* NCCL takes a host for another one when NCCL_HOSTID differs (src/misc/utils.cc, getHostHash), so
 * that two ranks on one GPU are no duplicate; from 2.30 it also wants to be told so. */
static int set_shared(int rank, bool one_host, struct err *err)
{
    char id[32];

    snprintf(id, sizeof(id), "railgauge-rank-%d", rank);
    if (set("NCCL_HOSTID", id, "--share-gpu", err) < 0 ||
        set("NCCL_MULTI_RANK_GPU_ENABLE", "1", "--share-gpu", err) < 0)
        return -1;
    if (one_host && !getenv("NCCL_SOCKET_IFNAME"))
        return set("NCCL_SOCKET_IFNAME", "lo", "--share-gpu", err);
    return 0;
}

/* NCCL looks at these once, when it makes the first communicator. */
static int set_path(const char *path, struct err *err)
{
    const struct nccl_path_var *var;
    int rc = nccl_path_env(path, &var, NULL, err);
    char *why = mem_printf("--path %s", path);

    for (int i = 0; rc == 0 && var[i].name; i++)
        rc = set(var[i].name, var[i].value, why, err);
    free(why);
    return rc;
}

static const struct nccl_opts *now;

int nccl_opts_apply(const struct nccl_opts *o, int rank, bool one_host, struct err *err)
{
    now = o;
    /* It overrides ncclConfig_t.blocking (src/init.cc, envConfigOverride). */
    if (getenv("NCCL_COMM_BLOCKING") && set("NCCL_COMM_BLOCKING", "1", "--transport nccl", err) < 0)
        return -1;
    if (set_list("NCCL_ALGO", o->algo, nccl_algo_name, "--algo", err) < 0 ||
        set_list("NCCL_PROTO", o->proto, nccl_proto_name, "--proto", err) < 0)
        return -1;
    if (o->path && set_path(o->path, err) < 0)
        return -1;
    return o->share_gpu ? set_shared(rank, one_host, err) : 0;
}

static bool in_list(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !strncasecmp(list, word, n))
            return true;
    return false;
}

int nccl_opts_check(const struct nccl_opts *o, int version, struct err *err)
{
    char text[24];

    if (version >= 22400 || (!o->sweep && (!o->algo || in_list(o->algo, "Ring"))))
        return 0;
    return err_config(err,
                      "%s needs NCCL 2.24 or newer: NCCL %s takes Ring, and does not say so, where "
                      "it cannot do what is asked",
                      o->sweep ? "--sweep" : "--algo without ring",
                      nccl_version_text(version, text));
}

const struct nccl_opts *nccl_opts_now(void)
{
    static struct nccl_opts defaults;

    if (!now) {
        nccl_opts_defaults(&defaults);
        now = &defaults;
    }
    return now;
}

const char *nccl_opts_net(void)
{
    const struct nccl_opts *o = nccl_opts_now();
    const struct nccl_path *path = o->path ? nccl_path_find(o->path) : NULL;

    return path ? path->net_name : o->share_gpu ? "Socket" : NULL;
}

/* --- the options of nccl-tests --- */

#define HIDDEN(long, key)                                                                          \
    {                                                                                              \
        long, key, "VALUE", OPTION_HIDDEN, NULL, 70                                                \
    }
static const struct argp_option tests_options[] = {
    HIDDEN("ngpus", 'g'),
    HIDDEN("nthreads", 0x700),
    HIDDEN("stepbytes", 'i'),
    HIDDEN("agg_iters", 'm'),
    HIDDEN("run_cycles", 'N'),
    HIDDEN("parallel_init", 'p'),
    HIDDEN("root", 'r'),
    HIDDEN("blocking", 'z'),
    HIDDEN("stream_null", 'y'),
    HIDDEN("timeout", 'T'),
    HIDDEN("cudagraph", 'G'),
    HIDDEN("report_cputime", 'C'),
    HIDDEN("average", 'a'),
    HIDDEN("local_register", 'R'),
    HIDDEN("cta_policy", 'x'),
    HIDDEN("device_implementation", 'D'),
    HIDDEN("report_timestamps", 'S'),
    HIDDEN("output_file", 'J'),
    HIDDEN("memory", 'M'),
    HIDDEN("unalign", 'u'),
    HIDDEN("per_iter_timing", 'I'),
    HIDDEN("per_iter_skip", 'K'),
    {0},
};

static const struct {
    int key;
    const char *same; /* values that change nothing, each between blanks */
    const char *why;
} tests_rule[] = {
    {'g', " 1 ", "there is one rank a GPU here: mpirun -n N"},
    {0x700, " 1 ", "there is one rank a GPU here: mpirun -n N"},
    {'i', "", "sizes grow by a factor here: -f N"},
    {'m', " 1 ", "each sample is one operation; -n N takes N of them"},
    {'N', " 1 ", "--epochs N measures everything N times, spread over the campaign"},
    {'p', " 0 1 ", ""},
    {'r', " 0 ", "the root is the first rank of each group"},
    {'z', " 0 ",
     "operations are enqueued one after another and timed one by one on the GPU's clock"},
    {'y', " 0 ", "every rank has a stream of its own"},
    {'T', "", "ranks that hang are found and named without it; --budget TIME ends a campaign"},
    {'G', " 0 ", "--graph replays a CUDA graph"},
    {'C', " 0 ", "the time of the calling CPU is not measured"},
    {'a', " 3 ", "a sample is the slowest rank's time: that is -a 3"},
    {'R', " 0 ", "--register buffer is -R 1, --register symmetric --nccl-mem is -R 2"},
    {'x', "", "the CTA policy is the library's: NCCL_CTA_POLICY"},
    {'D', " 0 ", "operations are those of the library"},
    {'S', " 0 ", "points.tsv says when it was measured"},
    {'J', "", "points.tsv is made for programs: -o FILE; show --json prints the matrix"},
    {'M', " 0 ", "memory is not reported"},
    {'u', " 0 ", "buffers are aligned"},
    {'I', " 0 1 ", ""}, /* percentiles are in points.tsv always */
    {'K', " 0 ", "-w N runs are not counted"},
};

static error_t parse_tests(int key, char *arg, struct argp_state *state)
{
    char want[16];

    for (size_t i = 0; i < sizeof(tests_rule) / sizeof(*tests_rule); i++) {
        if (key != tests_rule[i].key)
            continue;
        snprintf(want, sizeof(want), " %.12s ", arg);
        if (*arg && strstr(tests_rule[i].same, want))
            return 0;
        const struct argp_option *o = tests_options;
        while (o->key != key)
            o++;
        argp_error(state, "--%s %s of nccl-tests: %s", o->name, arg,
                   *tests_rule[i].why ? tests_rule[i].why : "only 0 and 1 are known");
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

const struct argp nccl_tests_argp = {tests_options, parse_tests, NULL, NULL, NULL, NULL, NULL};

const char *nccl_tests_meaning(int key, const char *word)
{
    if (key == 't' && *word && !word[strspn(word, "0123456789")])
        return "-t is --transport here; threads are nccl-tests' -t: one rank a GPU, mpirun -n N";
    if (key == 'o' && (nccl_redop_find(word) >= 0 || !strcmp(word, "all")))
        return "-o is --output here; the reduction is --redop";
    return NULL;
}
