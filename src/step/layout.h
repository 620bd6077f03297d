/* layout.h - the mesh of ranks: axes, order, and which ranks form which group.
 *
 * Rank = sum of coordinate * stride, the first axis of the order being the fastest.  Megatron-LM
 * (core/parallel_state.py, order tp-cp-ep-dp-pp) and torchtitan (distributed/parallel_dims.py, mesh
 * [pp, dp_replicate, dp_shard, cp, tp], last the fastest) give dense layers the same groups; they
 * differ in the experts' grid.  Megatron's --use-tp-pp-dp-mapping puts pp inside dp.  ep and etp
 * are named here so that files and orders keep their meaning, and are refused unless 1. */
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
    AXIS_DP_SHARD,
    AXIS_DP_REPLICATE,
    AXIS_PP,
    AXIS_COUNT
};
extern const char *const axis_name[AXIS_COUNT];

/* A set of axes; a group varies along all of them and keeps the other coordinates. */
#define AXIS_BIT(axis) (1u << (axis))
enum { LAYOUT_RANKS_MAX = 1 << 20, AXES_TEXT = 64 };

enum mesh_order { ORDER_MEGATRON, ORDER_TORCHTITAN, ORDER_TP_PP_DP, ORDER_COUNT };
extern const char *const order_name[ORDER_COUNT];

struct layout {
    int size[AXIS_COUNT];
    int stride[AXIS_COUNT]; /* set by layout_order() */
    enum mesh_order order;
    int ranks; /* product of the sizes */
};

/* "dp_shard=8,tp=4,pp=2": axes not named are 1; "dp" is dp_replicate for ddp and dp_shard for the
 * others; one axis may be "auto": what fills `ranks` (0: no rank count is known).  EXIT_USAGE with
 * text and position. */
int layout_parse(struct layout *l, const char *text, enum strategy strategy, enum mesh_order order,
                 int ranks, struct err *err);
char *layout_text(char *buf, int size,
                  const struct layout *l); /* "dp_shard=8,tp=4", axes above 1 */

int layout_group_size(const struct layout *l, unsigned axes);
int layout_groups(const struct layout *l, unsigned axes);
/* The ranks of group `index` in mesh order, ascending; ids has room for layout_group_size(). */
void layout_group(const struct layout *l, unsigned axes, int index, int *ids);
char *axes_text(char buf[AXES_TEXT], unsigned axes); /* "dp_shard x cp" */

/* Axes whose ranks hold the same weights or shards of them, and of those the ones that shard. */
unsigned layout_data_axes(const struct layout *l);
unsigned layout_shard_axes(const struct layout *l, const struct recipe *r);

/* Does this model run on this mesh?  Each refusal names the axis and the reason.  Chooses
 * r->global_batch when it is 0: one microbatch per data-parallel rank, 4 pp of them with a
 * pipeline. */
int layout_check(const struct layout *l, const struct model *m, struct recipe *r, struct err *err);
/* m: microbatches that one pipeline runs per step; after layout_check(). */
int layout_microbatches(const struct layout *l, const struct recipe *r);

#endif
