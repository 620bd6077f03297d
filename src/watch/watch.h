/* watch.h - detection of hung and dead ranks: side channel beside MPI, the rank's part.
 *
 * Every rank has a watch thread with a TCP connection to one listener.  Ten times per second the
 * thread sends the current op of its rank and the op counter, the number of changes.  (The counter
 * that stays behind identifies a rank that hangs, where durations would point to its victims.)  The
 * listener is never a rank, so that it outlives each of them: it is `railgauge run`
 * (RAILGAUGE_WATCH=ADDRESS:PORT:TOKEN in the environment of the ranks), or else a process that rank
 * 0 starts (watch_listen.h).  RAILGAUGE_WATCH=off turns the watch off.  Verdicts, the first
 * matching rule applies (watch_judge.h):
 *
 *   connection closed before goodbye           dead      "rank 3 (host n1, pid 812) died in ..."
 *                                                        (all of them at once: no culprit)
 *   no heartbeat for 1.6 s (loaded host: more)  silent    stopped, or its node is gone
 *   a symptom                                  gpu       reported by the rank itself
 *   its measuring thread is stopped for 1.6 s  hung      by a debugger or a signal
 *   no rank moved for hang_after               hung      its measuring thread spins in one place, is
 *                                                        held in the kernel, or waits for no other
 *                                                        rank while the others do, or is behind them
 *   no rank moved for hang_after, all wait     stalled   no culprit
 *   no rank was heard for hang_after           silent    no culprit
 *   its process is there 3 s after all goodbyes hung     and is the only one of the listener's host
 *
 * A verdict is sent to every rank.  Waits that can be given up are given up (watch_verdict()), and
 * ranks that still exist half a second later (in a call that cannot return: at once or 0.2 s later)
 * are ended by their own watch thread with EXIT_CUT.
 * Completed measurements are in the file already (points_commit() after every size).
 *
 * The functions for ranks are for the measuring thread only (the counter has one writer).
 *
 * Example:
 *
 *     watch_start(&world_solo, 60, "campaign");       // collective
 *     for (int round = 0; round < 100; round++) {
 *         watch_enter("round %d", round);             // the same words on all ranks of the round
 *         watch_step();                               // after each message
 *         watch_leave();
 *         if (watch_verdict(err) < 0)
 *             break;                                  // EXIT_CUT: another rank died or hangs
 *     }
 *     watch_stop(NULL);
 *     return 0; */
#ifndef RG_WATCH_H
#define RG_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "watch/world.h"

/* --- rank's side; every call is cheap, and allowed without a watch --- */

/* Start an op.  Ranks that work together must use the same words, and other ranks different ones:
 * the rank that is behind is found among ranks with the same words.  An op inside an op counts as a
 * step of the outer one. */
void watch_enter(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void watch_step(void); /* progress: increments the counter (about 1 ns) */
/* Enter a call that returns only when other ranks have done their part; NULL: left again.  `what`
 * is one word that lasts.  A rank that waits in a call is no culprit for being behind, because the
 * rank it waits for may have passed this step before it hung.  The ends of ops leave it too. */
void watch_call(const char *what);
/* This step may take longer: `work` s in this rank's own loops (copying, touching pages), and
 * `others` s until other ranks and the network have done their part. */
void watch_expect(double work, double others);
double watch_expected(void); /* last sum, for a rank's own tests */
/* The call after which only the goodbye is left: its end depends on the launcher, too. */
#define WATCH_LAST_CALL "MPI_Finalize"
void watch_leave(void);         /* end of an op: this rank is between two ops */
void watch_waiting(bool waits); /* waits for other ranks: not its hang */
/* Report why this rank cannot continue ("GPU 0000:1b:00.0 does not answer").  This becomes the
 * verdict, so call it on the faulty rank, not on ranks that wait for it.  Returns when the verdict
 * is there, after a second at most, so that the caller tells others to give up only afterwards;
 * their points would otherwise fail without need. */
void watch_symptom(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void watch_points(int kept, int total); /* rank 0: points safe in the file */
/* Returns when the listener has the current state of this rank, after a second at most. */
void watch_flush(void);
/* Returns -1 with text and EXIT_CUT if there is a verdict, else 0. */
int watch_verdict(struct err *err);
/* The same for a rank that may have been stopped and continued by the process that ends the
 * campaign: the watch thread gets time to receive the verdict first. */
int watch_verdict_now(struct err *err);
/* Seconds without progress that count as a hang; transports use it to time their own tests. */
double watch_hang_after(void);
/* Register a source of further information on a hang.  `ask` is called once in its own thread, some
 * time before a verdict is due, has 2 s, and returns allocated text or NULL.  The text becomes
 * `file` beside verdict.json, and is removed if the ranks move on.  One rank is enough, rank 0; a
 * verdict never waits for it. */
void watch_report(const char *file, char *(*ask)(double sec));
/* For a signal handler that ends the campaign: from now on the end of this rank is not a death. */
void watch_stopping(void);

/* True if railgauge run asked for the end.  It then knows how the campaign ended, and a launcher
 * would take seconds to end after an exit code other than 0. */
bool watch_asked(void);

/* --- start and end --- */

/* Collective.  Connect this rank to the listener named in the environment, else to one that rank 0
 * starts; verdict.json is then written to `dir` (NULL: not written).  If that fails, rank 0 warns
 * and the ranks continue without a watch.  A world of one rank has no watch. */
void watch_start(struct world *w, double hang_after, const char *dir);
/* Say goodbye; allowed if nothing was started.  why: reason of a failure, for the last line of
 * railgauge run, or NULL. */
void watch_stop(const char *why);

#endif
