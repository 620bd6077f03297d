/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/watch_wire.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

void watch_clean(char *words)
{
    for (char *c = words; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* Copy the next word up to a blank to out[size]; false: none, or too long. */
static bool take_word(const char **at, char *out, size_t size)
{
    size_t len = strcspn(*at, " ");

    if (!len || len >= size)
        return false;
    memcpy(out, *at, len);
    out[len] = '\0';
    watch_clean(out);
    *at += len + ((*at)[len] == ' ');
    return true;
}

static bool take_u64(const char **at, uint64_t max, uint64_t *out)
{
    char word[24], *end;

    if (!take_word(at, word, sizeof(word)) || !isdigit((unsigned char)*word))
        return false;
    errno = 0;
    unsigned long long v = strtoull(word, &end, 10);
    *out = v;
    return !*end && !errno && v <= max;
}

static bool take_int(const char **at, int max, int *out)
{
    uint64_t v;

    if (!take_u64(at, (uint64_t)max, &v))
        return false;
    *out = (int)v;
    return true;
}

static bool parse_hello(struct watch_hello *h, const char *at)
{
    return take_word(&at, h->token, sizeof(h->token)) && take_int(&at, WATCH_RANKS - 1, &h->rank) &&
           take_int(&at, WATCH_RANKS, &h->ranks) && take_int(&at, INT_MAX, &h->pid) &&
           take_int(&at, INT_MAX, &h->patience_ms) && take_word(&at, h->host, sizeof(h->host)) &&
           !*at && h->rank < h->ranks;
}

static void take_rest(const char *at, char words[WATCH_WORDS])
{
    snprintf(words, WATCH_WORDS, "%s", at);
    watch_clean(words);
}

static bool parse_beat(struct watch_beat *b, const char *at)
{
    uint64_t state, ms, pulse;

    if (!take_u64(&at, UINT64_MAX, &b->moves) || !take_u64(&at, UINT64_MAX, &b->steps) ||
        !take_u64(&at, WATCH_WAITING, &state) || !take_u64(&at, 1u << 31, &ms) ||
        !take_int(&at, INT_MAX, &b->kept) || !take_int(&at, INT_MAX, &b->total) ||
        !take_u64(&at, WATCH_HELD, &pulse) || !take_word(&at, b->call, sizeof(b->call)))
        return false;
    b->state = (enum watch_state)state;
    b->pulse = (enum watch_pulse)pulse;
    if (!strcmp(b->call, "-"))
        b->call[0] = '\0';
    b->expect = 1e-3 * (double)ms;
    take_rest(at, b->words);
    return true;
}

int watch_line_parse(struct watch_line *l, const char *text)
{
    memset(l, 0, sizeof(*l));
    if (!strncmp(text, "beat ", 5)) {
        l->kind = WATCH_BEAT;
        return parse_beat(&l->beat, text + 5) ? 0 : -1;
    }
    if (!strncmp(text, "hello ", 6)) {
        l->kind = WATCH_HELLO;
        return parse_hello(&l->hello, text + 6) ? 0 : -1;
    }
    if (!strncmp(text, "symptom ", 8)) {
        l->kind = WATCH_SYMPTOM;
        take_rest(text + 8, l->beat.words);
        return 0;
    }
    if (!strncmp(text, "failed ", 7)) {
        l->kind = WATCH_FAILED;
        snprintf(l->failed, sizeof(l->failed), "%s", text + 7);
        watch_clean(l->failed);
        return 0;
    }
    l->kind = !strcmp(text, "stop") ? WATCH_STOP : WATCH_BYE;
    return l->kind == WATCH_STOP || !strcmp(text, "bye") ? 0 : -1;
}

int watch_hello_format(char *out, const struct watch_hello *h)
{
    return snprintf(out, WATCH_LINE, "hello %s %d %d %d %d %s\n", h->token, h->rank, h->ranks,
                    h->pid, h->patience_ms, h->host);
}

int watch_beat_format(char *out, const struct watch_beat *b)
{
    double expect = fmin(fmax(b->expect, 0), 1e6);

    return snprintf(out, WATCH_LINE, "beat %llu %llu %d %.0f %d %d %d %s %s\n",
                    (unsigned long long)b->moves, (unsigned long long)b->steps, (int)b->state,
                    1e3 * expect, b->kept, b->total, (int)b->pulse, b->call[0] ? b->call : "-",
                    b->words);
}

int watch_stream_read(struct watch_stream *s, int fd)
{
    if (s->used == sizeof(s->data))
        return 1; /* remove lines first */
    ssize_t n = recv(fd, s->data + s->used, sizeof(s->data) - s->used, MSG_DONTWAIT);
    if (n > 0)
        s->used += (size_t)n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    return n > 0 ? 1 : -1;
}

int watch_stream_line(struct watch_stream *s, char line[WATCH_LINE])
{
    char *end = memchr(s->data, '\n', s->used);
    size_t len = end ? (size_t)(end - s->data) : s->used;

    if (len >= WATCH_LINE)
        return -1;
    if (!end)
        return 0;
    memcpy(line, s->data, len);
    line[len] = '\0';
    s->used -= len + 1;
    memmove(s->data, end + 1, s->used);
    return 1;
}

int watch_where_parse(struct watch_where *w, const char *text)
{
    const char *token = strrchr(text, ':'), *port = token;

    while (port > text && *--port != ':')
        ;
    if (!token || token - port < 2 || *port != ':' || port == text ||
        (size_t)(port - text) >= sizeof(w->address) || (size_t)(token - port) > sizeof(w->port) ||
        strlen(token + 1) >= sizeof(w->token) || !token[1] ||
        strspn(port + 1, "0123456789") != (size_t)(token - port - 1))
        return -1;
    snprintf(w->address, sizeof(w->address), "%.*s", (int)(port - text), text);
    snprintf(w->port, sizeof(w->port), "%.*s", (int)(token - port - 1), port + 1);
    snprintf(w->token, sizeof(w->token), "%s", token + 1);
    return 0;
}

static int resolve(const char *address, const char *port, int flags, int type,
                   struct addrinfo **out, struct err *err)
{
    struct addrinfo hints = {.ai_flags = flags, .ai_socktype = type};
    int why = getaddrinfo(address, port, &hints, out);

    return why ? err_config(err, "address \"%s\": %s", address, gai_strerror(why)) : 0;
}

static int make_where(int fd, char where[WATCH_WHERE], struct err *err)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    char address[64], port[8];
    unsigned char secret[(WATCH_TOKEN - 1) / 2];

    if (getsockname(fd, (struct sockaddr *)&own, &len) < 0 ||
        getnameinfo((struct sockaddr *)&own, len, address, sizeof(address), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) ||
        getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return err_config(err, "cannot name the socket of the watch: %s", strerror(errno));
    int n = snprintf(where, WATCH_WHERE, "%s:%s:", address, port);
    for (size_t i = 0; i < sizeof(secret); i++)
        n += snprintf(where + n, (size_t)(WATCH_WHERE - n), "%02x", secret[i]);
    return 0;
}

int wire_bind(const char *address, char where[WATCH_WHERE], struct err *err)
{
    struct addrinfo *a;

    if (resolve(address, "0", AI_NUMERICHOST | AI_PASSIVE, SOCK_STREAM, &a, err) < 0)
        return -1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
        err_config(err, "cannot listen on %s: %s", address, strerror(errno));
    else if (make_where(fd, where, err) == 0) {
        freeaddrinfo(a);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    freeaddrinfo(a);
    return -1;
}

/* Wait until a connect() in progress has ended.  Returns its errno. */
static int finish_connect(int fd, double sec)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int why = 0;
    socklen_t len = sizeof(why);

    if (poll(&p, 1, sec > 0 ? (int)(1e3 * sec) + 1 : 0) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len);
    return why;
}

int wire_open(const struct addrinfo *a, double sec, int *why)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *why = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0 ? errno : 0;
    if (fd >= 0 && *why == EINPROGRESS)
        *why = finish_connect(fd, sec);
    if (fd >= 0 && *why)
        close(fd);
    return *why ? -1 : fd;
}

int wire_connect(const struct watch_where *w, double sec, struct err *err)
{
    struct addrinfo *a;
    int on = 1, why;

    if (resolve(w->address, w->port, AI_NUMERICHOST | AI_NUMERICSERV, SOCK_STREAM, &a, err) < 0)
        return -1;
    int fd = wire_open(a, sec, &why);
    freeaddrinfo(a);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
    }
    return err_io(err, "no connection to %s:%s: %s", w->address, w->port, strerror(why));
}

int wire_address(const char *host, char out[64])
{
    struct addrinfo *a;
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    int rc = -1;

    /* 192.0.2.1 is unassigned (RFC 5737), so the route to it is the default route. */
    if (resolve(*host ? host : "192.0.2.1", "9", 0, SOCK_DGRAM, &a, NULL) < 0)
        return -1;
    int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
        getnameinfo((struct sockaddr *)&own, len, out, 64, NULL, 0, NI_NUMERICHOST) == 0)
        rc = 0;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(a);
    return rc;
}
