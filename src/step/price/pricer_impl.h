/* pricer_impl.h - where ranks lie, and the groups of a span folded to those that differ; one
 * pricer's, for one order after another. */
#ifndef RG_PRICER_IMPL_H
#define RG_PRICER_IMPL_H

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "step/pricer.h"

/* What two ranks may share: the levels, and the NIC. */
enum { KEY_NIC = LEVEL_COUNT, KEYS };

struct rank_place {
    int key[KEYS]; /* index into places.slot; base[KEYS]: not visible */
    uint64_t mark; /* made of the exceptions that touch the endpoint, 0: none */
};

/* The label of a key in the group that was stamped so. */
struct label_slot {
    unsigned stamp;
    int label;
};

/* Where each rank lies, as folding reads it; made once for a matrix, for one order after another. */
struct places {
    const struct matrix *matrix;
    int *order, ranks;     /* rank -> endpoint */
    int *base_order;       /* that most orders to come differ little from; NULL: none */
    struct rank_place *at; /* of endpoints that some order held */
    bool *known;           /* those of them */
    uint64_t *mark;
    int base[KEYS + 1];      /* keys of kind k are from base[k] on */
    int keys;                /* so many kinds are looked at */
    struct label_slot *slot; /* scratch: labels of the group at hand */
    unsigned stamp;          /* the group at hand */
    int *ids;                /* scratch: its endpoints, */
    int *near;               /* and the exceptions that touch one of them */
    bool *touched;
};
/* The first `ranks` ranks; the matrix must outlive it. */
void places_open(struct places *p, const struct matrix *m, const int *order, int ranks);
void places_close(struct places *p);
void places_move(struct places *p, int rank, int endpoint);
/* The order of now becomes the base. */
static inline void places_base(struct places *p)
{
    if (!p->base_order)
        p->base_order = mem_calloc((size_t)p->ranks, sizeof(*p->base_order));
    memcpy(p->base_order, p->order, (size_t)p->ranks * sizeof(*p->order));
}
/* For many orders: keys that say nothing beside the others are left out.  Signatures change. */
void places_keys(struct places *p);

/* The groups of a span of at least two ranks, in this order and in those before it. */
struct folded {
    struct groups groups;
    int *of;          /* kind of each group; -1: it is not known how it lies now */
    int *group;       /* of each rank, once one moved */
    int *base, *away; /* kind of each group as the base has it, -1: not known; how many of its ranks
                         lie elsewhere.  NULL: no base */
    bool moved;       /* of some group */
    int turn;         /* how often that was found out */
    struct map seen, kinds; /* signature, ways -> kind */
};
void folded_open(struct folded *f, struct span span, const struct places *p);
/* n ranks are about to lie as `order` has them. */
void folded_move(struct folded *f, const struct places *p, const int *order, const int *rank,
                 int n);
/* After places_base(). */
static inline void folded_base(struct folded *f)
{
    size_t size = (size_t)f->groups.total * sizeof(int);

    if (!f->base)
        f->base = mem_calloc(2 * (size_t)f->groups.total, sizeof(int));
    f->away = f->base + f->groups.total;
    memcpy(f->base, f->of, size);
    memset(f->away, 0, size);
}
/* Every group has a kind again, as its ranks lie in p. */
void folded_find(struct folded *f, struct places *p);
/* No kind is known. */
void folded_forget(struct folded *f);
void folded_free(struct folded *f);

#endif
