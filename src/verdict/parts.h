/* parts.h - what a person can act on: the slow, dead and wrong parts of a cost matrix, each with its
 * kind, its name and place, its evidence, what it costs and what to do next.
 *
 * A row is a part, whatever tiers show it.  Its kind follows from what the fit named (matrix.h):
 *
 *   an endpoint over tiers that cross NICs only   its NIC, port or cable; else the GPU
 *   a pair                                        the path between two NICs (cable), or inside a host
 *                                                 or domain (link)
 *   a leaf, beyond it; what leaves a rack         uplinks
 *   a rack over a tier inside NVLink domains      its domain
 *   all pairs below the reference alike           the fabric; without a reference nobody can tell
 *
 * Order: wrong data, dead, then by what a training step loses, then by speed.
 *
 * Confidence: high with 8 partners and an interval within 10 % of the factor, or 3 partners and 2
 * pairs measured alone; medium with 3 partners or one pair alone; else low.  Dead or wrong is high
 * with 3 partners.
 *
 * Names that are not visible are absent, and `missing` says which and what would tell. */
#ifndef RG_PARTS_H
#define RG_PARTS_H

#include "base/table.h"
#include "cost/matrix.h"
#include "probe/point.h"
#include "verdict/below.h"

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH, CONFIDENCE_COUNT };
extern const char *const confidence_name[CONFIDENCE_COUNT];

/* Where an end of a part is; -1: has none, or none is visible. */
struct part_place {
    int endpoint, host;
    int nic, gpu; /* rows of the topology */
    int at[LEVEL_COUNT];
};

struct part_row {
    enum part_kind kind;
    enum part_state state;
    enum side side;
    int exception;    /* of the matrix, the worst; -1: the fabric */
    int exceptions;   /* how many of the matrix this is */
    double factor;    /* speed relative to its tier while the state shows (the fabric: to
                                   the reference); NAN: late, or not known */
    double lo, hi;    /* its 95 % interval; NAN: not known */
    double share;     /* of the time, messages or checks in which the state shows; NAN: not
                                   known; 1 for states that always show */
    double alpha_add; /* s added one way */
    double bytes;     /* of states that show up to a size, or from one on; 0: not known */
    int pairs, alone, partners; /* evidence, see struct exception */
    enum confidence confidence;
    struct part_place place[2];
    int places;    /* 0: the fabric */
    char *name;    /* "NIC mlx5_1 of r00n04 (GPU 1), sending" */
    char *where;   /* "rack-00, tray 5, slot 9, leaf-02 port 17"; "" */
    char *missing; /* "switch port (--ibnet or --lldp)"; "" */
    char *why;     /* evidence in words, of the worst exception; "" */
    char *over;    /* "all NICs", "mnnvl", "all NICs and mnnvl" */
    char *trouble; /* what counters of its devices said while it was measured: "mlx5_1 port 1 on
                      r00n04: 12 symbol errors, at 3 points"; "" */
    double cost;   /* a step takes this much longer with this part only, share; INFINITY: no step
                      ends; NAN: not known */
    struct below_said *below; /* what a campaign below says of it (below.h); NULL: none at hand */
    char *next;               /* what to do, from jobs/repairs.json */
    char *source;             /* of that */
};

struct parts {
    struct part_row *row;
    int rows;
    /* The matrix's, which has what was measured of racks and rails, with the devices of the
     * campaign's; its endpoints are owned, all else is the input's, which lives as long. */
    struct topo topo;
    char *job; /* whose step `cost` is of: "llama3.1-70b dp_shard=72,tp=4"; NULL: none could be
                  predicted */
    const struct below *below; /* the input's */
    char **only;               /* parts of the campaign below that are none here, in words */
    int onlies;
};

struct parts_input {
    const struct matrix *m;
    const struct topo *topo; /* of the campaign, for its devices; NULL: as the matrix has them */
    const struct points *points;    /* NULL: none at hand */
    const struct matrix *reference; /* NULL: none */
    const char *reference_name;
    const struct below *below; /* NULL: none; `m` lies above it */
    double enough; /* share of the reference's rate below which the whole fabric is slow; 0: 0.9 */
    bool no_cost;  /* spare the predictions */
};

/* Fails where jobs/repairs.json is not to be read (EXIT_CONFIG) or bad (EXIT_DATA).  parts_free() in
 * any case. */
int parts_list(struct parts *p, const struct parts_input *in, struct err *err);
void parts_free(struct parts *p);

/* A line for each of the first `rows` parts, then for each of the first `steps` the evidence, what to do, what is not
 * known and what counters said (0: all); or where `out` is NULL all of it as JSON, {"job", "parts"}; new reference. */
json_t *parts_report(FILE *out, const struct parts *p, int rows, int steps);
/* What it still gives, and when: matrix_effect(). */
enum { PART_SPEED = MATRIX_EFFECT };
static inline char *part_speed(const struct part_row *r, char buf[PART_SPEED])
{
    const struct exception e = {.state = r->state,
                                .factor = isnan(r->factor) ? 1 : r->factor,
                                .depth = isnan(r->factor) ? 0 : r->factor,
                                .share = isnan(r->share) ? 0 : r->share,
                                .evidence = r->pairs,
                                .alpha_add = r->alpha_add,
                                .bytes = r->bytes};

    return matrix_effect(&e, buf);
}
/* "+3.1 % of a step", "no step ends", "" */
char *part_cost(const struct part_row *r, char buf[PART_SPEED]);

#endif
