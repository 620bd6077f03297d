/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_ras_impl.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "watch/watch_wire.h"

enum { LINE = 256 };

struct ras_talk {
    int fd;
    double end; /* deadline, as log_now() */
    char *data; /* received and not yet consumed */
    size_t used;
};

/* Wait for an event of the socket until the deadline; false: none came. */
static bool ready(const struct ras_talk *t, short event)
{
    struct pollfd p = {.fd = t->fd, .events = event};
    double left = t->end - log_now();

    return left > 0 && poll(&p, 1, (int)(1e3 * left) + 1) > 0;
}

/* Connect to "host:port" or "[IPv6]:port". */
static int connect_to(const char *address, double end)
{
    const struct addrinfo how = {.ai_socktype = SOCK_STREAM};
    const char *port = strrchr(address, ':');
    struct addrinfo *all;
    int fd = -1, why;

    if (!port || port == address)
        return -1;
    bool bracket = *address == '[' && port[-1] == ']';
    char *host = mem_printf("%.*s", (int)(port - address) - 2 * bracket, address + bracket);
    if (getaddrinfo(host, port + 1, &how, &all) == 0) {
        for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
            fd = wire_open(a, end - log_now(), &why);
        freeaddrinfo(all);
    }
    free(host);
    return fd;
}

/* Returns 1: data received, 0: closed by the server, -1: nothing in time. */
static int take(struct ras_talk *t, size_t max)
{
    ssize_t n = -1;

    while (n < 0) {
        if (!ready(t, POLLIN))
            return -1;
        n = recv(t->fd, t->data + t->used, max - t->used, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return 0;
    }
    t->used += (size_t)n;
    return n > 0;
}

static bool say(struct ras_talk *t, const char *line)
{
    size_t n = strlen(line);

    return ready(t, POLLOUT) && send(t->fd, line, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* True if the next line begins with these words.  The server sends only this line before the next
 * request. */
static bool hear(struct ras_talk *t, const char *words)
{
    while (!memchr(t->data, '\n', t->used))
        if (t->used >= LINE || take(t, LINE) <= 0)
            return false;
    bool good = t->used >= strlen(words) && !strncasecmp(t->data, words, strlen(words));
    t->used = 0;
    return good;
}

/* Remove control characters; show bytes of other scripts as '?'. */
static size_t clean(char *text, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\t')
            c = ' ';
        if (c >= 0x80)
            c = '?';
        if (c == '\n' || (c >= ' ' && c <= '~'))
            text[kept++] = (char)c;
    }
    return kept;
}

static char *report(struct ras_talk *t, const char *address)
{
    int more = 1;

    while (more > 0 && t->used < NCCL_RAS_MAX)
        more = take(t, NCCL_RAS_MAX);
    if (!t->used)
        return NULL;
    size_t n = clean(t->data, t->used);
    return mem_printf("# NCCL RAS at %s\n%.*s%s", address, (int)n, t->data,
                      more > 0   ? "\n# cut: longer than this file may be\n"
                      : more < 0 ? "\n# cut: no more came in time\n"
                                 : "");
}

char *nccl_ras_ask(double sec)
{
    const char *given = getenv("NCCL_RAS_ADDR"),
               *address = given && *given ? given : "localhost:28028";
    struct ras_talk t = {.end = log_now() + sec, .data = mem_calloc(NCCL_RAS_MAX, 1)};
    char *text = NULL;

    t.fd = connect_to(address, t.end);
    if (t.fd >= 0 && say(&t, "CLIENT PROTOCOL 2\n") && hear(&t, "SERVER PROTOCOL ") &&
        say(&t, "TIMEOUT 1\n") && hear(&t, "OK") && say(&t, "VERBOSE STATUS\n"))
        text = report(&t, address);
    if (t.fd >= 0)
        close(t.fd);
    free(t.data);
    return text;
}
