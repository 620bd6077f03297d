/* point.h - one measured size of one op on one group in one epoch: a row of points.tsv.
 *
 * points.tsv is append-only.  The first line is "# railgauge-points 1 plan=CRC endpoints=N
 * transport=NAME topology=CRC" (points_topology(); files of older versions lack it).  A second
 * comment holds the provenance as one line of JSON.  The header follows, then one row per point.
 * Files of older versions lack the columns of struct point_kind: its members are then not known,
 * and such a file is continued without them.
 * The last column is the CRC32C (8 hex digits) of the row's text before it, tab included.  If the
 * last row has no newline or a wrong CRC, it is a torn tail and ignored; a wrong CRC in an earlier
 * row is an error with its line.  A point has one row: a second one for the same round, group, epoch
 * and size is an error. */
#ifndef RG_POINT_H
#define RG_POINT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/stats.h"
#include "base/units.h"
#include "measure/plan.h"

enum stop { STOP_CI, STOP_TIME, STOP_COUNT, STOP_FAILED };

/* A time as stored in a row: POINT_DIGITS digits times 10^power s.  POINT_NEVER: not known. */
enum { POINT_DIGITS = 7, POINT_NEVER = -128 };
struct point_time {
    unsigned digits : 24;
    int power : 8;
};
static inline struct point_time point_time(double sec)
{
    int power = isnan(sec) ? POINT_NEVER : 0;
    uint32_t digits = sec > 0 ? units_digits(sec, POINT_DIGITS, &power) : 0;

    return power < POINT_NEVER ? (struct point_time){0, 0} : (struct point_time){digits, power};
}
static inline double point_sec(struct point_time t)
{
    return t.power == POINT_NEVER ? NAN : units_of_digits(t.digits, t.power);
}

/* Fields needed after the measurement.  Millions of points are held, in 64 bytes each. */
struct point {
    size_t bytes;
    const char *note; /* message of check() or run(), see point_note(); NULL: none */
    struct point_sec {
        double median;            /* as measured, or as stored in the row of a file */
        struct point_time lo, hi; /* as in struct summary */
    } sec;                        /* over n samples; a sample is the time of the slowest rank */
    int n;
    int round, group;
    int ranks;
    int src, dst; /* pairs: endpoint ids; collectives: first and last member */
    union {
        struct {
            unsigned flows : 20; /* groups that ran at the same time, including this one */
            unsigned tail : 12;  /* point_tail() of sec_p95 */
        };
        uint32_t beside; /* flows and tail in one word */
    };
    union {
        struct {
            enum stage stage : 7;
            enum op op : 7;
            enum stop stop : 2;
            unsigned epoch : 3;
            bool checked : 1, wrong : 1; /* data was verified; was found wrong */
            /* Kind of the data, each one more than the library's number; 0: not known, and redop 0
             * where nothing is reduced.  dtype: enum nccl_dtype, redop: enum nccl_redop,
             * registration: enum nccl_register. */
            unsigned dtype : 4, redop : 3, registration : 2;
        };
        uint32_t words; /* all the bit fields in one word */
    };
};
static inline struct point_sec point_secs(double median, double lo, double hi)
{
    return (struct point_sec){median, point_time(lo), point_time(hi)};
}
_Static_assert(sizeof(struct point) == 64, "millions are held");
_Static_assert(PLAN_EPOCHS <= 8 && STAGE_COUNT < 128 && OP_COUNT < 128, "it has no room for more");

/* Kind of a point's data as far as times depend on it, 0: not known.  Kernels that move bytes do
 * not depend on their type; kernels that reduce do (NCCL: symmetric kernels for floating point
 * only, NVLS with loads of 4 or 16 bytes).  Points of different kinds are never mixed. */
static inline unsigned point_kind(const struct point *p)
{
    return (p->registration > 1 ? p->registration << 7 : 0) |
           (p->redop ? p->redop << 4 | p->dtype : 0);
}
enum { POINT_KIND = 48 };
/* Kind in words: "bfloat16 sum, symmetric"; "": not known. */
const char *point_kind_text(unsigned kind, char out[POINT_KIND]);

/* Return log(sec_p95 / sec) in steps of 1/POINT_TAIL_STEPS, plus one, at most POINT_TAIL_MOST; 0:
 * not known.  Computed from the digits of the file, so that a file gives the same value as the
 * campaign. */
enum { POINT_TAIL_STEPS = 1024, POINT_TAIL_MOST = 4095, POINT_FLOWS_MOST = (1 << 20) - 1 };
unsigned point_tail(double p95, double median);
/* Inverse of point_tail(), log(sec_p95 / sec); NAN: not known. */
static inline double point_tail_log(const struct point *p)
{
    return p->tail ? (double)(p->tail - 1) / POINT_TAIL_STEPS : NAN;
}

/* A complete row, as measured and written.  Only people and their tools read the additional
 * fields. */
struct point_row {
    struct point point;
    double min, p5, p95, max, mad; /* as in struct summary, of the same samples */
    double skew;                   /* s, median spread of the start times; NAN: no common clock */
    int slowest; /* endpoint that was the slowest most often; -1: not known (sim) */
    int late;    /* endpoint that arrived last most often, -1: not known */
};
static inline void point_summary(struct point_row *row, const struct summary *sec)
{
    struct point *p = &row->point;

    p->sec = point_secs(sec->median, sec->lo, sec->hi);
    p->n = sec->n;
    p->tail = point_tail(sec->p95, sec->median);
    row->min = sec->min;
    row->p5 = sec->p5;
    row->p95 = sec->p95;
    row->max = sec->max;
    row->mad = sec->mad;
}
enum { POINT_NOTE = 256 };

/* Set the note of a point: at most POINT_NOTE characters, without control characters for a
 * terminal.  Few points have notes, and many notes are equal, so each is stored once, until the
 * program ends. */
void point_note(struct point *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline const char *point_words(const struct point *p)
{
    return p->note ? p->note : "";
}

/* Fill in group, op, epoch and size of group g of a round; nothing is measured yet. */
void point_describe(struct point_row *row, const struct round *r, int g, int epoch, size_t bytes);

struct noise_court;

struct points {
    struct point *point;
    int count;
    unsigned plan_crc;
    int endpoints;
    char transport[16];
    bool bound; /* the file names its topology */
    bool plain; /* the file lacks the columns of the kind of data */
    unsigned topology_crc;
    int torn; /* bytes of torn tail that were ignored */
    /* result of the noise judge after the first stage (noise/noise.h), for the fit; NULL: none */
    struct noise_court *judged;
};

int points_load(struct points *p, const char *path, struct err *err);
/* Check that the points were measured on this topology.  EXIT_DATA with both names. */
int points_check(const struct points *p, const char *path, const struct topo *t,
                 const char *topology, struct err *err);
/* Check that the points of each operation are of one kind, also with `more` (NULL: none).
 * EXIT_DATA with both kinds. */
int points_alike(const struct points *p, const struct point *more, struct err *err);
void points_free(struct points *p);

/* Append points.  points_open() creates or continues the file (cutting a torn tail), locks the
 * file, and refuses a file of a different plan or topology (EXIT_DATA) or one in use by another
 * process (EXIT_IO).  points_commit() writes the rows added since the last commit; these rows
 * survive the death of any process and are on disk within 0.2 s (points_close(): at once). */
struct points_log;
int points_open(struct points_log **log, const char *path, unsigned plan_crc, const struct topo *t,
                const char *transport, struct err *err);
/* Parse the text of a points.tsv (NUL-terminated, len bytes without the NUL); path is for
 * messages. */
int points_parse(struct points *p, const char *path, char *text, size_t len, struct err *err);
void points_add(struct points_log *log, const struct point_row *row);
int points_commit(struct points_log *log, struct err *err);
struct points *points_all(struct points_log *log); /* existing and added points */
/* Move the points to *out, as points_load() would read them from the file.  The log is then empty
 * and can only be closed.  *out must be zero, loaded or taken. */
void points_take(struct points_log *log, struct points *out);
int points_close(struct points_log *log, struct err *err); /* commits; log may be NULL */

/* --- a row as text, for points_log.c --- */

enum { POINT_TEXT = 768, POINT_COLUMNS = 29 }; /* room for one row */

/* The last written row.  The next row starts from its text, because consecutive rows are almost
 * equal. */
struct point_written {
    struct point_row row;
    size_t len;                       /* 0: no row yet */
    bool plain;                       /* rows lack the columns of the kind of data */
    unsigned short at[POINT_COLUMNS]; /* offset of each cell */
};
/* Write a row as text and store it in *last.  Returns the length, newline included. */
size_t point_row(char buf[POINT_TEXT], const struct point_row *row, struct point_written *last);
/* Column names, newline included.  The caller frees. */
char *points_header(void);

#endif
