/* late.h - who keeps a job waiting: the ranks that come last to its collectives.
 *
 * In a call c of communicator C, with start(p) on the common clock (record_clock.h) and
 *
 *   W(p)    what p has waited for others since the call of C before this one, in other communicators
 *   own(p)  the lesser of start(p) - median of all starts,
 *                     and (start(p) - W(p)) - median of all (start - W)
 *
 * so that a rank which is late because it had to wait for another one is not blamed for it.  The
 * duration says nothing: the last one to come has the shortest.
 *
 *   usual      the 95 % interval of the median of own(p) lies above the median of all members' by
 *              LATE_SIGMAS of their spread, half of the spread inside a call, thrice the clocks'
 *              uncertainty and LATE_LEAST; or as below in LATE_USUAL_SHARE of the calls
 *   sometimes  own(p) is beyond LATE_FAR times the spread in a call in more calls than the others have
 *              such by LATE_SIGMAS of a Poisson's deviation, in LATE_CALLS at least
 *   lost       what the calls would have begun earlier by without it: the last start less the last
 *              one of other processes (of a host: of other hosts), own(p) at most; of the axis that lost most
 *
 * Of a rank three partners and more are needed, and a share LATE_SHARE of the recorded time must be lost, LATE_SHARE_SOMETIMES where it is not usual. */
#ifndef RG_LATE_H
#define RG_LATE_H

#include "probe/import/record_job.h"

enum { LATE_SIGMAS = 5, LATE_FAR = 10, LATE_CALLS = 5, LATE_PARTNERS = 3 };
#define LATE_LEAST 20e-6 /* s: ends of one collective differ by so much between ranks */
#define LATE_SHARE 1e-3
#define LATE_SHARE_SOMETIMES 5e-3
#define LATE_USUAL_SHARE 0.25

enum late_kind { LATE_NOT, LATE_SOMETIMES, LATE_USUAL };
extern const char *const late_kind_name[];

struct late_part {
    enum late_kind kind;
    int process;           /* the first of a host */
    bool host;             /* all processes of its host are */
    int axis;              /* where it lost most */
    bool only;             /* it is late nowhere else, though it is in other axes that could tell */
    int calls, last;       /* of that axis' communicator; in which it came last */
    int often;             /* in which it was late beyond the spread */
    double behind, lo, hi; /* s: median of own() in those, or in all where they are most; its 95 %
                              interval */
    double lost, share;    /* s; of the recorded time */
    int partners;
};

struct late {
    struct late_part *part; /* what costs most first */
    int parts;
    double waited;  /* s: mean over processes of the time between own start and last start */
    double seconds; /* that were recorded */
    int judged;     /* processes that had partners enough */
};

/* After record_clock_align().  late_free() when done. */
void late_find(struct late *l, const struct record_job *j);
void late_free(struct late *l);
/* "rank 5 on n01 (device 5)", "host n03"; the caller frees. */
char *late_name(const struct late_part *p, const struct record_job *j);

#endif
