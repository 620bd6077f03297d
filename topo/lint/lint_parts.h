/* lint_parts.h - inside the lint of hosts: hosts with what belongs to each, the checks, and the
 * comparison of peers.  Nothing here is slower than n log n in hosts, GPUs or NICs. */
#ifndef RG_LINT_PARTS_H
#define RG_LINT_PARTS_H

#include "topo/lint/lint.h"
#include "topo/topo.h"

enum { LINT_TEXT = 160 };

/* A topology by host. */
struct lint_view {
    const struct topo *t;
    struct lint_host {
        int kind;      /* hosts of a kind are compared */
        int gpu, gpus; /* row of the first one that a driver told of, -1; how many */
        int named;     /* endpoints that are GPUs */
        int nic, nics; /* its part of nic[] */
        int hcas, up;  /* NICs with verbs; those that are up */
    } * host;
    int *nic;          /* rows of topo.nic, host by host */
    struct topo words; /* interns kinds and peers */
    bool *named;       /* by row of GPUs: its NVLinks were said to be odd */
};
void lint_view_open(struct lint_view *v, const struct topo *t);
void lint_view_close(struct lint_view *v);

enum lint_what { LINT_HOSTS, LINT_GPUS, LINT_NICS, LINT_ENDPOINTS };

struct lint_check {
    const char *kind, *unit; /* "7 HCAs up", or for texts "driver 550.54" */
    enum lint_what what;
    bool (*get)(const struct lint_view *v, int i, char text[LINT_TEXT]); /* false: not visible */
    bool words;                                                          /* the value is a text */
    double tolerance;                                                    /* of numbers, share */
    bool note;                                                           /* worth knowing only */
    bool again; /* the cause may be that of the row above: left out where that said as much */
    char *(*detail)(const struct lint_view *v, int odd, int peer); /* NULL: none */
};
extern const struct lint_check lint_check[];
extern const int lint_checks;

/* Compare peers by each check in turn; appends. */
void lint_peers(struct lint *l, struct lint_view *v);
/* Kind "leaf": NICs on another leaf than those of the same name in their group of hosts; appends.
 */
void lint_leaves(struct lint *l, const struct lint_view *v);

#endif
