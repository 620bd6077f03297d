/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_log.c - lines of NCCL's log: "HOST:PID:TID [DEV] NCCL INFO TEXT" (2.24 and later can print
 * a time first; a WARN has "FILE:LINE" before the word).  The table `rows` maps beginnings of TEXT
 * to readers, with a row or an optional word for each version that differs. */
#include "topo/sources/nccl/nccl_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/sources/nccl/nccl_log_impl.h"

/* --- readers of the texts; each gets the text after its beginning --- */
static void log_version(struct nccl_log *l, const char *s)
{
    if (*s >= '0' && *s <= '9')
        log_copy(l->p->version, sizeof(l->p->version), s, strcspn(s, " \t"));
}

static void on_network(struct nccl_log *l, const char *s)
{
    log_copy(l->p->rank[0].net, sizeof(l->p->rank[0].net), s, strlen(s));
}

static void on_assigned(struct nccl_log *l, const char *s) /* 2.26: "X to comm" */
{
    const char *end = strstr(s, " to comm");

    if (end && !l->p->rank[0].net[0])
        log_copy(l->p->rank[0].net, sizeof(l->p->rank[0].net), s, (size_t)(end - s));
}

static struct nccl_nic *nic_at(struct nccl_log *l, int number)
{
    struct nccl_rank *rank = &l->p->rank[0];

    for (int i = 0; i < rank->nics; i++)
        if (rank->nic[i].number == number)
            return &rank->nic[i];
    if (rank->nics >= NCCL_NICS_MAX) {
        l->p->dropped++;
        return NULL;
    }
    MEM_PUSH(rank->nic, rank->nics) = (struct nccl_nic){.number = number, .gdr = -1};
    return &rank->nic[rank->nics - 1];
}

/* " [0]mlx5_0:1/IB [1]={[1] mlx5_1:1/IB, [2] mlx5_2:1/IB} [RO]; OOB ib0:10.0.0.1<0>": braces (2.19
 * to 2.22) hold NICs that are used as one. */
static void on_nics(struct nccl_log *l, const char *s)
{
    while ((s = strchr(s, '['))) {
        int number;
        s++;
        if (!log_small(&s, 1 << 16, &number) || !log_take(&s, "]"))
            continue;
        struct nccl_nic *nic = nic_at(l, number);
        size_t len = *s == '=' ? strcspn(s, "}") : strcspn(s, " ;");
        if (*s == '=' && s[len])
            len++;
        if (nic && len)
            log_copy(nic->name, sizeof(nic->name), s + (*s == '='), len - (*s == '='));
        s += len;
    }
}

/* "[4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2 rail=0 plane=16387" (2.24; rail and plane: 2.30): NICs
 * that are used as one, with a number behind those of the NICs.  Connections name that number, so
 * that the link layer is that of the first member.  The plane is a mask of those of the members, which
 * stand in their names, "mlx5_0:1:0:1/IB" (port, rail, plane). */
static void on_merged(struct nccl_log *l, const char *s)
{
    const struct nccl_rank *rank = &l->p->rank[0];
    const char *name = strstr(s, " name="), *layer = "";
    int number, devices, rail;

    if (!name || !log_small(&s, 1 << 16, &number) || !log_named(s, " ndevs=", 64, &devices) ||
        devices < 2)
        return; /* each NIC alone has such a line too */
    name += 6;
    size_t len = strcspn(name, " "), first = strcspn(name, "+ ");
    for (int i = 0; i < rank->nics && !*layer; i++)
        if (!strncmp(rank->nic[i].name, name, first) && rank->nic[i].name[first] == ':')
            layer = strchr(rank->nic[i].name, '/') ? strchr(rank->nic[i].name, '/') : "";
    char text[96];
    snprintf(text, sizeof(text), "%.*s%.12s", (int)(len < 40 ? len : 40), name, layer);
    if (log_named(s, " rail=", 65534, &rail) && rail >= 0)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " rail %d", rail);
    struct nccl_nic *nic = nic_at(l, number); /* may move the list */
    if (nic)
        log_copy(nic->name, sizeof(nic->name), text, strlen(text));
}

/* "IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'" */
static void on_net(struct nccl_log *l, const char *s)
{
    const char *at = strstr(s, " : GPU Direct RDMA "), *hca = strstr(s, " for HCA ");
    int number;

    if (!at || !hca || (hca += 9, !log_small(&hca, 1 << 16, &number)) || !log_take(&hca, " '"))
        return;
    struct nccl_nic *nic = nic_at(l, number);
    if (!nic)
        return;
    nic->gdr = log_starts(at, " : GPU Direct RDMA Enabled");
    if (!nic->name[0])
        log_copy(nic->name, sizeof(nic->name), hca, strcspn(hca, "'"));
}

/* "Provider is efa" (to 1.5), "provider is efa, fabric is efa-direct (found 32 nics)": what carries
 * the messages of aws-ofi-nccl (src/nccl_ofi_net.cpp).  Without EFA, or where FI_PROVIDER says so,
 * libfabric takes sockets, and the plugin's name in the log of NCCL stays the same. */
static void on_provider(struct nccl_log *l, const char *s)
{
    char name[32], text[160];

    s = strstr(s, " is ") + 4;
    log_copy(name, sizeof(name), s, strcspn(s, ", "));
    if (!strstr(name, "tcp") && !strstr(name, "sockets") && !strstr(name, "udp"))
        return;
    snprintf(text, sizeof(text),
             "the network plugin uses libfabric's provider %s: sockets, not RDMA (FI_PROVIDER)",
             name);
    l->p->dropped += !nccl_profile_note(&l->p->finding, &l->p->findings, text);
}

/* Hash of a part (ncclCommSplit), which has no commId: made from the parent, the parent's number
 * of splits (2.28) and the color, so that all ranks of the part agree.  0: not a part, or the
 * parent is unknown.  Without the number of splits, parts of equal color differ only by the number
 * of ranks. */
static uint64_t part_hash(const struct nccl_log *l, const char *s, int ranks)
{
    const char *parent = strstr(s, " parent 0x");
    int of = parent ? nccl_log_comm_at(l, strtoull(parent + 8, NULL, 16)) : -1, count = 0, color;

    if (of < 0 || !l->p->comm[of].hash || !log_named(parent, " color ", INT_MAX, &color))
        return 0;
    log_named(parent, " splitCount ", INT_MAX, &count);
    return map_mix(map_mix(l->p->comm[of].hash, (uint64_t)count << 32 | (unsigned)color),
                   (uint64_t)ranks);
}

/* Read lines that name a communicator by its address: Init START and COMPLETE, host counts. */
static void on_comm(struct nccl_log *l, const char *s)
{
    const char *at = strstr(s, "comm 0x"), *id = strstr(s, "commId 0x");
    int rank, ranks;

    if (!at)
        return;
    unsigned long long address = strtoull(at + 5, NULL, 16);
    int c = nccl_log_comm_at(l, address);
    if (!log_named(at, " rank ", NCCL_RANKS_MAX - 1, &rank) || rank < 0)
        return;
    bool begins = strstr(at, "Init START");
    if (begins &&
        (log_named(at, " nranks ", NCCL_RANKS_MAX, &ranks) ||
         log_named(at, " nRanks ", NCCL_RANKS_MAX, &ranks)) &&
        rank < ranks) {
        c = nccl_log_comm_add(l, address, rank, ranks);
        nccl_log_thread_set(l, c);
    }
    if (c < 0)
        return;
    struct nccl_comm_profile *m = &l->p->comm[c];
    if (id)
        m->hash = strtoull(id + 7, NULL, 16);
    else if (begins)
        m->hash = part_hash(l, at, m->ranks);
    const char *bus = strstr(at, " busId ");
    if (bus && !l->p->rank[0].busid[0]) {
        unsigned long b = strtoul(bus + 7, NULL, 16); /* domain, bus, device; function: 4 bits */
        snprintf(l->p->rank[0].busid, sizeof(l->p->rank[0].busid), "%04lx:%02lx:%02lx.%lx",
                 b >> 20 & 0xffff, b >> 12 & 0xff, b >> 4 & 0xff, b & 0xf);
    }
    log_named(at, " nNodes ", NCCL_RANKS_MAX, &m->nodes);
    log_named(at, " localRanks ", NCCL_RANKS_MAX, &m->local);
    log_named(at, " MNNVL ", 1, &m->mnnvl);
    if (strstr(at, "Init COMPLETE")) {
        m->complete = true;
        nccl_log_thread_set(l, -1);
    }
}

static void on_mnnvl(struct nccl_log *l, const char *s) /* "1 cliqueId 1 cliqueSize 8 ..." */
{
    int c = nccl_log_current(l), on;

    if (c >= 0 && log_small(&s, 1, &on) && log_starts(s, " cliqueId"))
        l->p->comm[c].mnnvl = on;
}

static void on_multicast(struct nccl_log *l, const char *s)
{
    l->p->rank[0].nvls = log_starts(s, "available");
}

static void on_ring(struct nccl_log *l, const char *s) /* "00 : 7 -> 0 -> 1" */
{
    int c = nccl_log_current(l), channel, before, me, after;

    if (c < 0 || !log_small(&s, NCCL_RINGS_MAX - 1, &channel) || !log_take(&s, " : ") ||
        !log_small(&s, NCCL_RANKS_MAX, &before) || !log_take(&s, " -> ") ||
        !log_small(&s, NCCL_RANKS_MAX, &me) || !log_take(&s, " -> ") ||
        !log_small(&s, NCCL_RANKS_MAX, &after))
        return;
    struct nccl_comm_profile *m = &l->p->comm[c];
    if (me != m->rank || channel != m->rings || before < 0 || before >= m->ranks || after < 0 ||
        after >= m->ranks)
        return;
    m->ring = mem_realloc(m->ring, (size_t)m->rings + 1, 2 * sizeof(int));
    m->ring[2 * m->rings] = before;
    m->ring[2 * m->rings++ + 1] = after;
}

/* Kind of a graph from the pattern number in NCCL's graph.h.  A CollNet chain has the number of a
 * plain tree, and comes after the tree. */
static int graph_kind(const struct nccl_comm_profile *m, int pattern)
{
    static const int kind[] = {-1,
                               NCCL_GRAPH_TREE,
                               NCCL_GRAPH_TREE,
                               NCCL_GRAPH_TREE,
                               NCCL_GRAPH_RING,
                               NCCL_GRAPH_NVLS,
                               NCCL_GRAPH_COLLNET_DIRECT};

    if (pattern == 3 && m->graph[NCCL_GRAPH_TREE].pattern)
        return NCCL_GRAPH_COLLNET_CHAIN;
    return pattern > 0 && pattern < 7 ? kind[pattern] : -1;
}

/* "4, crossNic 0, nChannels 16, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1" */
static void on_pattern(struct nccl_log *l, const char *s)
{
    const char *bw = strstr(s, " bw "), *type = strstr(s, " type ");
    int c = nccl_log_current(l), pattern, channels;
    double intra, inter;

    if (!bw || !type || c < 0 || !log_named(s, " nChannels ", 4096, &channels) ||
        !log_small(&s, 64, &pattern))
        return;
    char *end;
    intra = strtod(bw + 4, &end);
    inter = *end == '/' ? strtod(end + 1, NULL) : intra;
    int kind = graph_kind(&l->p->comm[c], pattern);
    if (kind < 0 || !(intra >= 0 && intra < 1e6) || !(inter >= 0 && inter < 1e6) || channels < 0)
        return;
    struct nccl_graph *g = &l->p->comm[c].graph[kind];
    *g = (struct nccl_graph){.pattern = pattern,
                             .channels = channels,
                             .intra_Bps = units_in(FOREIGN_NCCL_GRAPH, intra),
                             .inter_Bps = units_in(FOREIGN_NCCL_GRAPH, inter)};
    type += 6;
    size_t n = strcspn(type, "/,");
    log_copy(g->type_intra, sizeof(g->type_intra), type, n);
    if (type[n] == '/')
        log_copy(g->type_inter, sizeof(g->type_inter), type + n + 1, strcspn(type + n + 1, ","));
}

/* "16 coll channels, 0 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per
 * peer"; 2.19 has no collnet. */
static void on_channels(struct nccl_log *l, const char *s)
{
    static const char *const kind[] = {" coll channels", " nvls channels", " p2p channels",
                                       " p2p channels per peer"};
    int c = nccl_log_current(l), n;

    if (c < 0)
        return;
    struct nccl_comm_profile *m = &l->p->comm[c];
    int *const to[] = {&m->coll, &m->nvls, &m->p2p, &m->p2p_peer};
    while (s && log_small(&s, 1 << 16, &n)) {
        for (int i = 0; i < 4; i++)
            if (log_starts(s, kind[i]) && (s[strlen(kind[i])] == ',' || !s[strlen(kind[i])]))
                *to[i] = n;
        s = strchr(s, ',');
        s = s ? s + 1 : NULL;
    }
}

static void lower(char *to, size_t size, const char *from, size_t len)
{
    log_copy(to, size, from, len);
    for (char *c = to; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c += 'a' - 'A';
}

/* "AllReduce" -> "all_reduce", "AlltoAll" -> "all_to_all" */
static void op_name(char *to, size_t size, const char *from, size_t len)
{
    size_t n = 0;

    if (len == 8 && log_starts(from, "AlltoAll")) {
        log_copy(to, size, "all_to_all", 10);
        return;
    }
    for (size_t i = 0; i < len && n + 2 < size; i++) {
        bool big = from[i] >= 'A' && from[i] <= 'Z';
        if (big && i)
            to[n++] = '_';
        to[n++] = (char)(from[i] + (big ? 'a' - 'A' : 0));
    }
    to[n] = '\0';
}

/* Words since 2.24, numbers before. */
static void choice_word(char *to, size_t size, const char *s, const char *const *names, int count)
{
    int n;

    if (*s >= '0' && *s <= '9' && log_small(&s, count - 1, &n))
        log_copy(to, size, names[n], strlen(names[n]));
    else
        lower(to, size, s, strcspn(s, " "));
}

/* The last line for a size counts. */
static void keep_choice(struct nccl_log *l, const struct nccl_choice *c)
{
    uint64_t h = map_mix(map_mix((uint64_t)c->comm, (uint64_t)c->bytes), map_text(c->op));
    int *at = map_at(&l->choices, h, NULL, NULL);

    if (*at != MAP_NONE) {
        l->p->choice[*at] = *c;
    } else if (l->p->choices < NCCL_CHOICES_MAX) {
        *at = l->p->choices;
        MEM_PUSH(l->p->choice, l->p->choices) = *c;
    } else {
        l->p->dropped++;
    }
}

/* "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}" (2.24 to 2.31), "AllReduce:
 * 1024 Bytes -> Algo 1 proto 0 time 12.3" (2.23), the same without the name (2.20 to 2.22). */
static void on_choice(struct nccl_log *l, const char *s)
{
    static const char *const algos[] = {
        "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
    static const char *const protos[] = {"ll", "ll128", "simple"};
    struct nccl_choice c = {.comm = nccl_log_current(l), .channels = -1};
    const char *colon = strstr(s, ": "), *algo = strstr(s, " Bytes -> Algo "),
               *proto = strstr(s, " proto "), *span = strstr(s, "={");
    int low, high;

    if (!algo || !proto || c.comm < 0)
        return;
    if (colon && colon < algo) {
        op_name(c.op, sizeof(c.op), s, (size_t)(colon - s));
        s = colon + 2;
    }
    if (!log_number(&s, &c.bytes) || s != algo || c.bytes < 0)
        return;
    choice_word(c.algo, sizeof(c.algo), algo + 15, algos, 7);
    choice_word(c.proto, sizeof(c.proto), proto + 7, protos, 3);
    if (!c.algo[0] || !c.proto[0])
        return;
    if (span && (span += 2, log_small(&span, 4096, &low)) && log_take(&span, "..") &&
        log_small(&span, 4096, &high) && high >= low)
        c.channels = high - low + 1;
    keep_choice(l, &c);
}

/* Collectives outside algorithms and protocols:
 *   "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 nthreads ..." (2.27)
 *   "AllGather [Copy Engine]: 1048576 Bytes -> cudaMemcpy; CE ..." (2.29)
 *   "AllGather [Hierarchical CE]: 1048576 Bytes -> RMA proxy + CE" (2.30) */
static void on_kernel(struct nccl_log *l, const char *s)
{
    static const char *const way[][2] = {{"[Symmetric]: ", "symmetric"},
                                         {"[Copy Engine]: ", "copy_engine"},
                                         {"[Hierarchical CE]: ", "rma"}};
    struct nccl_choice c = {.comm = nccl_log_current(l), .channels = -1, .proto = "-"};
    const char *open = strchr(s, '['), *at = open, *kernel = strstr(s, " -> Kernel ");
    int i = 0;

    while (at && i < 3 && !log_take(&at, way[i][0]))
        i++;
    if (!at || i == 3 || open == s || open[-1] != ' ' || c.comm < 0)
        return;
    op_name(c.op, sizeof(c.op), s, (size_t)(open - 1 - s));
    if (!log_number(&at, &c.bytes) || c.bytes < 0 || !log_starts(at, " Bytes -> ") ||
        (i == 0) != (at + 6 == kernel))
        return;
    log_copy(c.algo, sizeof(c.algo), way[i][1], strlen(way[i][1]));
    if (i == 0)
        log_copy(c.proto, sizeof(c.proto), kernel + 11, strcspn(kernel + 11, " "));
    log_named(at, " nchannels ", 4096, &c.channels);
    if (c.proto[0])
        keep_choice(l, &c);
}

static void on_env(struct nccl_log *l, const char *s)
{
    if (log_starts(s, "NCCL_TOPO_DUMP_FILE") || log_starts(s, "NCCL_GRAPH_DUMP_FILE"))
        return; /* set by the probe itself, without effect */
    if (!nccl_profile_note(&l->p->env, &l->p->envs, s))
        l->p->dropped++;
}

static const struct log_row {
    const char *begins, *has; /* has: must also contain this; NULL: no condition */
    void (*take)(struct nccl_log *l, const char *s);
    bool whole; /* the reader gets the beginning too */
} rows[] = {
    {"Channel ", " via ", nccl_log_channel, false},
    {"Ring ", " -> ", on_ring, false},
    {"", " Bytes -> Algo ", on_choice, true},
    {"", "]: ", on_kernel, true},
    {"CollNet ", " via COLLNET/", nccl_log_collnet, false},
    {"NVLS comm ", "headRank", nccl_log_nvls, false},
    {"", "comm 0x", on_comm, true}, /* "comm", "ncclCommInitRank comm", "[Rank 3] ... comm" */
    {"Pattern ", "nChannels", on_pattern, false},
    {"", " coll channels", on_channels, true},
    {"MNNVL ", "cliqueId", on_mnnvl, false},
    {"NVLS multicast support is ", NULL, on_multicast, false},
    {"Using network ", NULL, on_network, false},
    {"Assigned NET plugin ", NULL, on_assigned, false},
    {"NET/", " : Using [", on_nics, false}, /* IB, Socket, and plugins that are copies of IB */
    {"NET/IB : Made virtual device [", NULL, on_merged, false},
    {"NET/OFI Selected ", "rovider is ", on_provider, false},
    {"NET/", "GPU Direct RDMA", on_net, false},
    {"NCCL version ", NULL, log_version, false},
    {"RCCL version : ", NULL, log_version, false}, /* ROCm 6.3 and later */
    {"RCCL version ", NULL, log_version, false},
    {"NCCL_", " set ", on_env, true}, /* "set by environment to", "set to" */
    {"Comm config ", " set to ", on_env, true},
};

static void log_fact(struct nccl_log *l, const char *s)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (log_starts(s, rows[i].begins) && (!rows[i].has || strstr(s, rows[i].has))) {
            rows[i].take(l, rows[i].whole ? s : s + strlen(rows[i].begins));
            return;
        }
}

/* --- lines --- */

enum { PREFIX_MAX = 512 };

/* Parse "host:pid:TID [0] " right before the word; -1: not found. */
static long thread_id(const char *line, const char *word)
{
    const char *s = word;

    while (s > line && s[-1] != '[' && word - s < PREFIX_MAX) /* WARN has FILE:LINE between */
        s--;
    if (s - line < 3)
        return -1;
    const char *end = s - 1; /* position of '[' */
    for (s = end; s > line && s[-1] != ':' && end - s < 16;)
        s--;
    return s > line && s[-1] == ':' ? strtol(s, NULL, 10) : -1;
}

static void take_line(struct nccl_log *l, char *line, size_t len)
{
    const char *at;

    line[len] = '\0';
    for (size_t i = 0; i < len; i++) /* the text goes into JSON and onto terminals */
        if (line[i] < ' ' || line[i] > '~')
            line[i] = line[i] == '\t' ? ' ' : '?';
    while (len && (line[len - 1] == '?' || line[len - 1] == ' '))
        line[--len] = '\0';
    if ((at = strstr(line, "NCCL INFO "))) {
        l->p->lines++;
        l->tid = thread_id(line, at);
        log_fact(l, at + 10);
    } else if ((at = strstr(line, "NCCL WARN "))) {
        l->p->lines++;
        if (at[10] && !nccl_profile_note(&l->p->warn, &l->p->warns, at + 10))
            l->p->dropped++;
    } else {
        for (at = line; *at == '>' || *at == ' '; at++) /* quoted in mail */
            ;
        if (!log_take(&at, "NCCL version ") && !log_take(&at, "RCCL version : ") &&
            !log_take(&at, "RCCL version "))
            return;
        l->p->lines++;
        log_version(l, at);
    }
}

static void begin(struct nccl_log *l, struct nccl_profile *out)
{
    memset(out, 0, sizeof(*out));
    memset(l, 0, sizeof(*l));
    l->p = out;
    MEM_PUSH(out->rank, out->ranks) = (struct nccl_rank){.endpoint = -1, .nvls = -1};
}

static void end(struct nccl_log *l)
{
    map_free(&l->links);
    map_free(&l->choices);
    map_free(&l->address);
}

void nccl_log_parse(struct nccl_profile *out, const char *text, size_t len)
{
    char line[NCCL_LOG_LINE_MAX];
    struct nccl_log l;

    begin(&l, out);
    while (len) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        size_t kept = n < sizeof(line) ? n : sizeof(line) - 1;
        memcpy(line, text, kept);
        take_line(&l, line, kept);
        n += nl != NULL;
        text += n;
        len -= n;
    }
    end(&l);
}

/* Advance to the mark of a line that begins at this byte of the log. */
static void move_on(struct nccl_log *l, long long at)
{
    const struct nccl_log_mark *next = l->now ? l->now + 1 : l->mark;

    for (; next && next < l->mark + l->marks && next->from <= at; next++)
        l->now = next;
}

int nccl_log_read(struct nccl_profile *out, const char *path, const struct nccl_log_mark *mark,
                  int marks, struct err *err)
{
    char line[NCCL_LOG_LINE_MAX];
    struct nccl_log l;
    FILE *f = fopen(path, "re");

    memset(out, 0, sizeof(*out));
    if (!f)
        return err_noinput(err, "%s: %s", path, strerror(errno));
    begin(&l, out);
    l.mark = mark;
    l.marks = marks;
    bool fresh = true; /* at the start of a line */
    for (;;) {
        if (fresh && marks)
            move_on(&l, ftello(f));
        if (!fgets(line, sizeof(line), f))
            break;
        size_t n = strlen(line);
        bool ends = n && line[n - 1] == '\n';
        if (fresh && n)
            take_line(&l, line, ends ? n - 1 : n);
        fresh = ends;
    }
    int rc = ferror(f) ? err_noinput(err, "%s: %s", path, strerror(errno)) : 0;
    fclose(f);
    end(&l);
    if (rc < 0)
        nccl_profile_free(out);
    return rc;
}
