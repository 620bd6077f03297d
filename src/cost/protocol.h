/* protocol.h - what the hops of a ring of GPUs inside one NVLink domain cost.
 *
 * A ring pipelines: after the first message each further hop costs far less than a whole message's
 * latency, how much less depends on the protocol, and the protocols that hop faster carry fewer
 * payload bytes.  NCCL takes the one that it reckons fastest:
 *
 *   t = min over protocols of   hops * min(hop, hop of it) + max(least, full / share)
 *
 *   symbol   meaning                                    unit   LL     LL128   Simple   source
 *   hop      latency of a message: no hop costs more    s      as asked
 *   of it    a further hop with that protocol           us     1.0    1.9     3.4      [1], LL [2]
 *   share    of the ring's rate that it carries                0.25   0.92    1        [1], LL [3]
 *   hops     further hops of the ring                          as asked
 *   full     moving at the ring's whole rate            s      as asked
 *   least    moving as a curve shows it at this size    s      as asked; it has the protocol of
 *                                                              its own ranks in it
 *
 * [1] NCCL at 5067397, src/graph/tuning.cc: hwLatencies of NVLink rings 0.6, 1.9, 3.4 us; LL128 0.92
 * [2] all_gather, reduce_scatter and all_reduce of 8 against 4 ranks up to 8 KiB grow 0.8 us a hop on
 *     H100, 0.95 on A100, 1.4 on B200 [aiconfigurator at 095f58a, nccl_perf]
 * [3] half, and at most 141 GB/s, of 450 to 900 GB/s and their usual 0.8 [tuning.cc] */
#ifndef RG_PROTOCOL_H
#define RG_PROTOCOL_H

#include <math.h>
#include <stddef.h>

#define PROTOCOL_HOP_LL 1.0e-6 /* s */

/* Rings that leave the domain are taken to run it at every size: 256
 * H100 on 32 hosts gather 2 GB at 200 GB/s where NICs and NVLink allow 330 [NCCL issue #1218],
 * 3 ms more than even these hops explain, and the tuner's own choice, LL128, less. */
#define PROTOCOL_HOP_SIMPLE 3.4e-6

/* What each further peer adds to an all_to_all, s: the exchanges are posted together [same tables:
 * 0.1 to 0.3 us between 4 and 8 ranks]. */
#define PROTOCOL_PEER 0.3e-6

/* Seconds of a ring that stays inside the domain. */
static inline double protocol_ring(double hops, double hop, double full, double least)
{
    static const struct {
        double hop, share; /* s; of the ring's rate */
    } protocol[] = {{PROTOCOL_HOP_LL, 0.25}, {1.9e-6 /* LL128 */, 0.92}, {PROTOCOL_HOP_SIMPLE, 1}};
    double best = INFINITY;

    for (size_t i = 0; i < sizeof(protocol) / sizeof(*protocol); i++)
        best =
            fmin(best, hops * fmin(hop, protocol[i].hop) + fmax(least, full / protocol[i].share));
    return isnan(full) ? NAN : best;
}

#endif
