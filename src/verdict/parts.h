/* parts.h - faulty parts of a cost matrix (slow, dead, wrong data), each with kind, name, place,
 * evidence, cost and next step.
 *
 * A row is one part, whatever number of tiers shows it.  The kind follows from the exception that
 * the fit named (matrix.h):
 *
 *   an endpoint over tiers that cross NICs only   its NIC, port or cable; otherwise the GPU
 *   a pair                                        the path between two NICs (cable), or inside a
 *                                                 host or domain (link)
 *   a leaf, beyond it; uplinks of a rack          uplinks
 *   a rack over a tier inside NVLink domains      its domain
 *   all pairs equally below the reference         the fabric; not detectable without a reference
 *
 * Order of rows: wrong data, dead, then by cost in a training step, then by speed.
 *
 *   confidence  high    8 partners and an interval within 10 % of the factor, or 3 partners and
 *               2 pairs measured alone; dead or wrong: 3 partners medium  3 partners, or one
 *               pair measured alone low     otherwise
 *
 * Names that are not visible are left out; `missing` lists them with the source that would provide
 * each.
 *
 * Example:
 *
 *     struct matrix m;
 *     struct parts p;
 *
 *     if (matrix_load(&m, "campaign", MATRIX_WHOLE, err) < 0)
 *         return -1;
 *     int rc = parts_list(&p, &(struct parts_input){.m = &m}, err);
 *     for (int i = 0; rc == 0 && i < p.rows; i++)
 *         printf("%s: %s\n", p.row[i].name, p.row[i].next);
 *     parts_free(&p);
 *     matrix_free(&m);
 *     return rc; */
#ifndef RG_PARTS_H
#define RG_PARTS_H

#include "base/table.h"
#include "matrix/matrix.h"
#include "measure/point.h"
#include "verdict/below.h"

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH, CONFIDENCE_COUNT };
extern const char *const confidence_name[CONFIDENCE_COUNT];

/* Place of one end of a part; -1: does not exist or is not visible. */
struct part_place {
    int endpoint, host;
    int nic, gpu; /* indices into the topology */
    int at[LEVEL_COUNT];
};

struct part_row {
    enum part_kind kind;
    enum part_state state;
    enum side side;
    int exception;  /* worst one in the matrix; -1: the fabric */
    int exceptions; /* number of exceptions of the matrix in this row */
    /* Speed relative to its tier (the fabric: to the reference) while the state shows; NAN: late,
     * or unknown. */
    double factor;
    double lo, hi; /* 95 % interval of factor; NAN: unknown */
    /* Share of the time, messages or checks in which the state shows; NAN: unknown; 1 for states
     * that always show. */
    double share;
    double alpha_add;           /* latency added one way, s */
    double bytes;               /* size up to or from which the state shows; 0: unknown */
    int pairs, alone, partners; /* evidence, see struct exception */
    enum confidence confidence;
    struct part_place place[2];
    int places;    /* number of places; 0: the fabric */
    char *name;    /* "NIC mlx5_1 of r00n04 (GPU 1), sending" */
    char *where;   /* "rack-00, tray 5, slot 9, leaf-02 port 17"; "" */
    char *missing; /* "switch port (--ibnet or --lldp)"; "" */
    char *why;     /* evidence of the worst exception, in words; "" */
    char *over;    /* "all NICs", "mnnvl", "all NICs and mnnvl" */
    /* Counters of its devices during the measurement: "mlx5_1 port 1 on r00n04: 12 symbol errors,
     * at 3 points"; "". */
    char *trouble;
    /* Extra time of a step if only this part were faulty, as a share; INFINITY: no step ends; NAN:
     * unknown. */
    double cost;
    struct below_said *below; /* result of a lower-layer campaign (below.h); NULL: none given */
    char *next;               /* next step, from jobs/repairs.json */
    char *source;             /* source of that advice */
};

struct parts {
    struct part_row *row;
    int rows;
    /* Topology of the matrix, which has the measured racks and rails, with the devices of the
     * campaign's topology.  Its endpoints are owned; the rest belongs to the input, which must live
     * as long. */
    struct topo topo;
    /* Job that `cost` refers to: "llama3.1-70b dp_shard=72,tp=4"; NULL: no step could be
     * predicted. */
    char *job;
    const struct below *below; /* borrowed from the input */
    char **only;               /* parts found only in the lower-layer campaign, in words */
    int onlies;
};

struct parts_input {
    const struct matrix *m;
    const struct topo *topo; /* topology of the campaign, for its devices; NULL: as in the matrix */
    const struct points *points;    /* NULL: not available */
    const struct matrix *reference; /* NULL: none */
    const char *reference_name;
    const struct below *below; /* lower-layer campaign of `m`; NULL: none */
    double enough; /* The whole fabric is slow below this share of the reference's rate; 0: 0.9. */
    bool no_cost;  /* skip the predictions */
};

/* Fill p.  EXIT_CONFIG: jobs/repairs.json cannot be read; EXIT_DATA: it is invalid.  Call
 * parts_free() in every case. */
int parts_list(struct parts *p, const struct parts_input *in, struct err *err);
void parts_free(struct parts *p);

/* Return everything as JSON, {"job", "parts"}, as a new reference. */
json_t *parts_json(const struct parts *p);
/* The exception that a row amounts to. */
static inline struct exception part_exception(const struct part_row *r)
{
    return (struct exception){.state = r->state,
                              .factor = isnan(r->factor) ? 1 : r->factor,
                              .depth = isnan(r->factor) ? 0 : r->factor,
                              .share = isnan(r->share) ? 0 : r->share,
                              .evidence = r->pairs,
                              .alpha_add = r->alpha_add,
                              .bytes = r->bytes};
}
/* The host that alone has the part; -1: a part of two hosts, or wider than a host. */
static inline int part_host(const struct part_row *r)
{
    bool one = r->places == 1 || (r->places == 2 && r->place[0].host == r->place[1].host);

    return one && r->kind <= PART_KIND_LINK ? r->place[0].host : -1;
}
/* Effect of the part and its condition: "0.60", matrix_effect(); for people "60 % of normal". */
enum { PART_SPEED = MATRIX_EFFECT };
static inline char *part_speed(const struct part_row *r, char buf[PART_SPEED])
{
    const struct exception e = part_exception(r);

    return matrix_effect(&e, false, buf);
}
static inline char *part_words(const struct part_row *r, char buf[PART_SPEED])
{
    const struct exception e = part_exception(r);

    return matrix_effect(&e, true, buf);
}

#endif
