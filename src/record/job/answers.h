/* answers.h - what the records of a job (record_job.h) answer, after record_clock_align():
 *
 *   late_find()     which ranks and hosts keep the others waiting
 *   sent_compare()  messages of a step, beside those that `predict` counts
 *   priced_make()   times of collectives, beside the prices of a cost matrix
 *
 * Times are s, sizes bytes.  Each result is freed by its own function, also after an error. */
#ifndef RG_ANSWERS_H
#define RG_ANSWERS_H

#include <stdlib.h>
#include <string.h>

#include "matrix/matrix.h"
#include "measure/point.h"
#include "record/record_job.h"
#include "record/record_steps.h"
#include "step/predict.h"

/* --- late ---
 *
 * Find the ranks and hosts that keep a job waiting because they enter its collectives last.
 *
 * Call c of communicator C, start(p) on the common clock:
 *
 *   W(p)    time that p waited for other ranks in other communicators since the previous call of C
 *   own(p)  the smaller of start(p) - median of all starts
 *                      and (start(p) - W(p)) - median of all (start - W)
 *
 * own() does not blame a rank that is late only because it waited for another one.  The duration of
 * a call is no evidence: the last rank to enter has the shortest.
 *
 *   usual      The 95 % interval of the median of own(p) lies above the median of all members'
 *              medians by the largest of LATE_SIGMAS of their spread, half of the spread inside a
 *              call, 3 times the clocks' uncertainty, and LATE_LEAST.  Also usual: "sometimes" in
 *              LATE_USUAL_SHARE of the calls.
 *   sometimes  own(p) exceeds LATE_FAR times the spread in at least LATE_CALLS calls, and in more
 *              calls than the median member by LATE_SIGMAS Poisson deviations.
 *   lost       Time by which the calls would have begun earlier without the part: last start minus
 *              the last start of other processes (for a host: of other hosts), at most own(p).
 *              The axis that lost most counts.
 *
 * A part is reported if it has LATE_PARTNERS partners or more and lost at least LATE_SHARE of the
 * recorded time, LATE_SHARE_SOMETIMES if its kind is "sometimes". */

enum { LATE_SIGMAS = 5, LATE_FAR = 10, LATE_CALLS = 5, LATE_PARTNERS = 3 };
#define LATE_LEAST 20e-6 /* s: ends of one collective differ by this much between ranks */
#define LATE_SHARE 1e-3
#define LATE_SHARE_SOMETIMES 5e-3
#define LATE_USUAL_SHARE 0.25

enum late_kind { LATE_NOT, LATE_SOMETIMES, LATE_USUAL };
extern const char *const late_kind_name[];

struct late_part {
    enum late_kind kind;
    int process;     /* host: its first process */
    bool host;       /* the part is the host with all its processes */
    int axis;        /* axis on which the part lost most */
    bool only;       /* late on no other axis, although other axes could show it */
    int calls, last; /* calls of the axis's communicator; calls that the part entered last */
    int often;       /* calls with a delay beyond the spread */
    /* Median of own() and its 95 % interval, s: over the `often` calls; over all calls if more than
     * half are late or none is. */
    double behind, lo, hi;
    double lost, share; /* s; share of the recorded time */
    int partners;
};

struct late {
    struct late_part *part; /* largest loss first */
    int parts;
    double waited;  /* s: time between own start and last start, mean over processes */
    double seconds; /* recorded time, s */
    int judged;     /* number of processes with enough partners */
};

/* Fill l.  Needs the clocks aligned by record_clock_align().  The caller calls late_free(). */
void late_find(struct late *l, const struct record_job *j);
static inline void late_free(struct late *l)
{
    free(l->part);
    memset(l, 0, sizeof(*l));
}
/* Returns "rank 5 on n01 (device 5)" or "host n03".  The caller frees. */
char *late_name(const struct late_part *p, const struct record_job *j);

/* --- sent ---
 *
 * Messages of one step as `predict` counts them, compared with those that a job recorded.
 *
 * Predicted messages of the same operation, group and size form one row.  Recorded messages of the
 * same operation on groups of the same number of ranks and stride are added to it if their size
 * agrees (SENT_ALIKE).  A row that no recorded size matches takes all sizes that are left. */

#define SENT_ALIKE 0.01

enum sent_is { SENT_SAME, SENT_COUNT, SENT_SIZES, SENT_NOT, SENT_MORE };
extern const char *const sent_name[];

struct sent_row {
    enum sent_is is;
    const char *label; /* label of the first predicted message; NULL: none predicted */
    enum op op;
    struct span span;
    double bytes, count;           /* predicted: bytes of one message, messages per step */
    double sent_bytes, sent_count; /* recorded: mean bytes of one message, messages per step */
    int sizes;                     /* number of recorded sizes */
};

struct sent {
    struct sent_row *row;
    int rows;
};

void sent_compare(struct sent *s, const struct traffic *t, const struct record_steps *steps);
static inline void sent_free(struct sent *s)
{
    free(s->row);
    memset(s, 0, sizeof(*s));
}

/* --- priced ---
 *
 * Collectives of a campaign compared with the prices of a cost matrix.
 *
 * The time of each group at each size, as the median of its epochs, is compared with the matrix's
 * cost for the same endpoints and the same number of groups at once.  A group is slow if the lowest
 * interval end of its epochs is above the interval of the cost.  Endpoints are matched by host and
 * index on it. */

/* Result for one operation and size on the groups of a round. */
struct priced_row {
    enum op op;
    int ranks, groups, slow, fast;
    double bytes;
    double sec;           /* median of the groups */
    double price, lo, hi; /* cost for the group with the median ratio; NAN: unknown to the matrix */
    double ratio;         /* sec / price, median of the groups */
    int worst;            /* index, in the round, of the group with the largest ratio */
    double worst_sec, worst_ratio;
    const struct plan_group *group; /* group `worst` */
    char source[sizeof(((struct cost *)0)->source)];
};

struct priced {
    struct priced_row *row; /* ordered by round and size */
    int rows;
    int slow; /* number of rows with slow groups */
};

/* Compare points of this plan and topology with the matrix.  EXIT_DATA: the matrix lacks a host or
 * device.  Call priced_free() in every case. */
int priced_make(struct priced *p, const struct matrix *m, const char *name, const struct plan *plan,
                const struct point_row *row, int rows, const struct topo *t, struct err *err);
static inline void priced_free(struct priced *p)
{
    free(p->row);
    memset(p, 0, sizeof(*p));
}

#endif
