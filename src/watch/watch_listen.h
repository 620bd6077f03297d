/* watch_listen.h - listener of the side channel: sockets around the rules of watch_judge.h.
 *
 * It binds to one address, drops connections that do not say hello with the token of this run
 * within some seconds, and reads only lines of bounded length. */
#ifndef RG_WATCH_LISTEN_H
#define RG_WATCH_LISTEN_H

#include "base/err.h"
#include "watch/watch_judge.h"

struct listener;

/* Listen on a free port of `address` (a number, IPv4 or IPv6).  `dir`: directory of verdict.json,
 * NULL: not written; an existing one is removed. */
int listen_open(struct listener **l, const char *address, double hang_after, const char *dir,
                struct err *err);
void listen_close(struct listener *l); /* NULL is allowed */

/* "ADDRESS:PORT:TOKEN", the value of RAILGAUGE_WATCH for the ranks. */
const char *listen_where(const struct listener *l);

/* Receive for at most `ms`, judge, and send a verdict to all ranks if there is one (once;
 * verdict.json is written then).  Returns the number of connected ranks. */
int listen_turn(struct listener *l, int ms);
/* NULL while there is no verdict. */
const struct verdict *listen_verdict(const struct listener *l);
/* Why the campaign failed, as rank 0 said before its end; "": not said. */
const char *listen_failed(const struct listener *l);
bool listen_met(const struct listener *l); /* true if any rank said hello */
/* True if all have come, said goodbye and gone; `ending`: or wait in their last call. */
bool listen_over(const struct listener *l, bool ending);

/* Ask the ranks to end in good order; ranks that connect later are not asked. */
void listen_stop(struct listener *l);
/* Send SIGKILL to ranks that still exist on this host, also those that said goodbye. */
void listen_kill(const struct listener *l);

/* Default address to bind to: loopback if every host is this one, else the address that reaches the
 * first other host.  `hosts` 0: hosts are unknown, use the default route. */
void listen_address(char *const *host, int hosts, char out[64]);

/* --- a listener in its own process, for ranks without `railgauge run` --- */

/* Start `railgauge-probe watch HANG_AFTER [DIR]` on a socket that is bound here to `address` (NULL:
 * chosen by the hosts of all ranks).  The listener leaves the process group, so that a signal to
 * rank 0 does not end it, prints its verdict on stderr, and ends when all ranks have gone.  fork()
 * is not used, because the memory of an MPI program may be registered with devices. */
int listen_spawn(const char *address, char *const *hosts, int n, double hang_after, const char *dir,
                 char where[WATCH_WHERE], struct err *err);

/* Main function of that program, called before MPI_Init: argv is {"watch", HANG_AFTER[, DIR]}.
 * Returns its exit code. */
int listen_main(int argc, char **argv);

#endif
