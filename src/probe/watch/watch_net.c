/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/watch/watch_net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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

int net_bind(const char *address, char where[WATCH_WHERE], struct err *err)
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

/* A connect() in progress has ended; its errno. */
static int finish_connect(int fd, double sec)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int why = 0;
    socklen_t len = sizeof(why);

    if (poll(&p, 1, (int)(1e3 * sec)) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len);
    return why;
}

int net_connect(const struct watch_where *w, double sec, struct err *err)
{
    struct addrinfo *a;
    int on = 1;

    if (resolve(w->address, w->port, AI_NUMERICHOST | AI_NUMERICSERV, SOCK_STREAM, &a, err) < 0)
        return -1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why = 0;
    if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)
        why = errno;
    if (fd >= 0 && why == EINPROGRESS)
        why = finish_connect(fd, sec);
    freeaddrinfo(a);
    if (!why) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return err_io(err, "no connection to %s:%s: %s", w->address, w->port, strerror(why));
}

int net_address(const char *host, char out[64])
{
    struct addrinfo *a;
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    int rc = -1;

    /* 192.0.2.1 is nobody's (RFC 5737): the route to it is the default route. */
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
