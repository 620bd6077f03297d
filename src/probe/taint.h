/* taint.h - did this rank's GPU suffer while something was measured?
 *
 * NVML is looked at before and after: clocks lowered by heat or the power brake, an Xid, new NVLink
 * errors, PCIe replays, uncorrected memory errors.  Power capping by software is how a GPU under
 * full load works and no taint. */
#ifndef RG_TAINT_H
#define RG_TAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "probe/point.h"
#include "probe/world.h"
#include "topo/topo.h"

enum { TAINT_TEXT = 96 };
struct taint;

/* Watch the GPU with this PCI address from now on; NULL where NVML or the GPU is not to be seen:
 * then nothing is tainted. */
struct taint *taint_open(const char *busid);
void taint_close(struct taint *t);
void taint_begin(struct taint *t);
/* What happened since taint_begin(), or since taint_open(); false and "" when nothing did. */
bool taint_end(struct taint *t, char text[TAINT_TEXT]);
bool taint_since_open(struct taint *t, char text[TAINT_TEXT]);

/* The GPU of this rank, as endpoint w->rank of the topology names it; NULL in a world of one
 * process. */
struct taint *taint_watch(const struct world *w, const struct topo *t);
/* Collective: rank 0 warns of what happened to any GPU since it is watched, between points, too. */
int taint_report(struct taint *t, struct world *w, const struct topo *topo, struct err *err);

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
