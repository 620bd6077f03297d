/* algorithm.h - time of a collective on GPUs by NCCL's algorithms and protocols.
 *
 * Each pair of an algorithm and a protocol that NCCL allows is a line, and the fastest one is the price:
 *
 *   t(S) = min over lines of   latency + (S + min(sqrt(fill * S), most)) / rate
 *
 *   symbol   meaning                                                            unit
 *   S        the buffer as nccl-tests counts it (op.h)                          B
 *   n d g k  ranks; NVLink domains, a clique of MNNVL is one of NCCL's nodes;
 *            n / d; NICs that the group drives in one domain
 *   h H      a hop inside a domain, a hop across                                s
 *   B N      a pair's rate inside; rate of the k NICs as share_of() leaves it   B/s
 *
 *   algorithm   latency                            rate                               fill
 *   ring        base + turns ((n-d) h + (d-1) H)   min(r B, N) / (turns (n-1) / n)
 *   tree        base + 2 ((g-1) h + log2 d H)      min(B / 2, 0.96 N / L(d), cap / 2)   a pipeline's
 *   NVLS        25 us + heads                      e B, all_gather as the table says    a pipeline's
 *   NVLS tree   25 us + heads + 2 log2 d H'        min(e' B, 0.96 N / L(d))             a pipeline's
 *   PAT         8 us + log2 n H / 3.5 + 2.8 us n   3/4 of the ring's
 *   SHARP       25 us + heads + 18 us              min(0.72 e B, 0.96 N)               a pipeline's
 *
 *   allowed                                where                                          source
 *   ring                                   all operations but all_to_all and sendrecv     [1]
 *   tree                                   all_reduce                                     [1]
 *   NVLS; NVLS tree                        from Hopper on, four GPUs and more at a switch:
 *                                          all_reduce, all_gather, reduce_scatter in one
 *                                          domain; all_reduce in several                  [1]
 *   PAT                                    all_gather, reduce_scatter of one GPU a domain,
 *                                          from 2.23 on                                   [1]
 *   SHARP                                  all_reduce in several domains, where NVLS is allowed; only if it is
 *                                          asked for, because it needs a plugin and switches that reduce
 *   none                                   all_to_all, sendrecv: point to point (model.c)  [2]
 *
 * A network whose messages take longer than InfiniBand's is met by each hop across with the data and with the credit
 * back; LL128 and Simple, which send a message on each channel where LL fills one, meet it three times as often.
 *
 * L(d) is what leaves a domain in NCCL's two binary trees, times the buffer: 1 for two domains, 1.5 for three, 2
 * from four on.  It explains three domains of 4 and 8 GPUs to 3 % [3], and why two nodes beat the wire.
 *
 * Not priced: CollNet without NVLS; symmetric kernels and copy engines, which need buffers that were registered as
 * windows, so that neither nccl-tests nor PyTorch's DDP has them unasked.  RCCL and the plugins of EFA, gIB and TCPX choose
 * otherwise: collective_cost.c names them beside a price that is NCCL's.
 *
 * [1] NVIDIA/nccl v2.19.3 to v2.30.7, src/graph/tuning.cc   [2] the same, src/enqueue.cc   [3] NCCL issue #1801 */
#ifndef RG_ALGORITHM_H
#define RG_ALGORITHM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/op.h"

enum algorithm {
    ALGORITHM_CHAIN, /* no NCCL: one hop after the other */
    ALGORITHM_RING,
    ALGORITHM_TREE,
    ALGORITHM_NVLS,
    ALGORITHM_NVLS_TREE,
    ALGORITHM_PAT,
    ALGORITHM_SHARP, /* NVLS and CollNet: needs switches that reduce and a plugin, so it is a line only if asked for */
};
/* Schedules differ in the edges between domains: see model.c.  SCHEDULE_OWN: ring, or the only one of an operation. */
enum schedule_kind { SCHEDULE_OWN, SCHEDULE_TREE, SCHEDULE_PAT, SCHEDULES };
enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOLS };

struct algorithm_line {
    double latency, rate; /* s, B/s of the buffer */
    double fill, most;    /* B; 0: none */
    enum algorithm algorithm;
    enum protocol protocol;
};
enum { ALGORITHM_LINES = 9 };

/* Group that the lines are written for. */
struct algorithm_group {
    const char *model;          /* GPU model: "NVIDIA GB200", "Tesla V100-SXM2-32GB" */
    int nccl;                   /* NCCL's version as NCCL counts it, 22809; 0: ALGORITHM_NCCL */
    int ranks, domains, widest; /* widest: GPUs of one domain of the machine */
    bool nvlink;                /* ALGORITHM_NVLINK inside, where no part is slow */
    double inside;              /* B; INFINITY: no two ranks share a domain */
    double ring, tree, pat;     /* N as each of them crosses, B/s; INFINITY: one domain */
    double hop_in, hop_out;     /* latency of a pair, s; 0: no such pair */
    double add[SCHEDULES];      /* latency that a slow part adds, s */
    enum algorithm only;        /* the one that is asked for; ALGORITHM_CHAIN: as NCCL chooses */
};
/* The version whose tables hold where none is known. */
#define ALGORITHM_NCCL 22809
/* B/s of a pair inside: what carries more is no PCIe (V100's NVLink has 40 GB/s, a pair over PCIe 5 26). */
#define ALGORITHM_NVLINK 30e9

/* Write the lines of an operation that goes along rings.  Returns their number, at least 1.  Only the first line
 * is set, with rate NAN, where a rate is NAN, or where NCCL does not allow the algorithm that is asked for. */
int algorithm_lines(struct algorithm_line line[ALGORITHM_LINES], const struct algorithm_group *g,
                    enum op op);
/* Buffers that leave a domain in the double tree. */
static inline double algorithm_load(int domains)
{
    return domains <= 2 ? 1 : domains == 3 ? 1.5 : 2;
}

static inline enum schedule_kind algorithm_schedule(enum algorithm a)
{
    return a == ALGORITHM_TREE || a == ALGORITHM_NVLS_TREE ? SCHEDULE_TREE
           : a == ALGORITHM_PAT                            ? SCHEDULE_PAT
                                                           : SCHEDULE_OWN;
}
/* NCCL's binary tree of domains: the parent of a place, 0 is above all [NCCL 2.30.7, src/graph/trees.cc]. */
static inline int algorithm_parent(int place, int domains)
{
    int low = place & -place, up = (place ^ low) | low << 1;

    return up < domains ? up : place ^ low;
}
/* Domain at a place of the first tree, or of the second: mirrored, or turned by one where domains are odd in number. */
static inline int algorithm_place(int place, int domains, bool second)
{
    return !second ? place : domains % 2 ? (place + 1) % domains : domains - 1 - place;
}

static inline double algorithm_line_time(const struct algorithm_line *x, double bytes)
{
    double fill = x->fill > 0 ? fmin(sqrt(x->fill * bytes), x->most) : 0;

    return x->rate > 0 || isnan(x->rate) ? x->latency + (bytes + fill) / x->rate : INFINITY;
}
/* The fastest line at a size. */
static inline const struct algorithm_line *algorithm_fastest(const struct algorithm_line *line,
                                                             int lines, double bytes, double *sec)
{
    const struct algorithm_line *best = line;

    *sec = algorithm_line_time(line, bytes);
    for (int i = 1; i < lines; i++) {
        double t = algorithm_line_time(&line[i], bytes);
        if (t < *sec) {
            *sec = t;
            best = &line[i];
        }
    }
    return best;
}

/* "tree, LL, mnnvl inside and fabric between 8 domains, 2 x 3 hops, NCCL 2.29": hops between domains, or inside the only
 * one; "as NCCL 2.28" where the version is assumed, and "NCCL 2.31 by the tables of 2.30" where it is newer than those. */
enum { ALGORITHM_WORDS = 176 };
char *algorithm_words(const struct algorithm_line *x, const struct algorithm_group *g, enum op op,
                      const char *where, char buf[ALGORITHM_WORDS]);

/* --- point to point --- */

/* Bytes of a message that a connection over NICs holds: NCCL_STEPS chunks of NCCL_P2P_NET_CHUNKSIZE [NCCL 2.30.7,
 * src/include/device.h, src/init.cc]. */
#define PROTOCOL_WINDOW (8 * 131072.0)
/* Bytes that the time of a message to a peer is of.  It passes two stages, into the window and out to the network: one after
 * the other while the window holds it all, beside one another when it is much longer. */
static inline double algorithm_stream(double bytes)
{
    return bytes + bytes * PROTOCOL_WINDOW / (bytes + PROTOCOL_WINDOW);
}

/* --- groups inside one domain with more ranks than a curve has --- */

#define PROTOCOL_HOP_LL 1.0e-6 /* s */
/* Seconds that each further peer adds to an all_to_all: the exchanges are posted together [ai-dynamo/aiconfigurator at
 * 095f58a, nccl_perf: 0.1 to 0.3 us between 4 and 8 ranks]. */
#define PROTOCOL_PEER 0.3e-6
/* Seconds of so many further hops of a ring inside the domain, and of moving: the fastest protocol's.
 * full: moving at the ring's whole rate, s; least: moving as a curve shows it at this size, s. */
static inline double algorithm_further(double hops, double full, double least)
{
    /* Up to 8 KiB all_gather, reduce_scatter and all_reduce of 8 ranks take 0.8 us a hop more than of 4 on H100,
     * 0.95 on A100, 1.4 on B200
     * [ai-dynamo/aiconfigurator at 095f58a, nccl_perf]; LL has half of the rate, at most 141 GB/s [1], of 450 to 900 and their usual 0.8 */
    static const struct {
        double hop, share; /* s; of the ring's rate */
    } protocol[PROTOCOLS] = {{PROTOCOL_HOP_LL, 0.25}, {1.9e-6, 0.92}, {3.4e-6, 1}};
    double best = INFINITY;

    for (int p = 0; p < PROTOCOLS; p++)
        best = fmin(best, hops * protocol[p].hop + fmax(least, full / protocol[p].share));
    return isnan(full) ? NAN : best;
}

#endif
