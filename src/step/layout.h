/* layout.h - the mesh of ranks: axes, order, and the ranks of each group.
 *
 * Two grids share the ranks.  Dense: tp, cp, dp_shard, dp_replicate, pp.  Experts: etp, ep, edp,
 * dp_replicate, pp, where edp covers the remaining data-parallel ranks: tp cp dp_shard / (ep etp)
 * (with ddp dp_replicate is part of it).  Fastest first:
 *   megatron    tp cp dp pp          etp ep edp pp        core/parallel_state.py, tp-cp-ep-dp-pp
 *   torchtitan  tp cp shard repl pp  ep etp edp repl pp   distributed/parallel_dims.py, mesh
 *               [pp, dp_replicate, efsdp, ep, etp]
 *   tp-pp-dp    tp cp pp dp          etp ep pp edp        --use-tp-pp-dp-mapping; tp cp = etp ep
 * Ranks that differ along an axis, or along adjacent axes, are equally spaced, so a group is a
 * span. */
#ifndef RG_LAYOUT_H
#define RG_LAYOUT_H

#include "base/err.h"
#include "step/model.h"
#include "step/recipe.h"

enum axis {
    AXIS_TP,
    AXIS_CP,
    AXIS_EP,
    AXIS_ETP,
    AXIS_EDP, /* follows from the other axes; never given */
    AXIS_DP_SHARD,
    AXIS_DP_REPLICATE,
    AXIS_PP,
    AXIS_COUNT
};
extern const char *const axis_name[AXIS_COUNT];

/* A set of axes.  A group varies along all of them; its other coordinates are fixed. */
#define AXIS_BIT(axis) (1u << (axis))
enum { LAYOUT_RANKS_MAX = 1 << 20, AXES_TEXT = 64 };

enum mesh_order { ORDER_MEGATRON, ORDER_TORCHTITAN, ORDER_TP_PP_DP, ORDER_COUNT };
extern const char *const order_name[ORDER_COUNT];

struct layout {
    int size[AXIS_COUNT];
    int stride[AXIS_COUNT]; /* set by layout_order() */
    enum mesh_order order;
    int ranks; /* product of the dense sizes */
};

/* `size` ranks, `stride` apart. */
struct span {
    int size, stride;
};
static inline bool span_equal(struct span a, struct span b)
{
    return a.size == b.size && a.stride == b.stride;
}

/* Parse "dp_shard=8,tp=4,pp=2".  Axes not named are 1.  "dp" is dp_replicate for ddp, else
 * dp_shard.  One axis may be "auto" and fills `ranks` (0: number of ranks unknown).  EXIT_USAGE
 * with text and position. */
int layout_parse(struct layout *l, const char *text, enum strategy strategy, enum mesh_order order,
                 int ranks, struct err *err);
/* Same from l->order and the given l->size of all axes except edp, whose product is at most
 * LAYOUT_RANKS_MAX.  Sets edp, strides and ranks. */
int layout_make(struct layout *l, enum strategy strategy, struct err *err);
char *layout_text(char *buf, int size,
                  const struct layout *l); /* "dp_shard=8,tp=4", axes above 1 */

/* Returns the groups along these axes, which must be adjacent in one grid (asserted).  No axis, or
 * axes of size 1: {1, 1}. */
struct span layout_span(const struct layout *l, unsigned axes);
/* Groups are numbered in ascending order of their first rank. */
static inline int span_groups(const struct span *s, int ranks)
{
    return ranks / s->size;
}
static inline int span_rank(const struct span *s, int group, int i)
{
    return group / s->stride * s->stride * s->size + group % s->stride + i * s->stride;
}
/* Returns the group of a rank. */
static inline int span_group(const struct span *s, int rank)
{
    return rank / s->stride / s->size * s->stride + rank % s->stride;
}
char *axes_text(char buf[AXES_TEXT], unsigned axes); /* "dp_shard x cp" */

/* Return the axes whose ranks hold the same weights or shards of them (data), and those among them
 * that shard (shard).  experts: for routed experts, edp, with dp_replicate if that is an axis of
 * its own; else for dense weights. */
unsigned layout_data_axes(const struct layout *l, bool experts);
unsigned layout_shard_axes(const struct layout *l, const struct recipe *r, bool experts);

/* Check that the model can run on this mesh: _mesh everything independent of the micro batch,
 * _batch the rest. */
int layout_check_mesh(const struct layout *l, const struct model *m, struct recipe *r,
                      struct err *err);
int layout_check_batch(const struct layout *l, struct recipe *r, struct err *err);
/* Run both checks.  Errors name the axis and the reason.  If r->global_batch is 0, sets it to one
 * microbatch per data-parallel rank, 4 pp of them with a pipeline. */
static inline int layout_check(const struct layout *l, const struct model *m, struct recipe *r,
                               struct err *err)
{
    return layout_check_mesh(l, m, r, err) < 0 || layout_check_batch(l, r, err) < 0 ? -1 : 0;
}
/* Returns m, the microbatches per step of one pipeline; after layout_check(). */
static inline int layout_microbatches(const struct layout *l, const struct recipe *r)
{
    return r->global_batch / (l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch);
}

#endif
