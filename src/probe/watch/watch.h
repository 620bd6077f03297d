/* watch.h - who hangs, who died: the side channel beside MPI, a rank's side of it.
 *
 * Every rank has a watch thread with a TCP connection to one listener.  Ten times a second it sends
 * what its rank is doing and how often that changed (the op counter: the one that stays behind
 * names a rank that hangs, where durations name its victims).  The listener is never a rank, so
 * that it outlives each of them: it is `railgauge run` (RAILGAUGE_WATCH=ADDRESS:PORT:TOKEN in the
 * environment of the ranks), or else a process of its own that rank 0 starts (watch_listen.h).
 * RAILGAUGE_WATCH=off: nobody watches.  Verdicts, first match rules (watch_judge.h):
 *
 *   connection closed before goodbye           dead      "rank 3 (host n1, pid 812) died in ..."
 *   no heartbeat for 1.6 s (loaded host: more)  silent    stopped, or its node is gone
 *   a symptom                                  gpu       told by the rank itself
 *   nobody moved for hang_after and one rank is behind the others              hung
 *   nobody moved for hang_after, no one behind stalled   no culprit
 *
 * A verdict goes to every rank: waits that can be given up are given up (watch_verdict()), and
 * ranks that are still there half a second later are ended by their own watch thread with EXIT_CUT.
 * What was measured is in the file already (points_commit() after every size).
 *
 * The calls of a rank's side are for its measuring thread alone (the counter has one writer). */
#ifndef RG_WATCH_H
#define RG_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "probe/world.h"

/* --- a rank's side; every call is cheap and allowed when nothing watches --- */

/* A new op begins.  Ranks that work together say the same words and nobody else does: who is behind
 * is found among them.  An op inside an op counts as a step of the outer one. */
void watch_enter(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void watch_step(void);          /* it moved: the counter goes up by one (about 1 ns) */
void watch_expect(double sec);  /* one step of this op may rightly take this much longer */
double watch_expected(void);    /* what was said last, for tests of the rank's own */
void watch_leave(void);         /* done with it: this rank is between two ops */
void watch_waiting(bool waits); /* ... and waits for other ranks: nobody's hang */
/* A word on why this rank cannot go on ("GPU 0000:1b:00.0 does not answer"): it becomes the
 * verdict, so it is for the rank that is ill, not for those that wait for it.  Returns when the
 * verdict is there, a second later at most: before the caller tells others to give up, whose points
 * would fail without need. */
void watch_symptom(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void watch_points(int kept, int total); /* rank 0: what is safe in the file */
/* Returns when the listener was sent what this rank does now, a second later at most. */
void watch_flush(void);
/* Was a verdict told?  Then -1 with its text and EXIT_CUT, else 0. */
int watch_verdict(struct err *err);
/* The same for a rank that may have been stopped and woken again, by whoever ends the campaign: the
 * watch thread is given time to hear of that first. */
int watch_verdict_now(struct err *err);
/* After this long without movement something hangs; transports ask it to time their own tests. */
double watch_hang_after(void);
/* What else is to be known of a hang: `ask` is called once in a thread of its own, some time before
 * there would be a verdict, has 2 s, and returns text that it allocated, or NULL.  That becomes
 * `file` beside verdict.json; when the ranks move on after all it is removed. One rank is enough,
 * rank 0, and a verdict never waits for it. */
void watch_report(const char *file, char *(*ask)(double sec));
/* In a signal handler that ends the campaign: an end of this rank is no death from here on. */
void watch_stopping(void);

/* Did railgauge run ask for the end?  It knows then how the campaign ended, and a launcher takes
 * seconds to end after any exit code but 0. */
bool watch_asked(void);

/* --- start and end --- */

/* Collective.  Connects this rank to the listener that the environment names, else to one that rank
 * 0 starts; verdict.json then goes into `dir` (NULL: it is not written).  What fails here is warned
 * about by rank 0, and the ranks go on unwatched; a world of one rank has no watch. */
void watch_start(struct world *w, double hang_after, const char *dir);
void watch_stop(void); /* says goodbye; harmless when nothing was started */

#endif
