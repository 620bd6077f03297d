/* sample.h - measure one size of one op on one open group: the stop rule. */
#ifndef RG_SAMPLE_H
#define RG_SAMPLE_H

#include "probe/measure.h"
#include "probe/session.h"

/* Fill p->sec, stop, slowest, skew, late, checked, wrong, note.  Collective over the group.  A
 * transport that fails (or wrong data) leaves its words in the note of the member that saw it; the
 * others' is "". It makes a point with stop = STOP_FAILED; the return value is -1 only when the
 * members could not even agree on that. */
int sample_point(struct session *s, struct point *p, const struct measure_opts *o, bool check,
                 struct err *err);

#endif
