/* matrix.h - the cost matrix: what it costs to move bytes between any two endpoints, and to run a
 * collective on any group.  matrix.json is this structure; its size grows with host ranges and
 * exceptions, not with pairs.
 *
 * Seconds of a pair src -> dst of `bytes`, in the tier of the two (matrix_pair()):
 *
 *   max(oneway(bytes), uni(bytes)), of each what moves / factor, + alpha_add
 *
 *   factor      the least of the parts on the way: an endpoint's NIC (sending, receiving), a host, a
 *               leaf, a rack, two racks, a rack's uplinks, the pair; 1 without exceptions
 *   alpha_add   the most that one of them adds
 *
 * Example:
 *
 *     #include <stdio.h>
 *     const int group[] = {0, 1, 2, 3};
 *     struct matrix m;
 *     struct cost c;
 *
 *     if (matrix_load(&m, "campaign", MATRIX_PRICES, err) < 0)
 *         return -1;
 *     matrix_pair(&m, 0, 3, 64 << 20, &c);
 *     printf("%g s (%g to %g), %s\n", c.sec, c.lo, c.hi, c.source);
 *     matrix_collective(&m, OP_ALL_REDUCE, group, 4, 64 << 20, &c);
 *     matrix_free(&m);
 *     return 0; */
#ifndef RG_MATRIX_H
#define RG_MATRIX_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

#include "base/err.h"
#include "base/op.h"
#include "matrix/curve.h"
#include "matrix/matrix_compute.h"
#include "matrix/shape.h"
#include "topo/fabrics/fabric.h"
#include "topo/part.h"
#include "topo/topo.h"

/* The three curves of a pair: OP_PAIR_LATENCY, OP_PAIR_BW, OP_PAIR_BIBW. */
enum direction { DIR_ONEWAY, DIR_UNI, DIR_BI, DIR_COUNT };
extern const char *const direction_name[DIR_COUNT]; /* "oneway", "uni", "bi" */

/* Origin of a number; printed beside each number. */
enum basis {
    BASIS_MEASURED,
    BASIS_FITTED,
    BASIS_PRESET,
    BASIS_MODELLED,
    BASIS_ASSUMED,
    BASIS_COUNT
};
extern const char *const basis_name[BASIS_COUNT];

struct tier {
    struct tier_rule rule;
    struct curve curve[DIR_COUNT];
    enum basis basis;
    int pairs;                 /* pairs behind the curves */
    double measured, possible; /* pairs whose bandwidth was measured, of all; 0: not told */
    int partners;              /* that an endpoint was measured with, in the middle */
    double spread;             /* MAD of healthy pairs' bandwidth, share of the median */
    double latency_spread;     /* the same of their latency; 0: not measured */
    double loaded; /* median bandwidth of parallel rounds / isolated; NAN: not measured */
    int loaded_pairs; /* pairs behind it that were drawn at random to run alone; 0: those that ran alone
                         had stood out, so that they say too little of all others */
    double peak_Bps; /* data-sheet rate, 0: not known */
    bool nic;        /* traffic of this tier crosses NICs */
    char *source;    /* source of a preset's numbers; NULL: measured */
};

/* Two things beside the shape decide how groups that span racks share what lies between: where
 * their rings leave a rack, and how many of them run at the same time, as the groups of a mesh axis
 * do. */
struct collective {
    enum op op;
    struct shape shape;
    int crossings; /* neighbours in rank order that lie in different racks; 0: none, or not known */
    int at_once;   /* groups that ran side by side when this was measured; 0: not known */
    struct curve curve;
    enum basis basis;
    char *source;
    char *data; /* type, reduction and registration: "bfloat16 sum, symmetric"; NULL: not known */
};

/* Dispatch and combine of an expert-parallel kernel on groups of this many ranks: see ep.c. */
struct ep_curve {
    char *kernel; /* "HybridEP" */
    int ranks, domains;
    double alpha;  /* s */
    double Bps[2]; /* dispatch, combine; of one rank: what stays in its domain, and with several
                      domains what crosses */
    enum basis basis;
    char *source;
};

/* One part that differs from its tier: measured bandwidth = factor * tier's.  factor 0: dead (no
 * data); everything that needs it takes for ever (INFINITY).  The slowest of several parts on a way
 * rules. SIDE_TX of a pair or rack pair: only a -> b; SIDE_RX: only b -> a. */
struct exception {
    enum part part;
    enum side side;
    int a, b;         /* endpoint, host, leaf, rack or endpoint pair; b = -1 for single parts */
    int tier;         /* tier concerned, -1: every tier that crosses NICs; every tier when dead */
    double factor;    /* bandwidth, 1 = as the tier */
    double alpha_add; /* s, added one way */
    int evidence;     /* pairs that show the effect */
    int alone;        /* pairs of `evidence` that were measured alone */
    int partners; /* number of endpoints at the other end; for a pair of parts the smaller number */
    double lo, hi; /* 95 % interval of depth, or of factor if depth is unknown; 0: unknown */
    char *why;     /* "9 of 9 partners see 0.60 of rail; alone as well: link" */
    bool wrong;    /* true if the part gives wrong data; factor is then 0 */
    enum part_state state;
    /* Not STATE_SLOW: bandwidth relative to the tier while the state shows, and the share of the time,
     * of the samples or of the checks in which it does.  0: not known.  Prices use factor, which is 1
     * for states that do not concern every transfer. */
    double depth, share;
    double bytes; /* STATE_SMALL: slow up to this size, STATE_LARGE: from it on; 0: not known */
    /* True for devices of a kind that is declared slower than the tier's reference, which is no fault.
     * Prices use the exception; screens show the property instead. */
    bool declared;
};

/* More than this, times its data sheet or its published rate, no tier reaches: what does is another kind of
 * link.  NVLink's tiers carry 3.7 times and more what a NIC does; counting of headers explains 1.1. */
#define TIER_BEYOND 1.5

/* Properties of the fabric, which are not faults. */
enum property_kind {
    PROPERTY_CLASS, /* devices of another kind than the tier's reference; ratio: their bandwidth / its */
    PROPERTY_TAPER,      /* groups of a level have fewer uplinks than NICs; ratio: 2 is 2:1 */
    PROPERTY_COLLISIONS, /* hashed flows share a path; ratio: share of turns in which a flow gets half */
    PROPERTY_COUNT
};

struct property {
    enum property_kind kind;
    int tier;
    int level; /* PROPERTY_TAPER: level of the groups with these uplinks; otherwise -1 */
    double ratio, declared; /* measured; NAN: nothing is declared */
    char *what;             /* PROPERTY_CLASS: "NVIDIA A100 with NICs of 200 Gb/s", or NULL */
    int endpoints;          /* PROPERTY_CLASS: number of endpoints */
    double Bps;             /* PROPERTY_CLASS: median bandwidth of their pairs; NAN: not known */
    char *text;             /* evidence in words */
};

/* Return the state of the part; if none is given, derive it from the factor. */
static inline enum part_state matrix_state(const struct exception *e)
{
    if (e->wrong || e->state == STATE_WRONG)
        return STATE_WRONG;
    if (e->factor == 0 || e->state == STATE_DEAD)
        return STATE_DEAD;
    return e->state == STATE_SLOW && e->factor == 1 ? STATE_LATE : e->state;
}
/* Bandwidth relative to the tier while the state shows; NAN: not known, or STATE_LATE. */
static inline double matrix_depth(const struct exception *e)
{
    enum part_state state = matrix_state(e);

    if (state == STATE_DEAD || state == STATE_WRONG)
        return 0;
    if (state == STATE_LATE)
        return NAN;
    return e->depth > 0 ? e->depth : e->factor < 1 ? e->factor : NAN;
}
/* "0.60", "0.50 in 40 % of the time", "0.45 beside other traffic", "0.60 both ways at once", "0.30 up to 64
 * KiB", "10 % of messages at 0.50", "0.50 of its uplinks", "+3.0 us", "no answer", "wrong data in 3 of 40 checks".  words: for people,
 * "60 % of normal", "50 % of normal in 40 % of the time", "50 % of its uplinks", "3.00 us more latency" */
enum { MATRIX_EFFECT = 64 };
char *matrix_effect(const struct exception *e, bool words, char buf[MATRIX_EFFECT]);

/* An observation in one sentence that is not an exception of a part: declared racks differ from measured ones, a
 * shared trunk, an unstable point, wrong data. */
struct finding {
    char *kind; /* "racks", "contention", "uplinks", "unstable", "busy", "wrong_data", "bimodal",
                   "latency", "tainted" */
    char *text;
};

/* Kinds of parts that a campaign may have looked at: devices, NICs, hosts, leaves, their uplinks (of
 * racks, where no leaf is known), pairs of racks, ways between two NICs, pairs of devices. */
enum seen {
    SEEN_ENDPOINT,
    SEEN_NIC,
    SEEN_HOST,
    SEEN_LEAF,
    SEEN_UPLINKS,
    SEEN_RACK_PAIR,
    SEEN_CABLE,
    SEEN_PAIR,
    SEEN_COUNT
};
extern const char *const seen_name[SEEN_COUNT]; /* "endpoint", "nic", ..., "rack-pair" */

/* Number of parts of a kind, and number of parts with enough partners to be judged: three, or all existing ones;
 * for hosts and racks several on the other side; for uplinks half of their NICs at once.  A pair or a path counts
 * as judged if it was measured. */
struct seen_parts {
    enum seen kind;
    double parts, judged;
};

struct matrix {
    char *transport;  /* "mpi", "sim", "nccl", or "preset" */
    char *fabric;     /* preset name or NULL */
    struct topo topo; /* hosts, endpoints' places, tiers' rules (topo.tier equals tier[].rule) */
    struct tier tier[TIER_MAX];
    int tiers;
    struct collective *collective;
    int collectives;
    struct ep_curve *ep;
    int eps;
    struct exception *exception;
    int exceptions;
    struct finding *finding;
    int findings;
    struct property *property;
    int properties;
    struct seen_parts *seen; /* without kinds that have no parts or are not visible */
    int seens;
    struct compute_rates compute; /* basis of compute predictions, if known */
    /* enum algorithm that collectives are priced for, by the model without curves; not in the file.  0: as the library
     * chooses, by all that is known. */
    int algorithm;
    json_t *provenance;
};

void matrix_init(struct matrix *m);
void matrix_free(struct matrix *m);
/* Tiers that show a part: inside a host or domain, or across NICs. */
struct part_shown {
    bool inside, nics;
};
static inline struct part_shown matrix_shown(const struct matrix *m, const struct exception *e)
{
    bool nic = e->tier < 0 || m->tier[e->tier].nic;

    return (struct part_shown){.inside = !nic || e->factor == 0, .nics = nic};
}
/* Return the kind of the part, from the tiers that show its exceptions. */
enum part_kind matrix_kind(const struct matrix *m, const struct exception *e, struct part_shown on);
/* "NIC mlx5_1 of r00n04 (GPU 1), sending", "host n03", "racks rack-00 to rack-01", "uplinks of leaf-1"; device
 * names from t.  The same name stands on every screen. */
enum { MATRIX_PART = 256 };
char *matrix_title(const struct topo *t, enum part_kind kind, const struct exception *e,
                   char buf[MATRIX_PART]);
/* matrix_title() of an exception by itself. */
char *matrix_part(const struct matrix *m, const struct exception *e, char buf[256]);
char *matrix_endpoint(const struct matrix *m, int id, char buf[96]); /* "17 (r00n04:1)" */
/* Append a finding. */
void matrix_find(struct matrix *m, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Append a property; the caller fills in the rest. */
struct property *matrix_property(struct matrix *m, enum property_kind kind, int tier, double ratio);
/* Exceptions that are faults: all but the declared ones. */
static inline int matrix_faults(const struct matrix *m)
{
    int n = 0;

    for (int i = 0; i < m->exceptions; i++)
        n += !m->exception[i].declared;
    return n;
}
/* Return the counts of a kind; NULL: not recorded. */
const struct seen_parts *matrix_seen(const struct matrix *m, enum seen kind);
/* "72 of 72 GPUs, 72 of 72 NICs, 18 of 18 hosts, cables: 16 % of 2,556 pairs of NICs", NULL: not told; the
 * caller frees. */
char *matrix_seen_text(const struct matrix *m);
/* Parts of a matrix to read.  MATRIX_PRICES sets topo.nics but leaves topo.nic NULL, because the rows of NICs take
 * nine tenths of the memory of a large matrix. */
enum matrix_depth { MATRIX_WHOLE, MATRIX_PRICES };
/* path: a matrix.json, or the directory of a campaign that holds one. */
int matrix_load(struct matrix *m, const char *path, enum matrix_depth depth, struct err *err);
int matrix_save(const struct matrix *m, const char *path, struct err *err);

/* The file in memory; src/schema/matrix.schema.json describes it. */
#define MATRIX_FORMAT "railgauge-matrix"
enum { MATRIX_VERSION = 1 };
json_t *matrix_pack(const struct matrix *m); /* new reference; NULL: a text is not UTF-8 */
/* m is initialised here; on failure nothing needs to be freed.  path is for messages. */
int matrix_unpack(struct matrix *m, json_t *root, enum matrix_depth depth, const char *path,
                  struct err *err);
/* json_parse() and matrix_unpack(). */
int matrix_parse(struct matrix *m, const char *text, size_t len, const char *path, struct err *err);
json_t *coverage_pack(const struct tier *t); /* coverage of a tier; new reference */

/* A preset as a matrix: every number BASIS_PRESET with its source. */
int matrix_from_fabric(struct matrix *m, const struct fabric *f, int racks, struct err *err);

/* The preset whose data sheet goes with a matrix: `name`, else the one that the matrix names, else,
 * where products were measured, the shipped one that has this GPU.  Without any f->name is NULL. */
int matrix_preset(struct fabric *f, const struct matrix *m, const char *name, struct err *err);

/* The matrix of a handle of railgauge.h, for what lies above src/matrix; it lives as long. */
struct railgauge;
const struct matrix *api_matrix(const struct railgauge *r);

/* Open the input of a command: the preset `fabric` unless it is NULL, otherwise the file at path. */
int matrix_open(struct matrix *m, const char *path, const char *fabric, int racks, struct err *err);

/* A cost and where it came from. */
struct cost {
    double sec, lo, hi; /* NAN when unknown, INFINITY when a part on the way is dead */
    enum basis basis;
    char source
        [208];     /* "measured all_gather 64 ranks, 8 domains of 8 at 1 MiB", "all_gather 64 ranks,
                         8 domains of 8 at 4 GiB, extrapolated from 256 MiB measured", "modelled: tree, LL, mnnvl inside ..." */
    int exception; /* index of the exception that rules, -1 */
    double from;   /* the measured or published size that the answer was extrapolated from; 0:
                         none, the size lies between two */
    bool exact;    /* a curve of the very shape holds this size, so that nothing was concluded */
    /* Software that runs the collective and is not modelled, "RCCL"; NULL: none. */
    const char *foreign;
};

/* One way, src -> dst: max(oneway(bytes), uni(bytes)) of the tier, slowed by exceptions.  Beyond
 * the latency ladder only the bandwidth curve grows; below the bandwidth ladder bandwidth is
 * constant. */
void matrix_pair(const struct matrix *m, int src, int dst, double bytes, struct cost *out);
/* The same without exceptions. */
void matrix_pair_healthy(const struct matrix *m, int src, int dst, double bytes, struct cost *out);
/* Append "; 60 % of normal by PART" to out->source; out->exception must be set. */
void matrix_blame(const struct matrix *m, struct cost *out);
/* Bandwidth factor of src -> dst in 0..1 (1: as its tier) and, unless NULL, the exception that sets
 * it (-1) and the latency that is added. */
double matrix_factor(const struct matrix *m, int src, int dst, int *exception, double *alpha_add);

/* Return the tier of two different endpoints. */
static inline int matrix_tier(const struct matrix *m, int src, int dst)
{
    return topo_tier(&m->topo, src, dst);
}

/* Return the index of the part of this kind that holds an endpoint, as in exception.a; -1: not visible. */
static inline int part_at(const struct matrix *m, enum part part, int endpoint)
{
    return part_level[part] < 0 ? endpoint : topo_at(&m->topo, endpoint, part_level[part]);
}
/* Return the number of parts of a kind. */
static inline int part_count(const struct matrix *m, enum part part)
{
    return part_level[part] < 0 ? m->topo.endpoints : m->topo.group[part_level[part]].count;
}

/* True if src -> dst passes the part of e, in any tier. */
bool matrix_passes(const struct matrix *m, const struct exception *e, int src, int dst);
/* True if src -> dst, a pair of this tier, crosses the part of e. */
bool matrix_crosses(const struct matrix *m, const struct exception *e, int src, int dst, int tier);
/* True if an exception of a leaf concerns only its uplinks. */
static inline bool matrix_beyond(const struct matrix *m, const struct exception *e)
{
    bool leaves = false;

    for (int i = 0; i < m->tiers; i++)
        leaves = leaves || m->tier[i].rule.same & 1u << LEVEL_LEAF;
    return leaves && e->tier >= 0 && !(m->tier[e->tier].rule.same & 1u << LEVEL_LEAF);
}
/* True if this endpoint is in the part, or at one end of it. */
static inline bool matrix_touches(const struct matrix *m, const struct exception *e, int endpoint)
{
    int at = part_at(m, e->part, endpoint);

    return at == e->a || (e->b >= 0 && at == e->b);
}
/* Seconds of a pair of this tier at that factor, without added latency. */
double matrix_tier_time(const struct tier *t, double bytes, double factor);
/* The same as the larger of two lines, fixed + scaled / factor, for one size and any factor above 0.  Both are NAN
 * without curves.  A tier whose bandwidth curve falls somewhere may differ. */
struct tier_line {
    double fixed, scaled;
};
void matrix_tier_lines(const struct tier *t, double bytes, struct tier_line line[2]);
/* Rate of a tier at large sizes, B/s per direction: slope of its curve; DIR_BI falls back to
 * DIR_UNI, that to DIR_ONEWAY.  NAN when none was measured. */
double matrix_rate(const struct matrix *m, int tier, enum direction dir);
/* Pairs of the tier whose bandwidth was measured, each once; of a matrix that does not tell, those
 * behind its curves. */
static inline int tier_pairs(const struct tier *t)
{
    return t->measured > 0 ? (int)t->measured : t->pairs;
}

/* A collective on these endpoints in this order while `at_once` such groups run side by side.  The
 * curve of the same (op, shape), of several the one whose ring crosses racks as often and that was
 * as crowded.  Else, inside one domain and over MPI, between the two nearest measured shapes of the same
 * domains and members per domain; between domains of GPUs NCCL's algorithms (algorithm.h) as curves of other
 * shapes correct them (struct join); else modelled from the tiers.  Beyond the sizes of the curves: the rule
 * of collective.h.  S as in op.h.  A slow part counts only where a flow of the operation's schedule crosses it.
 *
 * healthy: what a healthy fabric takes, as far as this matrix tells (reference.h asks further): no
 * exceptions, and measured collective curves are not looked at (a measurement is not compared with
 * itself): published curves, else the model over the tiers.
 *
 * The group is looked at once for all sizes. */
void matrix_collective_sizes(const struct matrix *m, enum op op, const int *ids, int n, int at_once,
                             const double *bytes, int sizes, bool healthy, struct cost *out);
static inline void matrix_collective_at(const struct matrix *m, enum op op, const int *ids, int n,
                                        int at_once, double bytes, bool healthy, struct cost *out)
{
    matrix_collective_sizes(m, op, ids, n, at_once, &bytes, 1, healthy, out);
}
/* Alone, as it is. */
static inline void matrix_collective(const struct matrix *m, enum op op, const int *ids, int n,
                                     double bytes, struct cost *out)
{
    matrix_collective_at(m, op, ids, n, 1, bytes, false, out);
}
/* Dispatch, or else combine, of an expert-parallel kernel on these endpoints.  bytes: what a rank
 * sends (dispatch) or receives (combine) in all, its own share and every copy counted, as S of
 * all_to_all.  A rank receives `inside` of these over its own domain's links (with kernels that
 * forward: all of them) and `across` from other domains, each token once a domain; inside NAN:
 * spread evenly over the group.  Where no kernel is known that serves the group: all_to_all, and the
 * words say so (BASIS_ASSUMED). */
void matrix_ep(const struct matrix *m, const int *ids, int n, double bytes, double inside,
               double across, bool dispatch, struct cost *out);
#endif
