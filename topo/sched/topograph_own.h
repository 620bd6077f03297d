/* topograph_own.h - what the readers of models and of graphs share (topograph.c,
 * topograph_model.c). */
#ifndef RG_TOPOGRAPH_OWN_H
#define RG_TOPOGRAPH_OWN_H

#include <stdbool.h>

#include "base/yaml.h"
#include "topo/sched/topograph.h"

/* Switches over a node, at most. */
enum { TOPOGRAPH_DEPTH = 64, TOPOGRAPH_PLACES = LEVEL_COUNT + TOPOGRAPH_DEPTH - 2 };

/* A switch on the way from a node to the root. */
struct topograph_switch {
    int parent;    /* -1: none */
    char *note[2]; /* its annotations: domain, sub-domain; NULL: none */
};

struct topograph {
    struct topo *t;
    struct yaml *y;
    const char *origin;
    struct topo names; /* interns: racks are switches, leaves are nodes */
    struct topograph_switch *vertex;
    struct {
        int at;        /* its switch, -1: none */
        char *note[2]; /* of its block; owned */
        bool declared; /* by a block */
    } * node;
    int nodes;
    int known;      /* hosts of t at the beginning */
    struct groups { /* nodes of each group at the four levels, then above the spine */
        struct topo names;
        struct members {
            char **host;
            int hosts;
        } * of;
    } group[TOPOGRAPH_PLACES];
};

/* Where group[] has what is `depth` switches above a node's own. */
static inline int topograph_place(int depth)
{
    return depth == 0 ? LEVEL_LEAF : depth == 1 ? LEVEL_SPINE : LEVEL_COUNT + depth - 2;
}

/* t and y are borrowed; topograph_end() also after an error. */
void topograph_begin(struct topograph *m, struct topo *t, struct yaml *y);
void topograph_end(struct topograph *m);
/* A text (or number) as a name of `what`; NULL after an error that tells the line of `near`. */
char *topograph_name(struct topograph *m, const json_t *value, const json_t *near, const char *what,
                     struct err *err);
/* Index of a node, which is made at its first name. */
int topograph_node(struct topograph *m, const char *name);
void topograph_join(struct topograph *m, int place, const char *group, const char *host);
/* All that was joined. */
void topograph_claim(struct topograph *m);

int topograph_model(struct topo *t, struct yaml *y, struct err *err);

#endif
