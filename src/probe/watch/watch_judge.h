/* watch_judge.h - the rules that make a verdict of what the ranks said, without sockets or clocks.
 *
 * Times are seconds on the listener's own clock; a listener that was held up itself says so with
 * judge_excuse(), or it would blame everybody for its own silence. */
#ifndef RG_WATCH_JUDGE_H
#define RG_WATCH_JUDGE_H

#include <stdbool.h>

#include "base/err.h"
#include "probe/watch/watch_wire.h"

enum verdict_kind {
    VERDICT_NONE,
    VERDICT_DEAD,
    VERDICT_SILENT,
    VERDICT_GPU,
    VERDICT_HUNG,
    VERDICT_STALLED
};

struct watched {
    bool known; /* said hello at some time */
    bool bye;   /* and goodbye, or that a signal ends it */
    bool gone;  /* its connection is closed */
    int pid;
    char host[WATCH_HOST];
    struct watch_beat beat;
    char symptom[WATCH_WORDS];
    double heard, moved; /* when last */
    double late;         /* how much later than due its beats came lately, s */
    double gone_at, ill_at;
};

struct verdict {
    enum verdict_kind kind;
    int rank;       /* the culprit; -1: none */
    double since;   /* s since it was last heard of (dead, silent) or anybody moved */
    char text[512]; /* in words, with what is kept */
};

struct judge {
    struct watched *rank;
    int ranks; /* 0 until the first hello */
    double hang_after;
    int kept, total;
    double stopped_at; /* when a rank first said that a signal ends the campaign; 0: never */
    struct verdict verdict;
};

/* hang_after 0: what the ranks say, who know their transport; the longest counts. */
void judge_open(struct judge *j, double hang_after);
void judge_free(struct judge *j);

/* -1: no such rank, or it is taken, or of a world of another size. */
int judge_hello(struct judge *j, const struct watch_hello *h, double now);
void judge_line(struct judge *j, int rank, const struct watch_line *l, double now);
void judge_closed(struct judge *j, int rank, double now);
void judge_excuse(struct judge *j, double held_up); /* nobody could be heard for so long */

/* Is there a verdict, now or since earlier?  It stays what it is. */
bool judge_look(struct judge *j, double now);
/* Would there be one in about 2 s if nothing moved? */
bool judge_soon(const struct judge *j, double now);
int judge_left(const struct judge *j); /* ranks that are connected */

/* verdict.json (src/schema/verdict.schema.json) into the folder `dir`. */
int judge_save(const struct judge *j, const char *dir, double now, struct err *err);

#endif
