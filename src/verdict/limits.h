/* limits.h - what a machine must reach to be accepted: rows of data, each with its source.
 *
 *     {"check": "tier-bandwidth", "tier": "rail", "at_least": "90 %", "of": "reference",
 *      "source": "..."}
 *
 * A check is a row of limit_check[]: what is looked at, in which unit, and from which side it is
 * bounded.  Bounds are written with their unit: "432 GB/s", "360 Gb/s", "12 us", "90 %", "0".  A rate
 * or a time may also be bounded by a share of the same figure of the reference (a preset or another
 * campaign) or of the data sheet.  What a row does not name (tier, op, ranks, domains) it asks of each. */
#ifndef RG_LIMITS_H
#define RG_LIMITS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/op.h"

enum check {
    CHECK_WRONG_DATA,     /* points whose data was wrong */
    CHECK_FAILED_POINTS,  /* points that did not end */
    CHECK_DEAD_PARTS,     /* parts that nothing passes */
    CHECK_PART_SPEED,     /* what a slow part still gives, relative to its tier */
    CHECK_PART_SHARE,     /* of the time or messages in which a part is slow */
    CHECK_PART_LATENCY,   /* what a part adds */
    CHECK_TIER_BANDWIDTH, /* middle of healthy pairs, one way, large messages */
    CHECK_TIER_LATENCY,   /* the same, one way, small messages */
    CHECK_TIER_SPREAD,    /* MAD of healthy pairs' bandwidth, share of their median */
    CHECK_TIER_LOADED,    /* bandwidth while all pairs run beside that of one alone */
    CHECK_BUSBW,          /* bus bandwidth of a collective */
    CHECK_COLLECTIVE, /* speed of one across domains, relative to what is expected (reference.h) */
    CHECK_RACKS,      /* hosts that measuring puts elsewhere than declared */
    CHECK_TAINTED,    /* findings of counters: throttled, retransmitted, in use by others */
    CHECK_SEEN,       /* share of the parts of a kind that met enough others to be judged */
    CHECK_COUNT
};

enum limit_unit { LIMIT_COUNT, LIMIT_SHARE, LIMIT_RATE, LIMIT_TIME };
/* "reference" and "data-sheet" in a file */
enum limit_of { LIMIT_ITSELF, LIMIT_OF_REFERENCE, LIMIT_OF_DATA_SHEET, LIMIT_OF_COUNT };

/* What a row may name beside its bound. */
enum limit_key {
    KEY_TIER = 1,
    KEY_OP = 2,
    KEY_RANKS = 4,
    KEY_BYTES = 8,
    KEY_PART = 16,
    KEY_STATE = 32,
    KEY_NIC = 64
};

struct limit_check {
    const char *name;     /* "tier-bandwidth" */
    enum limit_unit unit; /* of its value */
    bool least;           /* bounded from below */
    unsigned of;          /* 1 << enum limit_of that its bound may be a share of */
    unsigned keys;        /* enum limit_key that a row of it may have */
    const char *what;     /* for people */
};
extern const struct limit_check limit_check[CHECK_COUNT];

struct limit {
    enum check check;
    double bound;     /* in the check's unit, a share with `of` */
    double warn;      /* from here on good without a warning; NAN: the bound itself */
    enum limit_of of; /* LIMIT_ITSELF: an absolute bound */
    char *tier;       /* NULL: each */
    double nic_Bps;   /* rate of the NICs that the bound is for; 0: any */
    int op;           /* enum op, -1: each */
    int ranks;        /* 0: each */
    int domains;      /* NVLink domains that these lie in; 0: any number */
    double bytes;     /* 0: the largest that was measured */
    int part;         /* enum seen (matrix.h) */
    int state;        /* enum part_state; -1: each that no other row names */
    bool optional;    /* where it cannot be judged it does not count */
    char *source;
};

struct limits {
    struct limit *limit;
    int count;
    char *title; /* "defaults of railgauge" */
};

/* Rows of a limits file (src/schema/limits.schema.json), behind those that are there; what is
 * refused is named by file, row, key and value (EXIT_DATA).  limits_free() in any case. */
int limits_load(struct limits *l, const char *path, struct err *err);
/* jobs/limits/default.json, and with a preset jobs/limits/PRESET.json where there is one. */
int limits_builtin(struct limits *l, const char *preset, struct err *err);
void limits_free(struct limits *l);

enum { LIMIT_TEXT = 32 };
/* "432 GB/s", "95.0 %", "12.0 us", "3" */
char *limit_value_text(char buf[LIMIT_TEXT], enum limit_unit unit, double value);

#endif
