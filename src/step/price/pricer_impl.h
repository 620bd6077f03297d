/* pricer_impl.h - positions of ranks, and the groups of a span folded into kinds; one pricer uses
 * them for a series of orders. */
#ifndef RG_PRICER_IMPL_H
#define RG_PRICER_IMPL_H

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "step/pricer.h"

/* Keys that two ranks may share: the levels, and the NIC. */
enum { KEY_NIC = LEVEL_COUNT, KEYS };

struct rank_place {
    int key[KEYS]; /* index into places.slot; base[KEYS]: not visible */
    uint64_t mark; /* made of the exceptions that touch the endpoint; 0: none */
};

/* Label of a key in the group with this stamp. */
struct label_slot {
    unsigned stamp;
    int label;
};

/* Positions of the ranks as folding reads them; made once for a matrix and updated for each
 * order. */
struct places {
    const struct matrix *matrix;
    int *order, ranks;     /* rank -> endpoint */
    int *base_order;       /* order that most later orders resemble; NULL: none */
    struct rank_place *at; /* per endpoint that some order used */
    bool *known;           /* per endpoint: at[] is set */
    uint64_t *mark;
    int base[KEYS + 1];      /* keys of kind k start at base[k] */
    int keys;                /* number of kinds of keys in use */
    struct label_slot *slot; /* scratch: labels of the current group */
    unsigned stamp;          /* stamp of the current group */
    int *ids;                /* scratch: endpoints of the current group */
    int *near;               /* scratch: exceptions that touch one of them */
    bool *touched;
};
/* Place the first `ranks` ranks.  The matrix must outlive p. */
void places_open(struct places *p, const struct matrix *m, const int *order, int ranks);
void places_close(struct places *p);
void places_move(struct places *p, int rank, int endpoint);
/* Make the current order the base. */
static inline void places_base(struct places *p)
{
    if (!p->base_order)
        p->base_order = mem_calloc((size_t)p->ranks, sizeof(*p->base_order));
    memcpy(p->base_order, p->order, (size_t)p->ranks * sizeof(*p->order));
}
/* For many orders: drop keys that add nothing to the others.  Signatures change. */
void places_keys(struct places *p);

/* Groups of a span of at least two ranks, with the kinds of this order and of earlier ones. */
struct folded {
    struct groups groups;
    int *of;    /* kind of each group; -1: unknown in the current order */
    int *group; /* group of each rank; set once a rank moved */
    /* Kind of each group in the base, -1: unknown; number of its ranks that lie elsewhere.  NULL:
     * no base. */
    int *base, *away;
    bool moved;             /* ranks moved since the last folded_find() */
    int turn;               /* number of calls of folded_find() after moves */
    struct map seen, kinds; /* signature, ways -> kind */
};
void folded_open(struct folded *f, struct span span, const struct places *p);
/* Tell f that n ranks are about to move to the places in `order`. */
void folded_move(struct folded *f, const struct places *p, const int *order, const int *rank,
                 int n);
/* Copy the kinds to the base.  Call after places_base(). */
static inline void folded_base(struct folded *f)
{
    size_t size = (size_t)f->groups.total * sizeof(int);

    if (!f->base)
        f->base = mem_calloc(2 * (size_t)f->groups.total, sizeof(int));
    f->away = f->base + f->groups.total;
    memcpy(f->base, f->of, size);
    memset(f->away, 0, size);
}
/* Find the kind of every group for the positions in p. */
void folded_find(struct folded *f, struct places *p);
/* Forget all kinds. */
void folded_forget(struct folded *f);
void folded_free(struct folded *f);

#endif
