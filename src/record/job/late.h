/* late.h - find the ranks and hosts that keep a job waiting because they enter its collectives
 * last.
 *
 * Call c of communicator C, start(p) on the common clock (record_clock.h):
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
#ifndef RG_LATE_H
#define RG_LATE_H

#include "record/record_job.h"
#include <stdlib.h>
#include <string.h>

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

#endif
