/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/nccl_opts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "measure/transports/nccl_path.h"

const char *const nccl_algo_name[] = {"Ring", "Tree",          "NVLS",         "NVLSTree",
                                      "PAT",  "CollNetDirect", "CollNetChain", NULL};
const char *const nccl_proto_name[] = {"LL", "LL128", "Simple", NULL};
static const char *const register_name[] = {"none", "buffer", "symmetric", NULL};

struct nccl_opts nccl_opts_asked = NCCL_OPTS_DEFAULTS;

static int find(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (!strcasecmp(names[i], word))
            return i;
    return -1;
}

/* Check that every word of the list is a name of the table. */
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

static int take_path(void *into, char *name, struct err *err)
{
    ((struct nccl_opts *)into)->path = name;
    return nccl_path_find(name) ? 0 : err_usage(err, "no path \"%s\"", name);
}

static int take_algo(void *into, char *list, struct err *err)
{
    ((struct nccl_opts *)into)->algo = list;
    return check_list(list, nccl_algo_name, "algorithm", err);
}

static int take_proto(void *into, char *list, struct err *err)
{
    ((struct nccl_opts *)into)->proto = list;
    return check_list(list, nccl_proto_name, "protocol", err);
}

static int take_register(void *into, char *text, struct err *err)
{
    struct nccl_opts *o = into;
    int how = find(register_name, text);

    if (how < 0)
        return err_usage(err, "\"%s\" is none of none, buffer, symmetric", text);
    o->registration = (enum nccl_register)how;
    return 0;
}

static int take_type(void *into, char *text, struct err *err)
{
    struct nccl_opts *o = into;

    o->dtype = nccl_dtype_find(text);
    o->dtype_given = true;
    return o->dtype < 0 ? err_usage(err, "NCCL has no datatype \"%s\"", text) : 0;
}

static int take_redop(void *into, char *text, struct err *err)
{
    struct nccl_opts *o = into;

    o->redop = nccl_redop_find(text);
    return o->redop < 0 ? err_usage(err, "\"%s\" is none of sum, prod, max, min, avg", text) : 0;
}

static const char *const pair_comms_name[] = {"own", "split", "shared", "auto", NULL};

static int take_pair_comms(void *into, char *text, struct err *err)
{
    int how = find(pair_comms_name, text);

    ((struct nccl_opts *)into)->pair_comms = (enum nccl_pair_comms)(how + 1);
    return how < 0 ? err_usage(err, "\"%s\" is none of own, split, shared, auto", text) : 0;
}

/* Parse the next "NAME=NUMBER" of the list at *rest; false: the list is at its end. */
static bool next_field(const char **rest, const struct nccl_config_field **field, int *value,
                       struct err *err)
{
    char name[32], *end;
    size_t n = strcspn(*rest, ",");

    err->code = 0;
    if (!**rest)
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(*rest, "=,"), *rest);
    *field = nccl_config_find(name);
    const char *text = *rest + strlen(name) + 1;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (!*field)
        err_usage(err, "ncclConfig_t has no number \"%s\"", name);
    else if (text[-1] != '=' || end == text || end != *rest + n || errno || number < 0 ||
             number > INT_MAX)
        err_usage(err, "\"%.*s\" is not NAME=NUMBER", (int)n, *rest);
    *value = (int)number;
    *rest += n + ((*rest)[n] == ',');
    return true;
}

static int take_config(void *into, char *list, struct err *err)
{
    const struct nccl_config_field *field;
    const char *rest = list;
    int value;

    ((struct nccl_opts *)into)->config = list;
    while (next_field(&rest, &field, &value, err))
        if (err->code)
            return -1;
    return 0;
}

static const struct opt rows[] = {
    {.help = "NCCL (--transport nccl)", .group = "gpu"},
    {"path", 0, "NAME",
     "path that must carry the data: nvlink, mnnvl, p2p, pcie, shm, ib, roce, tcp, plugin or "
     "plugin:NAME (EFA: plugin:Libfabric); another path is an error (default: NCCL chooses)",
     OPT_CALL(take_path), .group = "gpu"},
    {"algo", 0, "LIST",
     "algorithms: ring, tree, nvls, nvlstree, pat, collnetdirect, collnetchain (default: NCCL "
     "chooses)",
     OPT_CALL(take_algo), .group = "gpu"},
    {"proto", 0, "LIST", "protocols: ll, ll128, simple (default: NCCL chooses)",
     OPT_CALL(take_proto), .group = "gpu"},
    {"sweep", 0, NULL,
     "measure the collectives again with each algorithm and protocol, into sweep/ALGO-PROTO.tsv",
     OPT_INTO(struct nccl_opts, sweep), .group = "gpu"},
    {"graph", 0, NULL,
     "replay a CUDA graph of up to 20 operations instead of launching them one by one",
     OPT_INTO(struct nccl_opts, graph), .group = "gpu"},
    {"same-buffer", 0, NULL,
     "use the same memory for every operation (default: each begins where the last ended)",
     OPT_INTO(struct nccl_opts, same_buffer), .group = "gpu"},
    {"in-place", 0, NULL, "run collectives within one buffer", OPT_INTO(struct nccl_opts, in_place),
     .group = "gpu"},
    {"nccl-mem", 0, NULL, "allocate buffers with ncclMemAlloc",
     OPT_INTO(struct nccl_opts, mem_alloc), .group = "gpu"},
    {"share-gpu", 0, NULL,
     "allow several ranks on one GPU, over sockets: to try things out, not to measure a fabric",
     OPT_INTO(struct nccl_opts, share_gpu), .group = "gpu"},
    {"register", 0, "HOW",
     "register buffers: none, buffer (ncclCommRegister) or symmetric (a window, with --nccl-mem) "
     "(default none)",
     OPT_CALL(take_register), .group = "gpu"},
    {"datatype", 'd', "TYPE",
     "data type: int8 ... float32, bfloat16, float8e4m3 (default uint8, for sums bfloat16)",
     OPT_CALL(take_type), .group = "gpu"},
    {"redop", 0, "OP", "reduction: sum, prod, max, min or avg (default sum)", OPT_CALL(take_redop),
     .group = "gpu"},
    {"pool", 0, "N", "communicators kept open (default 16)",
     OPT_INT(struct nccl_opts, pool, 1, 4096), .group = "gpu"},
    {"pair-comms", 0, "HOW",
     "communicator of a pair: own, split, shared or auto, which measures first (default: auto "
     "where connecting takes long, else own)",
     OPT_CALL(take_pair_comms), .group = "gpu"},
    {"nccl-config", 0, "LIST",
     "fields of ncclConfig_t, such as CTAPolicy=2,splitShare=1 (default: NCCL chooses)",
     OPT_CALL(take_config), .group = "gpu"},
    {0},
};

/* Refuse --algo and --proto with windows: there the large collectives run as kernels without
 * algorithm and protocol (2.28: src/enqueue.cc, ncclPrepareTasks: ncclMakeSymmetricTaskList comes
 * before getAlgoInfo). */
static int check(void *into, struct err *err)
{
    const struct nccl_opts *o = into;

    if (o->sweep && (o->algo || o->proto))
        return err_usage(err,
                         "--sweep tries every algorithm and protocol: not with --algo, --proto");
    if (o->registration != NCCL_REG_SYMMETRIC)
        return 0;
    if (o->pair_comms == NCCL_PAIRS_SHARED)
        return err_usage(err, "--register symmetric: a pair cannot register windows on the "
                              "communicator of all (--pair-comms shared)");
    if (!o->mem_alloc)
        return err_usage(err, "--register symmetric needs --nccl-mem: windows lie in such memory");
    if (o->sweep || o->algo || o->proto)
        return err_usage(err, "--register symmetric takes kernels without algorithm and protocol: "
                              "not with --sweep, --algo, --proto");
    return 0;
}

const struct opt_set nccl_options = {.rows = rows, .into = &nccl_opts_asked, .check = check};

/* --- variables that NCCL reads --- */

/* Variables set by this program, which it may change; other values belong to the user. */
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

/* Undo the setting of an earlier call. */
static void take_back(const char *name)
{
    char **mine = own_slot(name);

    if (*mine && getenv(name) && !strcmp(getenv(name), *mine))
        unsetenv(name);
    free(*mine);
    *mine = NULL;
}

/* Set the list in NCCL's spelling, because older versions match case. */
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

/* NCCL treats hosts with different NCCL_HOSTID as different (src/misc/utils.cc, getHostHash), so
 * that two ranks on one GPU are no duplicate.  From 2.30 on a variable must also allow it. */
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

/* NCCL reads these variables once, when it makes the first communicator. */
static int set_path(const char *path, struct err *err)
{
    char *why = mem_printf("--path %s", path);
    int rc = 0;

    for (const struct nccl_path_var *v = nccl_path_find(path)->var; rc == 0 && v->name; v++)
        rc = set(v->name, v->value, why, err);
    if (rc == 0 && nccl_path_plugin(path))
        rc = set("NCCL_NET", nccl_path_plugin(path), why, err);
    free(why);
    return rc;
}

static const struct nccl_opts *now = &nccl_opts_asked;

int nccl_opts_apply(const struct nccl_opts *o, int rank, bool one_host, struct err *err)
{
    now = o;
    /* The variable overrides ncclConfig_t.blocking (src/init.cc, envConfigOverride). */
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

static const char *opts_net(void)
{
    const struct nccl_opts *o = now;
    const struct nccl_path *path = o->path ? nccl_path_find(o->path) : NULL;

    if (nccl_path_plugin(o->path))
        return nccl_path_plugin(o->path);
    return path ? path->net_name : o->share_gpu ? "Socket" : NULL;
}

static int check_config(const char *list, int version, struct err *err)
{
    const struct nccl_config_field *field;
    char text[24], since[24];
    int value;

    while (list && next_field(&list, &field, &value, err))
        if (field->since > version)
            return err_config(err, "--nccl-config %s needs NCCL %s or newer: this is NCCL %s",
                              field->name, nccl_version_text(field->since, since),
                              nccl_version_text(version, text));
    return 0;
}

void nccl_opts_config(struct nccl_config *c)
{
    const struct nccl_config_field *field;
    const char *rest = now->config;
    struct err err;
    int value;

    nccl_config(c);
    c->blocking = 1;
    c->net_name = opts_net();
    while (rest && next_field(&rest, &field, &value, &err))
        memcpy((char *)c + field->at, &value, sizeof(value));
}

int nccl_opts_check(const struct nccl_opts *o, int version, struct err *err)
{
    char text[24];

    if (check_config(o->config, version, err) < 0)
        return -1;

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
    return now;
}

bool nccl_opts_on_nvlink(void)
{
    const struct nccl_path *p = nccl_path_find(nccl_opts_asked.path);

    return !p || p->within & (1u << NCCL_VIA_P2P | 1u << NCCL_VIA_MNNVL);
}

void nccl_opts_leave_nvlink(void)
{
    const struct nccl_path *p = nccl_path_find(nccl_opts_asked.path);

    for (const struct nccl_path_var *v = p ? p->var : NULL; v && v->name; v++)
        if (strncmp(v->name, "NCCL_NET", 8) != 0 && strncmp(v->name, "NCCL_IB", 7) != 0)
            unsetenv(v->name);
}

/* --- options of nccl-tests --- */

/* For each: the letter, the values that change nothing (each between blanks), and the message for
 * any other value.  Percentiles (per_iter_timing) are always in points.tsv. */
// clang-format off
#define TESTS_OPTIONS(O)                                                                           \
    O("ngpus", 'g', " 1 ", "there is one rank a GPU here: mpirun -n N")                            \
    O("nthreads", 0, " 1 ", "there is one rank a GPU here: mpirun -n N")                           \
    O("stepbytes", 'i', "", "sizes grow by a factor here: -f N")                                   \
    O("agg_iters", 'm', " 1 ", "each sample is one operation; -n N takes N of them")               \
    O("run_cycles", 'N', " 1 ", "--epochs N measures everything N times, spread over the "         \
      "campaign")                                                                                  \
    O("parallel_init", 'p', " 0 1 ", "")                                                           \
    O("root", 'r', " 0 ", "the root is the first rank of each group")                              \
    O("blocking", 'z', " 0 ", "operations are enqueued one after another and timed one by one "    \
      "on the GPU's clock")                                                                        \
    O("stream_null", 'y', " 0 ", "every rank has a stream of its own")                             \
    O("timeout", 'T', "", "ranks that hang are found and named without it; --budget TIME ends "    \
      "a campaign")                                                                                \
    O("cudagraph", 'G', " 0 ", "--graph replays a CUDA graph")                                     \
    O("report_cputime", 'C', " 0 ", "the time of the calling CPU is not measured")                 \
    O("average", 'a', " 3 ", "a sample is the slowest rank's time: that is -a 3")                  \
    O("local_register", 'R', " 0 ", "--register buffer is -R 1, --register symmetric "             \
      "--nccl-mem is -R 2")                                                                        \
    O("cta_policy", 'x', "", "the CTA policy is the library's: NCCL_CTA_POLICY")                   \
    O("device_implementation", 'D', " 0 ", "operations are those of the library")                  \
    O("report_timestamps", 'S', " 0 ", "points.tsv says when it was measured")                     \
    O("output_file", 'J', "", "points.tsv is made for programs: -o FILE; show --json prints "      \
      "the matrix")                                                                                \
    O("memory_report", 'M', " 0 ", "memory is not reported; --memory is that of --transport verbs") \
    O("unalign", 'u', " 0 ", "buffers are aligned")                                                \
    O("per_iter_timing", 'I', " 0 1 ", "")                                                         \
    O("per_iter_skip", 'K', " 0 ", "-w N runs are not counted")
// clang-format on

static const struct {
    const char *name, *same, *why;
} tests_option[] = {
#define MEANING(name, letter, same, why) {name, same, why},
    TESTS_OPTIONS(MEANING)};

static int take_of_tests(void *into, const char *name, const char *value, struct err *err)
{
    char want[16];
    size_t i = 0;

    (void)into;
    while (strcmp(tests_option[i].name, name) != 0)
        i++;
    snprintf(want, sizeof(want), " %.12s ", value);
    if (*value && strstr(tests_option[i].same, want))
        return 0;
    return err_usage(err, "--%s %s of nccl-tests: %s", name, value,
                     *tests_option[i].why ? tests_option[i].why : "only 0 and 1 are known");
}

#define HIDDEN(name, letter, same, why)                                                            \
    {name, letter, "VALUE", NULL, OPT_NAMED(take_of_tests), .flags = OPTION_HIDDEN},
const struct opt nccl_tests_options[] = {TESTS_OPTIONS(HIDDEN){0}};

const char *nccl_tests_meaning(char letter, const char *word)
{
    if (letter == 't' && *word && !word[strspn(word, "0123456789")])
        return "-t is --transport here; threads are nccl-tests' -t: one rank a GPU, mpirun -n N";
    if (letter == 'o' && (nccl_redop_find(word) >= 0 || !strcmp(word, "all")))
        return "-o is --output here; the reduction is --redop";
    return NULL;
}
