/* watch_wire.h - lines, addresses and sockets of the side channel.
 *
 *   rank      hello TOKEN RANK RANKS PID PATIENCE HOST     first, or the connection is dropped
 *             beat MOVES STEPS STATE EXPECT KEPT TOTAL PULSE CALL WORDS    ten times per second
 *             symptom WORDS
 *             stop       a signal ended the campaign: the end of this rank is not a death
 *             failed WORDS    why the campaign failed, from rank 0, before its bye
 *             bye        this rank is done
 *   listener  welcome    after a valid hello; "welcome led": the campaign ends with the listener
 *             stop       end in good order, as after SIGTERM
 *             look       no rank has moved for long: look at the measuring thread
 *             soon       the same, about 2 s before a verdict
 *             verdict WORDS
 *
 * A line ends with \n and is shorter than WATCH_LINE.  WORDS extend to the end of the line; control
 * characters in them are replaced by '?'. */
#ifndef RG_WATCH_WIRE_H
#define RG_WATCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { WATCH_LINE = 768, WATCH_WORDS = 160, WATCH_HOST = 65, WATCH_TOKEN = 33, WATCH_CALL = 32 };
enum { WATCH_RANKS = 1 << 20 };

enum watch_state {
    WATCH_STARTING, /* no op yet: may take long */
    WATCH_BUSY,     /* in an op or between two */
    WATCH_WAITING,  /* waits for other ranks */
};

/* What a rank's watch thread saw of the measuring thread that does not move (watch_thread.c). */
enum watch_pulse {
    WATCH_UNSEEN,  /* not looked at, or undecided */
    WATCH_LIVE,    /* runs, and not always in the same place */
    WATCH_STOPPED, /* stopped by a debugger or a signal for a second: does not go on by itself */
    WATCH_SPINS,   /* ran in a loop of a few instructions for longer than its step may take */
    WATCH_HELD,    /* in a call of the kernel that does not return: a driver, a file system */
};

struct watch_beat {
    uint64_t moves; /* ops entered and left, steps and waits since the start */
    uint64_t steps; /* steps of this op */
    enum watch_state state;
    double expect; /* allowed time of this step, s */
    int kept, total;
    enum watch_pulse pulse;
    char call[WATCH_CALL]; /* entered call that waits for other ranks; "": none */
    char words[WATCH_WORDS];
};

struct watch_hello {
    char token[WATCH_TOKEN];
    int rank, ranks, pid;
    int patience_ms; /* --hang-after of this rank */
    char host[WATCH_HOST];
};

enum watch_kind { WATCH_HELLO, WATCH_BEAT, WATCH_SYMPTOM, WATCH_FAILED, WATCH_STOP, WATCH_BYE };

struct watch_line {
    enum watch_kind kind;
    struct watch_hello hello;
    struct watch_beat beat; /* its words also hold those of a symptom */
    char failed[WATCH_LINE];
};

/* Parse a line without its \n, from any sender; -1: none of the above. */
int watch_line_parse(struct watch_line *l, const char *text);

/* Write a line with its \n into out[WATCH_LINE].  Return its length. */
int watch_hello_format(char *out, const struct watch_hello *h);
int watch_beat_format(char *out, const struct watch_beat *b);

/* Replace all but printable ASCII by '?', in place. */
void watch_clean(char *words);

/* Split a stream into lines: bytes are appended, complete lines removed from the front. */
struct watch_stream {
    char data[4 * WATCH_LINE];
    size_t used;
};
/* Read once from a nonblocking socket.  Returns 1: data, 0: nothing now, -1: closed. */
int watch_stream_read(struct watch_stream *s, int fd);
/* Returns 1: the next line without its \n; 0: no complete line yet; -1: a line that is too long. */
int watch_stream_line(struct watch_stream *s, char line[WATCH_LINE]);

/* Parse "ADDRESS:PORT:TOKEN" of RAILGAUGE_WATCH; the address may contain colons.  -1: invalid. */
struct watch_where {
    char address[64], port[8], token[WATCH_TOKEN];
};
int watch_where_parse(struct watch_where *w, const char *text);

enum { WATCH_WHERE = 128 }; /* room for "ADDRESS:PORT:TOKEN" */

/* Open a listening socket (nonblocking, close-on-exec) on a free port of this numeric address.
 * where: address, port and a random token (128 bits of getrandom).  -1 with EXIT_CONFIG. */
int wire_bind(const char *address, char where[WATCH_WHERE], struct err *err);

/* Connect to a within `sec`; the socket is nonblocking.  -1 with the errno in *why. */
struct addrinfo;
int wire_open(const struct addrinfo *a, double sec, int *why);
/* Connect within `sec`; the socket is nonblocking afterwards.  -1 with the reason. */
int wire_connect(const struct watch_where *w, double sec, struct err *err);

/* Numeric address of this machine that reaches `host` ("": hosts beyond the default route); -1: no
 * route.  No packet is sent. */
int wire_address(const char *host, char out[64]);

#endif
