/* space.h - layouts and recipes that a search covers: what varies, the constraints, and a walk over
 * all of it.
 *
 * Axes take every divisor of the ranks, in the given mesh order; dp_shard x dp_replicate every
 * split that the strategy allows; ep every divisor of the experts, etp 1 or tp.  Unless an option
 * or constraint sets them: strategy zero1, fsdp, hsdp; recompute any; schedule 1f1b and
 * interleaved, with numbers of stages per rank that divide the layers, and powers of two; micro
 * batch powers of two.  Batch, sequence, precision and software are the same for all, so that only
 * equal work is compared. */
#ifndef RG_SPACE_H
#define RG_SPACE_H

#include "step/layout.h"

/* Integers that vary: the axes (enum axis; edp follows) and these. */
enum { NUMBER_DP = AXIS_COUNT, NUMBER_MICRO, NUMBER_STAGES, NUMBERS };
/* Words of recipe_argument[] that may vary. */
enum {
    CHOICE_STRATEGY,
    CHOICE_RECOMPUTE,
    CHOICE_SCHEDULE,
    CHOICE_CONTEXT,
    CHOICE_SEQUENCE,
    CHOICE_PREFETCH,
    CHOICE_RESHARD,
    CHOICE_DISPATCH,
    CHOICE_OVERLAP,
    CHOICE_GRAPHS,
    CHOICE_FUSION,
    CHOICES
};
struct space_choice {
    const char *key; /* key in recipe_argument */
    size_t at;       /* offset in struct recipe */
    bool is_switch;
    unsigned usual; /* words by default; 0: as in the base */
};
extern const struct space_choice space_choice[CHOICES];

enum { RANGE_LIST = 32 };

struct space_range {
    bool given; /* set by a constraint */
    int min, max;
    int only[RANGE_LIST], onlys; /* onlys 0: any */
    int but[RANGE_LIST], buts;
};

struct space {
    int ranks;
    enum mesh_order order;
    struct recipe base;
    struct space_range number[NUMBERS];
    unsigned choice[CHOICES]; /* bit i: word i */
    bool chosen[CHOICES];     /* set by a constraint */
};

/* Open the settings of a recipe that a search chooses unless given: strategy, recompute, schedule,
 * stages, micro batch.  Options set them after this. */
static inline void space_open(struct recipe *r)
{
    r->strategy = r->recompute = r->schedule = -1;
    r->stages = r->micro_batch = 0;
}

/* Start a space.  base: given settings are fixed unless a constraint names them; a global batch of
 * 0 becomes one sequence per rank. */
void space_init(struct space *s, int ranks, enum mesh_order order, const struct recipe *base);
/* Apply "tp<=8,pp=1,strategy=fsdp|hsdp": KEY OP VALUE with = != < <= > >=, alternatives with |; dp
 * is dp_shard x dp_replicate.  Several constraints are combined.  EXIT_USAGE with text and
 * position. */
int space_constrain(struct space *s, const char *text, struct err *err);

/* Reasons for refusing meshes: the axis named by the error of layout_check(). */
enum refusal {
    REFUSED_TP,
    REFUSED_CP,
    REFUSED_PP,
    REFUSED_EXPERTS,
    REFUSED_BATCH,
    REFUSED_OTHER,
    REFUSALS
};
extern const char *const refusal_name[REFUSALS]; /* "tp does not divide heads, ..." */

struct space_count {
    long meshes; /* layouts examined, times strategies */
    long refused[REFUSALS];
    long candidates;         /* (layout, recipe) with a mesh that divides */
    long refused_candidates; /* part of candidates: stages or micro batch do not divide */
    long larger; /* part of candidates: skipped because the visitor refused a smaller micro batch */
};

/* Called for each layout and recipe that passes layout_check(), once, in ascending `serial`, which
 * does not depend on the division of the walk.  Return false to skip candidates that differ only by
 * a larger micro batch. */
typedef bool space_visit(void *context, const struct layout *l, const struct recipe *r,
                         long serial);
/* Visit the meshes whose number is `part` modulo `parts`; parts are independent.  *count is for
 * this part. */
void space_each(const struct space *s, const struct model *m, int part, int parts,
                space_visit *visit, void *context, struct space_count *count);

#endif
