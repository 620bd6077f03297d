/* watch_judge.h - rules that derive a verdict from the ranks' messages, without sockets or clocks.
 *
 * Times are seconds on the listener's own clock.  A listener that was delayed itself must call
 * judge_excuse(), because it would blame the ranks for its own silence. */
#ifndef RG_WATCH_JUDGE_H
#define RG_WATCH_JUDGE_H

#include <stdbool.h>

#include "base/err.h"
#include "watch/watch_wire.h"

enum verdict_kind {
    VERDICT_NONE,
    VERDICT_DEAD,
    VERDICT_SILENT,
    VERDICT_GPU,
    VERDICT_HUNG,
    VERDICT_STALLED
};

struct watched {
    bool known; /* has said hello */
    bool bye;   /* has said goodbye, or that a signal ends it */
    bool gone;  /* connection is closed */
    bool left;  /* the only process that is still there, long after all goodbyes */
    int pid;
    char host[WATCH_HOST];
    struct watch_beat beat;
    char symptom[WATCH_WORDS];
    double heard, moved; /* times of the last message and of the last progress */
    double late;         /* recent lateness of its beats, s */
    double gone_at, ill_at;
};

struct verdict {
    enum verdict_kind kind;
    int rank;       /* the culprit; -1: none */
    double since;   /* s since the last message (dead, silent) or since any rank moved */
    char text[512]; /* message, including what is kept */
};

struct judge {
    struct watched *rank;
    int ranks; /* 0 before the first hello */
    double hang_after;
    int kept, total;
    char failed[WATCH_LINE]; /* why the campaign failed, by rank 0; "": not told */
    /* time when a rank first reported that a signal ends the campaign; 0: never */
    double stopped_at;
    struct verdict verdict;
};

/* hang_after 0: use the ranks' values, which depend on their transport; the longest counts. */
void judge_open(struct judge *j, double hang_after);
void judge_free(struct judge *j);

/* -1: no such rank, already taken, or of a world of another size. */
int judge_hello(struct judge *j, const struct watch_hello *h, double now);
void judge_line(struct judge *j, int rank, const struct watch_line *l, double now);
void judge_closed(struct judge *j, int rank, double now);
void judge_excuse(struct judge *j, double held_up); /* the listener was delayed for this long */

/* True if there is a verdict, now or earlier.  A verdict never changes. */
bool judge_look(struct judge *j, double now);
/* What the ranks should do about a verdict that may be near, unless a rank moves. */
enum judge_need {
    JUDGE_NOTHING,
    JUDGE_LOOK, /* look at the measuring threads: no rank has moved for long */
    JUDGE_SOON, /* the same, and collect information: a verdict is due in about 2 s */
};
enum judge_need judge_soon(const struct judge *j, double now);
int judge_left(const struct judge *j); /* number of connected ranks */

/* Write verdict.json (src/schema/verdict.schema.json) to the directory `dir`. */
int judge_save(const struct judge *j, const char *dir, double now, struct err *err);

#endif
