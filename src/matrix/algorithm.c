/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures marked [T] are of NVIDIA/nccl, src/graph/tuning.cc, v2.30.7 where nothing else stands; [M] were
 * measured: oracle-quickstart/oci-hpc-oke (2 x 64 GB200, NCCL 2.29.2; A100), coreweave/nccl-tests PR 43, nccl-tests
 * issue 309 (16 and 32 H100, 2.26.2), ai-dynamo/aiconfigurator at 095f58a (nccl_perf, inside one domain). */
#include "matrix/algorithm.h"

#include <stdio.h>
#include <string.h>

/* NCCL's tables have a column for one domain, one for two and one for more, which is of four.  Between two and
 * `all_of_more` domains what changes goes from column to column by octaves: no measurement tells where it falls, and a rack
 * more is to change a price by a quarter at most. */
static const double all_of_more = 10;

/* GPUs that NCCL has tables for.  GPU_OTHER: hops and rates as on Hopper, no multicast. */
enum gpu_generation { GPU_OTHER, GPU_VOLTA, GPU_AMPERE, GPU_HOPPER, GPU_BLACKWELL };

static const double us = 1e-6, GB = 1e9, MB = 1e6;

/* --- tables, columns LL, LL128, Simple --- */

static const double base_tree[PROTOCOLS] = {6.8, 14, 8.4}, base_ring[PROTOCOLS] = {6.6, 14, 8.4};
static const double nvlink_tree[PROTOCOLS] = {0.6, 1.25, 4},
                    nvlink_ring[PROTOCOLS] = {0.6, 1.9, 3.4};
static const double pcie_tree[PROTOCOLS] = {1, 1.9, 4}, pcie_ring[PROTOCOLS] = {1, 2.5, 5.7};
static const double net_tree[PROTOCOLS] = {5, 8.5, 14}, net_ring[PROTOCOLS] = {2.7, 4, 14};
/* A proxy posts each step of a ring that leaves its domain [T]. */
static const double net_post[PROTOCOLS] = {1, 1, 3};
static const double ring_share[PROTOCOLS] = {0.5, 0.92, 1}, tree_share[PROTOCOLS] = {0.25, 0.9, 1};
/* Bytes that fill the pipeline of a tree, for each level of it [M]. */
static const double tree_fill[PROTOCOLS] = {0.02e6, 1.5e6, 1.5e6};

/* GPUs by generation.  hop: LL and LL128 hops inside, of the table's [M]; ring: what rings reach of a pair's rate [M];
 * ll: best LL bus bandwidth in one domain, GB/s [T]; nvls, gather: what NVLS reduces at and gathers at, of a pair's rate
 * [M, T]; two: what an NVLS tree of two domains keeps of that [M]; tree, tree128: most that a channel of a tree
 * carries in 1, 2 and more domains, GB/s [T; 41.4 of two Hopper domains is more than in one, and left out] */
static const struct gpu_row {
    double hop, ring, ll, nvls, gather, two, tree[3], tree128[3];
} gpu_row[] = {
    [GPU_OTHER] = {1, 1, 141, 0, 0, 0, {38.7, 38.7, 36}, {36.7, 36.7, 29}},
    [GPU_VOLTA] = {1.6, 1, 39, 0, 0, 0, {26.5, 18.5, 10}, {20, 20, 20}},
    [GPU_AMPERE] = {1.6, 0.95, 87.7, 0, 0, 0, {24, 23.6, 17.8}, {20, 20, 20}},
    [GPU_HOPPER] = {1, 0.92, 141, 0.74, 0.74, 0.92, {38.7, 38.7, 36}, {36.7, 36.7, 29}},
    [GPU_BLACKWELL] = {2.2, 0.82, 282, 0.60, 0.72, 0.92, {70, 42.8, 24}, {55.6, 31.7, 20}},
};

/* Changes from version to version [T].  hop: of an NVLS tree, us; hopper, blackwell: what an NVLS tree
 * of three and more domains keeps of one of two; tree: most that a channel of a Blackwell tree of three and more
 * domains carries, GB/s. */
static const struct nccl_row {
    int since;
    bool pat;
    double hop, hopper, blackwell, tree;
} nccl_row[] = {
    {21903, false, 14, 0.79, 0.79, 36}, /* Blackwell has no tables: as Hopper */
    {22304, true, 14, 0.79, 0.79, 36},  /* PAT */
    {22602, true, 14, 0.79, 0.79, 72},  /* Blackwell: twice Hopper's */
    {22803, true, 20.9, 0.79, 0.456, 24},
    {23003, true, 20.9, 0.79, 0.83, 24}, /* NVLS tree 43.8 -> 80 GB/s a channel */
};

/* First version whose source was not read: prices use the newest tables and say so. */
static const int nccl_unread = 23100;

static const int channels =
    16; /* channels of a tree: NCCL's number on 8 GPUs, which it keeps for larger domains [M] */
static const double plateau = 1.4; /* latency of a Simple all_reduce ring across domains [T] */
static const double ll_net[2] = {
    39, 20.4}; /* best LL bus bandwidth of two and of more domains, GB/s [T] */
static const double net_reached = 0.96;               /* share of the NICs' rate, by trees [M] */
static const double nvls_latency = 25;                /* us [T] */
static const double head_in = 0.5, head_out = 0.8;    /* us for each GPU of a domain beyond 8 [M] */
static const double fill_rise = 1.5, fill_most = 4.3; /* MB a GPU of the domain, of NVLS [M] */
/* Times that LL128 and Simple meet a slower network where LL meets it once [M: all_gather over EFA and TCPX, 2 to 32 hosts]; of a p5
 * host, whose messages take 15.5 us, the plugin tells NCCL 75 us [aws-ofi-nccl at 2daf7d3, src/platform-aws.cpp]. */
static const double channels_slower = 3;
static const double infiniband = 5.5; /* us: latency of the network that the table's hops are of */
/* Share of NVLS's rate inside a domain that SHARP keeps [M: CoreWeave/nccl-tests, 64 H100 on 8 hosts, 356 to 387 GB/s of bus
 * bandwidth from 0.5 to 8 GiB]; latency of the switches that reduce, us [T: NVLS with CollNet]. */
static const double sharp_kept = 0.72, sharp_latency = 18;
static const double pat_share = 0.75; /* share of the ring's rate [T] */
/* As many ranks in twice as many domains are no more than so much faster.  NCCL's chain inside a domain is long in
 * an NVL72 and would say more; no measurement does. */
static const double spread_gain = 0.9;

static double of_domains(int domains, double two, double more)
{
    double part = fmin(1, log2(domains / 2.0) / log2(all_of_more / 2));

    return domains > 2 ? two * pow(more / two, part) : two;
}

static enum gpu_generation generation_of(const char *model)
{
    static const struct {
        const char *head;
        enum gpu_generation gpu;
    } known[] = {{"B200", GPU_BLACKWELL},     {"B300", GPU_BLACKWELL}, {"B100", GPU_BLACKWELL},
                 {"PRO 6000", GPU_BLACKWELL}, {"H100", GPU_HOPPER},    {"H200", GPU_HOPPER},
                 {"H20", GPU_HOPPER},         {"H800", GPU_HOPPER},    {"A100", GPU_AMPERE},
                 {"A800", GPU_AMPERE},        {"L40", GPU_AMPERE},     {"V100", GPU_VOLTA}};

    for (const char *at = model; *at; at++) {
        if (!(at[1] >= '0' && at[1] <= '9') && *at != 'P')
            continue; /* no head of these begins here: prices ask for it each time */
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
            if (*at == *known[i].head && !strncmp(at, known[i].head, strlen(known[i].head)))
                return known[i].gpu;
    }
    return GPU_OTHER;
}

static const struct nccl_row *row_of(int nccl)
{
    const struct nccl_row *row = nccl_row;

    for (size_t i = 1; i < sizeof(nccl_row) / sizeof(*nccl_row); i++)
        if ((nccl ? nccl : ALGORITHM_NCCL) >= nccl_row[i].since)
            row = &nccl_row[i];
    return row;
}

/* A group while its lines are written. */
struct writing {
    const struct algorithm_group *g;
    enum gpu_generation generation;
    const struct gpu_row *gpu;
    const struct nccl_row *nccl;
    struct algorithm_line *line;
    int lines;
    double per,
        slower; /* GPUs of a domain; s that a hop across takes longer than over InfiniBand */
};

static struct algorithm_line *add_line(struct writing *w, enum algorithm a, enum protocol p,
                                       double latency, double rate)
{
    struct algorithm_line *x = &w->line[w->lines++];
    double least = fmax(w->g->hop_in, w->g->hop_out); /* no collective beats one message */

    *x = (struct algorithm_line){
        fmax(latency, w->g->domains > 1 ? least : 0) + w->g->add[algorithm_schedule(a)],
        rate,
        0,
        0,
        a,
        p};
    return x;
}

/* A hop inside: a pipelined one costs no more than a message does. */
static double hop_in(const struct writing *w, const double *nvlink, const double *pcie, int p)
{
    double table = (w->g->nvlink ? nvlink : pcie)[p] * us * (p < PROTOCOL_SIMPLE ? w->gpu->hop : 1);

    return w->g->hop_in > 0 ? fmin(table, w->g->hop_in) : table;
}

/* Seconds that a hop across takes longer than over InfiniBand. */
static double slower(const struct writing *w, int p)
{
    return w->slower * (p > PROTOCOL_LL ? channels_slower : 1);
}

static void add_rings(struct writing *w, enum op op)
{
    const struct algorithm_group *g = w->g;
    int n = g->ranks, d = g->domains, turns = op_table[op].turns;
    double moved = turns * (op_table[op].share == OP_WHOLE ? 1 : (n - 1.0) / n);
    double bus = fmin(g->inside * w->gpu->ring, g->ring);

    for (int p = 0; p < PROTOCOLS; p++) {
        double in = hop_in(w, nvlink_ring, pcie_ring, p), out = net_ring[p] * us + slower(w, p);
        double most = d == 1 ? w->gpu->ll : of_domains(d, ll_net[0], ll_net[1]);
        if (d > 1)
            in = fmax(in, net_post[p] * us);
        double latency = base_ring[p] * us + turns * ((n - d) * in + (d - 1) * out);
        if (p == PROTOCOL_SIMPLE && turns > 1 && d > 1)
            latency *= plateau;
        double rate = bus * ring_share[p];
        if (p == PROTOCOL_LL)
            rate = fmin(rate, most * GB);
        add_line(w, ALGORITHM_RING, (enum protocol)p, latency, rate / moved);
    }
}

/* Latency of a way: `in` inside for each GPU but the first, `out` for each level of domains, there and back.  `head`:
 * for each GPU beyond eight, s; it was measured over one level, and heads of further levels work beside one another. */
static double latency_of(double per, double levels, double in, double out, double head)
{
    return 2 * ((per - 1) * in + levels * out + fmin(1, levels) * head * fmax(0, per - 8));
}

/* The same; at least nearly what as few domains as hold the ranks take.  One domain is never dearer than two. */
static double spread(const struct writing *w, double in, double out, double head)
{
    const struct algorithm_group *g = w->g;
    double dense = fmin(g->ranks, fmax(w->per, g->widest)), levels = log2(g->ranks / dense);
    double halvings = log2(dense / w->per) - (levels > 0 ? 0 : 1);

    return fmax(pow(spread_gain, fmax(0, halvings)) * latency_of(dense, levels, in, out, head),
                latency_of(w->per, log2(g->domains), in, out, head));
}

static void add_trees(struct writing *w)
{
    const struct algorithm_group *g = w->g;
    int d = g->domains;
    double levels = log2(2.0 * d);

    for (int p = 0; p < PROTOCOLS; p++) {
        double in = hop_in(w, nvlink_tree, pcie_tree, p), out = net_tree[p] * us + slower(w, p);
        const double *cap = p == PROTOCOL_SIMPLE ? w->gpu->tree : w->gpu->tree128;
        double more =
            p == PROTOCOL_SIMPLE && w->generation == GPU_BLACKWELL ? w->nccl->tree : cap[2];
        double one = p == PROTOCOL_LL ? w->gpu->ll : channels * cap[0];
        double most = d == 1             ? one
                      : p == PROTOCOL_LL ? of_domains(d, ll_net[0], ll_net[1])
                                         : channels * of_domains(d, cap[1], more);
        double rate = fmin(g->inside / 2, net_reached * g->tree / algorithm_load(d));
        struct algorithm_line *x =
            add_line(w, ALGORITHM_TREE, (enum protocol)p, base_tree[p] * us + spread(w, in, out, 0),
                     fmin(rate * tree_share[p], most * GB / 2));
        x->fill = tree_fill[p] * levels * levels;
        x->most = 20 * x->fill;
    }
}

static bool nvls_allowed(const struct writing *w)
{
    return w->gpu->nvls > 0 && w->g->nvlink && w->per >= 4;
}

/* Reduced and multicast in the switches. */
static void add_nvls(struct writing *w, enum op op)
{
    const struct algorithm_group *g = w->g;
    double heads = fmax(0, w->per - 8), inside = (nvls_latency + head_in * heads) * us;
    bool alone = g->domains == 1, sum = op == OP_ALL_REDUCE;
    double more = w->generation == GPU_HOPPER ? w->nccl->hopper : w->nccl->blackwell;
    double rate = (sum ? w->gpu->nvls : w->gpu->gather) * g->inside;

    if (!nvls_allowed(w) || op_table[op].share == OP_WHOLE || (!alone && !sum))
        return;
    if (!alone) {
        inside += spread(w, 0, w->nccl->hop * us + slower(w, PROTOCOL_SIMPLE), head_out * us);
        rate = fmin(rate * w->gpu->two * of_domains(g->domains, 1, more),
                    net_reached * g->tree / algorithm_load(g->domains));
    }
    struct algorithm_line *x =
        add_line(w, alone ? ALGORITHM_NVLS : ALGORITHM_NVLS_TREE, PROTOCOL_SIMPLE, inside, rate);
    if (sum) {
        x->fill = fill_rise * MB * w->per;
        x->most = fill_most * MB * w->per;
    }
}

/* Reduced by the NVSwitches of each domain and by the switches between domains, which a buffer passes once each way. */
static void add_sharp(struct writing *w, enum op op)
{
    const struct algorithm_group *g = w->g;
    double heads = fmax(0, w->per - 8);

    if (!nvls_allowed(w) || op != OP_ALL_REDUCE || g->domains < 2)
        return;
    struct algorithm_line *x =
        add_line(w, ALGORITHM_SHARP, PROTOCOL_SIMPLE,
                 (nvls_latency + sharp_latency + head_in * heads) * us + slower(w, PROTOCOL_SIMPLE),
                 fmin(sharp_kept * w->gpu->nvls * g->inside, net_reached * g->ring));
    x->fill = fill_rise * MB * w->per;
    x->most = fill_most * MB * w->per;
}

static void add_pat(struct writing *w, enum op op)
{
    const struct algorithm_group *g = w->g;
    double n = g->ranks, hop = net_tree[PROTOCOL_SIMPLE] * us + slower(w, PROTOCOL_SIMPLE);

    if (!w->nccl->pat || g->ranks != g->domains || op_table[op].share != OP_BLOCKS)
        return;
    /* as many ranks in half as many domains have only rings */
    double ring = n / 2 * net_post[0] + (n / 2 - 1) * net_ring[0];
    double least =
        spread_gain * (base_ring[0] * us + ring * us + (n / 2 - 1) * slower(w, PROTOCOL_LL128));
    double latency = 8 * us + log2(n) * hop / 3.5 + 2.8 * us * n;
    add_line(w, ALGORITHM_PAT, PROTOCOL_SIMPLE, g->widest > 1 ? fmax(latency, least) : latency,
             pat_share * g->pat * n / (n - 1));
}

static int no_line(struct algorithm_line *line)
{
    *line = (struct algorithm_line){0, NAN, 0, 0, ALGORITHM_RING, PROTOCOL_SIMPLE};
    return 1;
}

/* Keep the lines of one algorithm.  Returns their number, or that of no_line(). */
static int keep_only(struct algorithm_line *line, int lines, enum algorithm only)
{
    int kept = 0;

    for (int i = 0; i < lines; i++)
        if (line[i].algorithm == only)
            line[kept++] = line[i];
    return kept ? kept : no_line(line);
}

int algorithm_lines(struct algorithm_line line[ALGORITHM_LINES], const struct algorithm_group *g,
                    enum op op)
{
    struct writing w = {.g = g, .nccl = row_of(g->nccl), .line = line};

    if (isnan(g->inside) || isnan(g->ring) || isnan(g->tree) || isnan(g->pat))
        return no_line(line);
    w.generation = generation_of(g->model);
    w.gpu = &gpu_row[w.generation];
    w.per = (double)g->ranks / g->domains;
    w.slower =
        2 * fmax(0, g->hop_out - infiniband * us); /* met twice: the data, and the credit back */
    add_rings(&w, op);
    if (op == OP_ALL_REDUCE)
        add_trees(&w);
    add_nvls(&w, op);
    add_pat(&w, op);
    if (g->only == ALGORITHM_SHARP)
        add_sharp(&w, op);
    return g->only ? keep_only(line, w.lines, g->only) : w.lines;
}

/* "tree, LL" */
static char *text_of(const struct algorithm_line *x, char buf[24])
{
    static const char *const name[] = {"ring",      "ring", "tree",          "NVLS",
                                       "NVLS tree", "PAT",  "NVLS and SHARP"};
    static const char *const protocol[] = {", LL", ", LL128", ", Simple"};
    bool chosen = x->algorithm == ALGORITHM_RING || x->algorithm == ALGORITHM_TREE;

    snprintf(buf, 24, "%s%s", name[x->algorithm], chosen ? protocol[x->protocol] : "");
    return buf;
}

/* "2 x 3 hops" */
static char *hops_of(const struct algorithm_line *x, const struct algorithm_group *g, enum op op,
                     char buf[32])
{
    bool ring = x->algorithm <= ALGORITHM_RING, both = !ring && x->algorithm != ALGORITHM_PAT;
    int times = ring ? op_table[op].turns : both ? 2 : 1;
    int of = x->algorithm == ALGORITHM_PAT ? g->ranks : g->domains;
    int hops = ring                              ? g->ranks - 1
               : x->algorithm == ALGORITHM_SHARP ? 1
               : of > 1                          ? (int)ceil(log2(of))
               : x->algorithm == ALGORITHM_NVLS  ? 1
                                                 : g->ranks - 1;

    if (times > 1)
        snprintf(buf, 32, "%d x %d hop%s", times, hops, hops == 1 ? "" : "s");
    else
        snprintf(buf, 32, "%d hop%s", hops, hops == 1 ? "" : "s");
    return buf;
}

char *algorithm_words(const struct algorithm_line *x, const struct algorithm_group *g, enum op op,
                      const char *where, char buf[ALGORITHM_WORDS])
{
    int nccl = g->nccl ? g->nccl : ALGORITHM_NCCL;
    const char *newer = nccl >= nccl_unread ? " by the tables of 2.30" : "";
    char text[24], hops[32];

    snprintf(buf, ALGORITHM_WORDS, "%s, %s, %s, %s %d.%d%s", text_of(x, text), where,
             hops_of(x, g, op, hops), g->nccl ? "NCCL" : "as NCCL", nccl / 10000, nccl / 100 % 100,
             newer);
    return buf;
}
