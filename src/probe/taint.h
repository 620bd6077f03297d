/* taint.h - did this rank's GPU or a network port suffer while something was measured? */
#ifndef RG_TAINT_H
#define RG_TAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "probe/point.h"
#include "probe/world.h"
#include "topo/topo.h"

enum { TAINT_TEXT = 96 };

/* What a rank watches while it measures.
 *
 * Its GPU: NVML is looked at before and after: clocks lowered by heat or the power brake, an Xid,
 * new NVLink errors, PCIe replays, uncorrected memory errors.  Power capping by software is how a
 * GPU under full load works and no taint.  Where NVML or the GPU is not to be seen nothing is
 * tainted.
 *
 * Network ports: the error counters of port_counters.h before and after each size, of every host
 * once: a host's ports are dealt out to its ranks.  Looked at are the NICs that the topology has
 * for compute (all that are up where it knows of none), those that the transport says it uses, and
 * only where a campaign has several hosts.  What a host's port counts taints each group that has this host and another one: which
 * port a message took is not known.  RAILGAUGE_COUNTERS names the folder that holds sys/; "off":
 * nobody looks. */
struct taint; /* NULL in a world of one process: nothing is watched */

/* What one rank tells of one size; sent as bytes between ranks. */
struct taint_said {
    char gpu[TAINT_TEXT]; /* "": nothing happened */
    char port[40];        /* "mlx5_2 port 1"; "": nothing happened */
    char words[TAINT_TEXT];
    int more; /* other ports of this rank with troubles of their own */
};

/* On rank 0, before taint_open(): this NIC of the topology carries messages, whatever else it is for. */
void taint_uses(const char *host, const char *nic);
/* Collective.  The endpoint of this rank names its GPU; the ports are rank 0's to deal out. */
int taint_open(struct taint **out, struct world *w, const struct topo *t, struct err *err);
void taint_close(struct taint *t);
/* Before a size; measures: this rank takes part in it. */
void taint_begin(struct taint *t, bool measures);
/* Collective: first all ranks wait for the one that measures longest. */
int taint_end(struct taint *t, struct taint_said *said, struct err *err);
/* Rank 0, with what each rank said (stride bytes apart), which must stay while points are marked:
 * the point of these members is tainted when one of them suffered. */
void taint_hear(struct taint *t, const struct taint_said *first, size_t stride);
void taint_mark(const struct taint *t, struct point *p, const int *members, int n);
/* Collective: rank 0 warns of what happened to any GPU and any port during the whole campaign,
 * between points, too, and says where there was congestion. */
int taint_report(struct taint *t, struct err *err);

/* --- the note of a point, "tainted: SUBJECT: WORDS" --- */
/* "tainted: endpoint 5 (node01:2): hardware thermal slowdown" */
void taint_note(struct point *p, const struct topo *t, int endpoint, const char *text);
/* "tainted: mlx5_2 port 1 on node03: 12 symbol errors" */
void taint_note_port(struct point *p, const struct topo *t, int host, const char *port,
                     const char *text);
bool taint_is(const struct point *p); /* measured, and tainted */
/* "endpoint 5 (node01:2)", "mlx5_2 port 1 on node03": where it begins in the note and its length;
 * 0: not such a note. */
int taint_subject(const struct point *p, const char **subject);
const char *taint_words(const struct point *p); /* "hardware thermal slowdown"; "" */

#endif
