/* SPDX-License-Identifier: BSD-3-Clause */
/* One process plays NCCL's RAS thread, well behaved and not; the client keeps its time and size. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "test.h"
#include "transport/nccl/nccl_ras_impl.h"

/* What the server does; the words that it heard. */
static struct {
    const char *greeting;
    const char *status;
    int times;   /* the status is sent so often */
    bool silent; /* and then the connection stays open */
    int fd, port;
    char heard[256];
    pthread_t thread;
} ras;

static bool hear(int fd)
{
    char line[64];
    ssize_t n = recv(fd, line, sizeof(line) - 1, 0);

    if (n <= 0)
        return false;
    line[n] = '\0';
    snprintf(ras.heard + strlen(ras.heard), sizeof(ras.heard) - strlen(ras.heard), "%s", line);
    return true;
}

static void put(int fd, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = send(fd, text + strlen(text) - left, left, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        left -= (size_t)n;
    }
}

static void *serve(void *unused)
{
    int fd = accept(ras.fd, NULL, NULL);

    (void)unused;
    if (hear(fd)) {
        put(fd, ras.greeting);
        if (hear(fd)) {
            put(fd, "OK\n");
            hear(fd);
            for (int i = 0; i < ras.times; i++)
                put(fd, ras.status);
            if (ras.silent)
                hear(fd); /* until the client gives up */
        }
    }
    close(fd);
    return NULL;
}

/* Of the client: when it is to be seen that it gives up; and when it is not, so that a busy machine
 * does not make it. */
enum { SHORT = 2, LONG = 60 };

/* The client against such a server; how long it took. */
static char *asked(const char *greeting, const char *status, int times, bool silent,
                   double patience, double *took)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    char where[32];

    ras.greeting = greeting;
    ras.status = status;
    ras.times = times;
    ras.silent = silent;
    ras.heard[0] = '\0';
    ras.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(ras.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(ras.fd, 1), 0);
    assert_int_equal(getsockname(ras.fd, (struct sockaddr *)&a, &len), 0);
    snprintf(where, sizeof(where), "127.0.0.1:%d", ntohs(a.sin_port));
    setenv("NCCL_RAS_ADDR", where, 1);
    assert_int_equal(pthread_create(&ras.thread, NULL, serve, NULL), 0);
    double from = log_now();
    char *text = nccl_ras_ask(patience);
    *took = log_now() - from;
    pthread_join(ras.thread, NULL);
    close(ras.fd);
    return text;
}

TEST(a_report_is_kept)
{
    double took;
    char want[256];
    char *text = asked("SERVER PROTOCOL 2\n", "Job summary\n\x1b[31m8 ranks\x07\tred\r\n\xc3\xa4\n",
                       1, false, LONG, &took);

    snprintf(want, sizeof(want), "# NCCL RAS at %s\nJob summary\n[31m8 ranks red\n??\n",
             getenv("NCCL_RAS_ADDR"));
    assert_non_null(text);
    assert_string_equal(text, want);
    assert_string_equal(ras.heard, "CLIENT PROTOCOL 2\nTIMEOUT 1\nVERBOSE STATUS\n");
    free(text);
}

TEST(a_report_that_does_not_end)
{
    double took;
    char *text = asked("SERVER PROTOCOL 3\n", "part of it", 1, true, SHORT, &took);

    assert_non_null(text);
    assert_non_null(strstr(text, "\npart of it\n# cut: no more came in time\n"));
    assert_true(took > 0.95 * SHORT && took < 5);
    free(text);
}

TEST(a_report_without_bound)
{
    static char block[(1 << 16) + 1];
    double took;

    memset(block, 'x', sizeof(block) - 1);
    char *text = asked("SERVER PROTOCOL 2\n", block, 1 << 5, false, LONG, &took);
    assert_non_null(text);
    assert_true(strlen(text) > NCCL_RAS_MAX && strlen(text) < NCCL_RAS_MAX + 128);
    assert_non_null(strstr(text, "\n# cut: longer than this file may be\n"));
    free(text);
}

TEST(others_are_left_alone)
{
    double took;

    assert_null(asked("220 mail.example ready\n", "", 0, false, LONG, &took));
    assert_string_equal(ras.heard, "CLIENT PROTOCOL 2\n");
    assert_null(asked("", "", 0, true, SHORT, &took)); /* says nothing */
    assert_true(took < 5);
    assert_null(asked("SERVER PROTOCOL 2\n", "", 0, false, LONG, &took)); /* an empty report */
}

TEST(nobody_is_there)
{
    static const char *const where[] = {"127.0.0.1:1", "[::1]:1", "nowhere",
                                        ":1",          "[]:1",    "127.0.0.1:no-port"};

    for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++) {
        setenv("NCCL_RAS_ADDR", where[i], 1);
        assert_null(nccl_ras_ask(0.2));
    }
}
