/* taint.h - detect GPUs and network ports that were impaired while a point was measured. */
#ifndef RG_TAINT_H
#define RG_TAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "measure/point.h"
#include "topo/topo.h"
#include "watch/world.h"

enum { TAINT_TEXT = 96 };

/* Devices that a rank watches while it measures.
 *
 * GPU: NVML is read before and after each size.  Causes of taint: clocks lowered by heat or the
 * power brake, an Xid, new NVLink errors, PCIe replays, uncorrected memory errors.  Power capping
 * by software is no taint, because a GPU under full load normally works that way.  If NVML or the
 * GPU is not visible, no point is tainted.
 *
 * Network ports: the error counters of port_counters.h are read before and after each size, once
 * per host: the ports of a host are distributed over its ranks.  Watched are the compute NICs of
 * the topology (all NICs that are up if none is declared) and NICs that the transport reports in
 * use, and only if a campaign has several hosts.  An error on a host taints each group of this host
 * and other hosts, because the port of a message is not known.  RAILGAUGE_COUNTERS names the
 * directory that holds sys/; "off": counters are not read. */
struct taint; /* NULL in a world of one process: nothing is watched */

/* Report of a rank on a size; sent as bytes between ranks. */
struct taint_said {
    char gpu[TAINT_TEXT]; /* "": no event */
    char port[40];        /* "mlx5_2 port 1"; "": no event */
    char words[TAINT_TEXT];
    int more; /* number of other ports of this rank with errors */
};

/* On rank 0, before taint_open(): this NIC of the topology carries messages, whatever its declared
 * purpose. */
void taint_uses(const char *host, const char *nic);
/* Collective.  The endpoint of this rank names its GPU; rank 0 distributes the ports. */
int taint_open(struct taint **out, struct world *w, const struct topo *t, struct err *err);
void taint_close(struct taint *t);
/* Call before a size.  measures: this rank takes part in it. */
void taint_begin(struct taint *t, bool measures);
/* Collective.  All ranks first wait for the one that measures longest. */
int taint_end(struct taint *t, struct taint_said *said, struct err *err);
/* On rank 0: with the reports of all ranks (stride bytes apart; to be kept until points are
 * marked), taint the point of these members if a member was affected. */
void taint_hear(struct taint *t, const struct taint_said *first, size_t stride);
void taint_mark(const struct taint *t, struct point *p, const int *members, int n);
/* Collective: rank 0 warns of every event at a GPU or port during the whole campaign, also between
 * points, and reports congestion. */
int taint_report(struct taint *t, struct err *err);

/* --- the note of a point, "tainted: SUBJECT: WORDS" --- */
/* "tainted: endpoint 5 (node01:2): hardware thermal slowdown" */
void taint_note(struct point *p, const struct topo *t, int endpoint, const char *text);
/* "tainted: mlx5_2 port 1 on node03: 12 symbol errors" */
void taint_note_port(struct point *p, const struct topo *t, int host, const char *port,
                     const char *text);
bool taint_is(const struct point *p); /* measured, and tainted */
/* Offset in the note and length of "endpoint 5 (node01:2)" or "mlx5_2 port 1 on node03"; 0: no such
 * note. */
int taint_subject(const struct point *p, const char **subject);
const char *taint_words(const struct point *p); /* "hardware thermal slowdown"; "" */

#endif
