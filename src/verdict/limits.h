/* limits.h - requirements that a machine must meet to be accepted: rows of data, each with its
 * source.
 *
 *     {"check": "tier-bandwidth", "tier": "rail", "at_least": "90 %", "of": "reference",
 *      "source": "..."}
 *
 * A check is a row of limit_check[]: the figure, its unit, and whether it is bounded from below or
 * above.  Bounds are written with their unit: "432 GB/s", "360 Gb/s", "12 us", "90 %", "0".  A rate
 * or time may also be bounded by a share of the same figure of the reference (a preset or another
 * campaign) or of the data sheet.  A row applies to every tier, op, ranks or domains that it does
 * not name. */
#ifndef RG_LIMITS_H
#define RG_LIMITS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/op.h"

enum check {
    CHECK_WRONG_DATA,     /* points with wrong data */
    CHECK_FAILED_POINTS,  /* points that did not end */
    CHECK_DEAD_PARTS,     /* parts that no data passes */
    CHECK_PART_SPEED,     /* speed of a slow part relative to its tier */
    CHECK_PART_SHARE,     /* share of the time or messages in which a part is slow */
    CHECK_PART_LATENCY,   /* latency added by a part */
    CHECK_TIER_BANDWIDTH, /* median of healthy pairs, one way, large messages */
    CHECK_TIER_LATENCY,   /* median of healthy pairs, one way, small messages */
    CHECK_TIER_SPREAD,    /* MAD of healthy pairs' bandwidth / their median */
    CHECK_TIER_LOADED,    /* bandwidth while all pairs run / bandwidth of one pair alone */
    CHECK_BUSBW,          /* bus bandwidth of a collective */
    CHECK_COLLECTIVE,     /* speed of a collective across domains / expected speed (reference.h) */
    CHECK_RACKS,          /* hosts whose measured group differs from the declared one */
    CHECK_TAINTED,        /* findings of counters: throttled, retransmitted, used by others */
    CHECK_SEEN,           /* share of a kind of parts with enough partners to be judged */
    CHECK_COUNT
};

enum limit_unit { LIMIT_COUNT, LIMIT_SHARE, LIMIT_RATE, LIMIT_TIME };
/* "reference" and "data-sheet" in a file */
enum limit_of { LIMIT_ITSELF, LIMIT_OF_REFERENCE, LIMIT_OF_DATA_SHEET, LIMIT_OF_COUNT };

/* Keys that a row may have beside its bound. */
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
    enum limit_unit unit; /* unit of the value */
    bool least;           /* bounded from below */
    unsigned of;          /* bit mask of 1 << enum limit_of: figures its bound may be a share of */
    unsigned keys;        /* bit mask of enum limit_key that its rows may have */
    const char *what;     /* text for people */
};
extern const struct limit_check limit_check[CHECK_COUNT];

struct limit {
    enum check check;
    double bound;     /* value in the unit of the check; a share if `of` is set */
    double warn;      /* no warning from this value on; NAN: same as bound */
    enum limit_of of; /* LIMIT_ITSELF: an absolute bound */
    char *tier;       /* NULL: each */
    double nic_Bps;   /* NIC rate that the bound is for; 0: any */
    int op;           /* enum op, -1: each */
    int ranks;        /* 0: each */
    int domains;      /* NVLink domains that contain these ranks; 0: any number */
    double bytes;     /* 0: largest size measured */
    int part;         /* enum seen (matrix.h) */
    int state;        /* enum part_state; -1: each state that no other row names */
    bool optional;    /* does not count if it cannot be judged */
    char *source;
};

struct limits {
    struct limit *limit;
    int count;
    char *title; /* "defaults of railgauge" */
};

/* Append the rows of a limits file (src/schema/limits.schema.json) to l.  EXIT_DATA names file,
 * row, key and value that are refused.  Call limits_free() in every case. */
int limits_load(struct limits *l, const char *path, struct err *err);
/* Load jobs/limits/default.json, and with a preset also jobs/limits/PRESET.json if it exists. */
int limits_builtin(struct limits *l, const char *preset, struct err *err);
void limits_free(struct limits *l);

enum { LIMIT_TEXT = 32 };
/* Returns "432 GB/s", "95.0 %", "12.0 us" or "3". */
char *limit_value_text(char buf[LIMIT_TEXT], enum limit_unit unit, double value);

#endif
