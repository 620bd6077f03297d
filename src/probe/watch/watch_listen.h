/* watch_listen.h - the listener of the side channel: sockets around the rules of watch_judge.h.
 *
 * It binds to one address, drops whoever does not say hello with the token of this run within some
 * seconds, and reads lines of bounded length only. */
#ifndef RG_WATCH_LISTEN_H
#define RG_WATCH_LISTEN_H

#include "base/err.h"
#include "probe/watch/watch_judge.h"

struct listener;

/* On a free port of `address` (a number, IPv4 or IPv6).  `dir`: where verdict.json goes, NULL:
 * nowhere; one that is there is removed. */
int listen_open(struct listener **l, const char *address, double hang_after, const char *dir,
                struct err *err);
void listen_close(struct listener *l); /* NULL is fine */

/* "ADDRESS:PORT:TOKEN", what RAILGAUGE_WATCH is for the ranks. */
const char *listen_where(const struct listener *l);

/* Hear what there is for at most `ms`, judge, and tell everybody when there is a verdict (once;
 * verdict.json is written then).  Returns the number of ranks that are connected. */
int listen_turn(struct listener *l, int ms);
/* NULL as long as there is none. */
const struct verdict *listen_verdict(const struct listener *l);
bool listen_met(const struct listener *l);  /* did any rank ever say hello? */
bool listen_over(const struct listener *l); /* have all come, said goodbye and gone? */

/* Ask the ranks to end in good order; those that come later are not asked. */
void listen_stop(struct listener *l);
/* SIGKILL to the ranks that are still there on this host, those that said goodbye too. */
void listen_kill(const struct listener *l);

/* The address to bind to when nobody says: loopback when every host is this one, else the address
 * that reaches the first that is another; `hosts` 0: they are unknown, the default route. */
void listen_address(char *const *host, int hosts, char out[64]);

/* --- a listener in a process of its own, for ranks that nobody watches --- */

/* Start `railgauge-probe watch HANG_AFTER [DIR]` on a socket that is bound here to `address` (NULL:
 * chosen by the hosts of all ranks).  It leaves the process group, so that what ends rank 0 does
 * not end it, says its verdict on stderr, and ends when all ranks have gone.  No fork(): the
 * memory of an MPI program may be registered with devices. */
int listen_spawn(const char *address, char *const *hosts, int n, double hang_after, const char *dir,
                 char where[WATCH_WHERE], struct err *err);

/* That program, before MPI_Init: argv is {"watch", HANG_AFTER[, DIR]}.  Returns its exit code. */
int listen_main(int argc, char **argv);

#endif
