/* watch_wire.h - the side channel: its lines, addresses and sockets.
 *
 *   rank      hello TOKEN RANK RANKS PID PATIENCE HOST     first, or the connection is dropped
 *             beat MOVES STEPS STATE EXPECT KEPT TOTAL WORDS     ten times a second
 *             symptom WORDS
 *             stop       a signal ended the campaign: what follows is no death
 *             bye        this rank is done
 *   listener  welcome    after a good hello; "welcome led": and when I am gone, so is the campaign
 *             stop       end in good order, as after SIGTERM
 *             soon       nobody has moved for long: to rank 0, about 2 s before a verdict
 *             verdict WORDS
 *
 * A line ends with \n and is shorter than WATCH_LINE.  WORDS go to the end of the line; control
 * characters in them are shown as '?'. */
#ifndef RG_WATCH_WIRE_H
#define RG_WATCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { WATCH_LINE = 768, WATCH_WORDS = 160, WATCH_HOST = 65, WATCH_TOKEN = 33 };
enum { WATCH_RANKS = 1 << 20 };

enum watch_state {
    WATCH_STARTING, /* no op yet: it may take its time */
    WATCH_BUSY,     /* in an op or between two */
    WATCH_WAITING,  /* for other ranks */
};

struct watch_beat {
    uint64_t moves; /* ops entered and left, steps and waits since the start */
    uint64_t steps; /* of this op */
    enum watch_state state;
    double expect; /* s */
    int kept, total;
    char words[WATCH_WORDS];
};

struct watch_hello {
    char token[WATCH_TOKEN];
    int rank, ranks, pid;
    int patience_ms; /* --hang-after as this rank has it */
    char host[WATCH_HOST];
};

enum watch_kind { WATCH_HELLO, WATCH_BEAT, WATCH_SYMPTOM, WATCH_STOP, WATCH_BYE };

struct watch_line {
    enum watch_kind kind;
    struct watch_hello hello;
    struct watch_beat beat; /* its words hold those of a symptom too */
};

/* One line without its \n, from anybody; -1 when it is none of the above. */
int watch_line_parse(struct watch_line *l, const char *text);

/* Both write a whole line with its \n into out[WATCH_LINE] and return its length. */
int watch_hello_format(char *out, const struct watch_hello *h);
int watch_beat_format(char *out, const struct watch_beat *b);

/* What is no printable ASCII becomes '?', in place. */
void watch_clean(char *words);

/* Lines out of a stream: bytes are appended, whole lines taken from the front. */
struct watch_stream {
    char data[4 * WATCH_LINE];
    size_t used;
};
/* Read once from a socket that does not block.  1: something came, 0: nothing now, -1: closed. */
int watch_stream_read(struct watch_stream *s, int fd);
/* 1: the next line without its \n; 0: none is whole yet; -1: a line that is too long. */
int watch_stream_line(struct watch_stream *s, char line[WATCH_LINE]);

/* "ADDRESS:PORT:TOKEN" of RAILGAUGE_WATCH; the address may hold colons.  -1 when it is not that. */
struct watch_where {
    char address[64], port[8], token[WATCH_TOKEN];
};
int watch_where_parse(struct watch_where *w, const char *text);

enum { WATCH_WHERE = 128 }; /* room for "ADDRESS:PORT:TOKEN" */

/* A listening socket (not blocking, closed on exec) on a free port of this numeric address, and
 * where it is, with a token that nobody can guess (128 bits of getrandom).  -1 with EXIT_CONFIG. */
int wire_bind(const char *address, char where[WATCH_WHERE], struct err *err);

/* A connection to a within `sec`, not blocking; -1 with its errno. */
struct addrinfo;
int wire_open(const struct addrinfo *a, double sec, int *why);
/* A connection there within `sec`, not blocking from then on; -1 with the reason. */
int wire_connect(const struct watch_where *w, double sec, struct err *err);

/* The address of this machine that reaches `host` ("": whatever lies beyond the default route), as
 * a number; -1 when there is no way. No packet is sent. */
int wire_address(const char *host, char out[64]);

#endif
