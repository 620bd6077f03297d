/* ep.h - dispatch and combine of expert-parallel kernels (DeepEP, HybridEP): curves of their own.
 *
 * These kernels move tokens between the ranks of an expert-parallel group over NVLink and RDMA at
 * once and reach other rates than NCCL's all_to_all: a GB200 domain of 8 does 550 GB/s a GPU where
 * all_to_all of as many does 490, of 36 still 480, while a kernel without MNNVL support stays at a
 * third of that.  What is published are rates at one training size, so that an ep_curve is a
 * latency and a rate, not a ladder: t = alpha + max(inside / Bps inside, across / Bps across)
 * inside: bytes that a rank receives from its own NVLink domain, itself included; across: from
 * others.  Between curves of other numbers of ranks rates are interpolated over log ranks, beyond
 * them kept. */
#ifndef RG_EP_H
#define RG_EP_H

#include "base/json.h"
#include "cost/model.h"

/* Seconds of dispatch, or of combine, for a group with these ways (of OP_ALL_TO_ALL).  NAN where no
 * kernel is known that serves it, INFINITY when a part is dead. */
double ep_time(const struct matrix *m, const struct ways *w, double inside, double across,
               bool dispatch);
/* What of `bytes`, spread evenly over the group, stays in the domain of the member that has the
 * fewest others there. */
double ep_inside(const struct shape *s, double bytes);

/* matrix.json's list "ep_kernels"; where starts messages: "m.json: ep_kernels". */
json_t *ep_pack(const struct matrix *m);
int ep_unpack(struct matrix *m, json_t *list, const char *where, struct err *err);

#endif
