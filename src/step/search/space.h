/* space.h - the layouts and recipes that a search looks at: what may vary, which constraints
 * hold, and a walk over all of it.
 *
 * Axes take every divisor of the ranks, in the mesh order given; dp_shard x dp_replicate every
 * split that the strategy allows; ep every divisor of the experts, etp 1 or tp.  Unless an option
 * or a constraint says otherwise: strategy zero1, fsdp, hsdp; recompute any; schedule 1f1b and
 * interleaved, with as many stages per rank as divide the layers, and powers of two; micro batch
 * powers of two.  Batch, sequence, precision and software are the same for all: only steps that do
 * the same are compared. */
#ifndef RG_SPACE_H
#define RG_SPACE_H

#include "step/layout.h"

/* Whole numbers that vary: the axes (enum axis; edp follows), and */
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
    const char *key; /* of recipe_argument */
    size_t at;       /* offset in struct recipe */
    bool is_switch;
    unsigned usual; /* words when nothing is given; 0: as the base has it */
};
extern const struct space_choice space_choice[CHOICES];

enum { RANGE_LIST = 32 };

struct space_range {
    bool given; /* by a constraint */
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
    bool chosen[CHOICES];     /* by a constraint */
};

/* Make the settings of a recipe open that a search chooses when nobody gives them: strategy,
 * recompute, schedule, stages, micro batch.  Options set them after this. */
static inline void space_open(struct recipe *r)
{
    r->strategy = r->recompute = r->schedule = -1;
    r->stages = r->micro_batch = 0;
}

/* base: what is given is fixed, unless a constraint names it; the global batch, if 0, becomes one
 * sequence a rank. */
void space_init(struct space *s, int ranks, enum mesh_order order, const struct recipe *base);
/* "tp<=8,pp=1,strategy=fsdp|hsdp": KEY OP VALUE with = != < <= > >=, alternatives with |; dp is
 * dp_shard x dp_replicate.  Several add up.  EXIT_USAGE with text and position. */
int space_constrain(struct space *s, const char *text, struct err *err);

/* Why meshes are refused; the axis that the refusal of layout_check() names. */
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
    long meshes; /* layouts that were looked at, times strategies */
    long refused[REFUSALS];
    long candidates;         /* (layout, recipe) with a mesh that divides */
    long refused_candidates; /* of them: stages or micro batch do not divide */
    long larger; /* of them: not visited, as the visitor refused a smaller micro batch */
};

/* Every layout and recipe that layout_check() lets pass, each once, in ascending `serial`, which is
 * the same however the walk is shared out.  False: what differs only by a larger micro batch need
 * not be visited. */
typedef bool space_visit(void *context, const struct layout *l, const struct recipe *r,
                         long serial);
/* The meshes whose number is `part` modulo `parts`: parts of a walk are independent.  *count is of
 * this part. */
void space_each(const struct space *s, const struct model *m, int part, int parts,
                space_visit *visit, void *context, struct space_count *count);

#endif
