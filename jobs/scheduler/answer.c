/* SPDX-License-Identifier: BSD-3-Clause */
/* answer.c - prices of node lists over a Unix socket: an example of librailgauge in a scheduler.
 *
 *     cc -O2 -o answer answer.c $(pkg-config --cflags --libs railgauge jansson)
 *     ./answer last/matrix.json /run/scheduler/railgauge.sock
 *
 * A request is a line of JSON, and so is its answer.  A connection may send many.
 *
 *     {"job": "all_gather 64M x 12", "lists": [["n01", "n02"], ["n01", "n07"]]}
 *     {"seconds": [0.031, 0.094], "order": [0, 1]}          cheapest first; null: no price, with "why"
 *     {"job": "model=llama3.1-8b layout=dp=auto", "free": ["n01", ...], "need": 4}
 *     {"hosts": ["n03", ...], "seconds": 1.9, "exact": true}
 *     {"error": "..."}
 *
 * The matrix is opened again when its file changes; if the new one is damaged, the old one answers on.  The
 * socket is for its owner alone (0600); a scheduler that runs as another user gets a group. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>
#include <railgauge.h>

enum { CLIENTS = 64, LINE_MAX_BYTES = 16 << 20 };

struct client {
    char *text; /* what has come of a line */
    size_t length, room;
};

static struct railgauge *matrix;
static const char *path;

static json_t *failed(const char *why)
{
    return json_pack("{s:s}", "error", why);
}

/* Open the matrix again if its file has changed. */
static void reload(void)
{
    char err[256];
    struct railgauge *next;

    if (!railgauge_changed(matrix))
        return;
    if (railgauge_open(&next, path, err) < 0) {
        fprintf(stderr, "answer: %s (the one before is used)\n", err);
        return;
    }
    railgauge_close(matrix);
    matrix = next;
}

/* Append the numbers of named hosts.  Returns how many, or -1 with the name that is not known. */
static int hosts_of(const json_t *names, int *hosts, const char **unknown)
{
    size_t i;
    json_t *name;

    json_array_foreach(names, i, name)
    {
        *unknown = json_string_value(name) ? json_string_value(name) : "(not a string)";
        hosts[i] = railgauge_host_find(matrix, *unknown);
        if (hosts[i] < 0)
            return -1;
    }
    return (int)json_array_size(names);
}

static json_t *seconds_json(double seconds)
{
    return isfinite(seconds) ? json_real(seconds) : json_null();
}

static json_t *rank_lists(const struct railgauge_job *job, const json_t *lists)
{
    size_t n = json_array_size(lists), total = 0, i;
    char err[256] = "";
    const char *unknown = NULL;
    json_t *list, *out = json_object(), *times = json_array(), *order = json_array();

    json_array_foreach(lists, i, list) total += json_array_size(list);
    int *hosts = calloc(total + 1, sizeof(*hosts)), *cheapest = calloc(n + 1, sizeof(*cheapest));
    size_t *start = calloc(n + 1, sizeof(*start));
    double *seconds = calloc(n + 1, sizeof(*seconds));
    int bad = !hosts || !cheapest || !start || !seconds ? -1 : 0;

    for (i = 0; bad == 0 && i < n; i++) {
        int count = hosts_of(json_array_get(lists, i), hosts + start[i], &unknown);
        bad = count < 0 ? -1 : 0;
        start[i + 1] = start[i] + (size_t)(count < 0 ? 0 : count);
    }
    if (bad < 0) {
        json_object_set_new(out, "error",
                            unknown ? json_sprintf("%s: no such host", unknown)
                                    : json_string("no memory"));
    } else {
        int priced = railgauge_rank(job, hosts, start, (int)n, seconds, cheapest, err);
        for (i = 0; i < n; i++) {
            json_array_append_new(times, seconds_json(seconds[i]));
            json_array_append_new(order, json_integer(cheapest[i]));
        }
        json_object_set(out, "seconds", times);
        json_object_set(out, "order", order);
        if (priced < (int)n)
            json_object_set_new(out, "why", json_string(err));
    }
    json_decref(times);
    json_decref(order);
    free(hosts);
    free(cheapest);
    free(start);
    free(seconds);
    return out;
}

static json_t *best_hosts(const struct railgauge_job *job, const json_t *names, int need)
{
    int n = (int)json_array_size(names), exact = 0;
    const char *unknown = NULL;
    char err[256] = "";
    double seconds = NAN;
    json_t *out = NULL, *chosen;
    int *hosts = calloc((size_t)n + 1, sizeof(*hosts)),
        *best = calloc((size_t)(need > 0 ? need : 0) + 1, sizeof(*best));

    if (!hosts || !best)
        out = failed("no memory");
    else if (need < 1 || need > n)
        out = failed("\"need\" is not a number from 1 to the free hosts");
    else if (hosts_of(names, hosts, &unknown) < 0)
        out = json_pack("{s:o}", "error", json_sprintf("%s: no such host", unknown));
    else if (railgauge_nodes_best(job, hosts, n, need, 1, best, &seconds, &exact, err) < 1)
        out = failed(err);
    if (!out) {
        chosen = json_array();
        for (int i = 0; i < need; i++)
            json_array_append_new(chosen, json_string(railgauge_host_name(matrix, best[i])));
        out = json_pack("{s:o, s:o, s:b}", "hosts", chosen, "seconds", seconds_json(seconds),
                        "exact", exact);
    }
    free(hosts);
    free(best);
    return out;
}

static json_t *answer(const char *line)
{
    json_error_t at;
    char err[256];
    struct railgauge_job *job;
    json_t *asked = json_loads(line, JSON_REJECT_DUPLICATES, &at), *lists, *out;
    const char *text = json_string_value(json_object_get(asked, "job"));
    json_t *names = json_object_get(asked, "free");

    if (!asked)
        return failed(at.text);
    lists = json_object_get(asked, "lists");
    if (!text || (!json_is_array(lists) && !json_is_array(names)))
        out = failed("a request has \"job\", and \"lists\" or \"free\" and \"need\"");
    else if (railgauge_job_open(&job, matrix, text, err) < 0)
        out = failed(err);
    else {
        out = json_is_array(lists)
                  ? rank_lists(job, lists)
                  : best_hosts(job, names, (int)json_integer_value(json_object_get(asked, "need")));
        railgauge_job_close(job);
    }
    json_decref(asked);
    return out;
}

/* Send an answer whole.  A client that does not read loses its connection after 5 s. */
static int send_line(int fd, const json_t *out)
{
    char *text = json_dumps(out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    size_t length = text ? strlen(text) : 0, sent = 0;
    struct pollfd one = {fd, POLLOUT, 0};

    if (text)
        text[length++] = '\n'; /* in place of the end */
    while (sent < length) {
        ssize_t n = send(fd, text + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n;
        else if (errno != EAGAIN || poll(&one, 1, 5000) != 1)
            break;
    }
    free(text);
    return sent == length && length > 0 ? 0 : -1;
}

/* Take what has come, and answer each whole line of it.  -1: the connection is over. */
static int serve(struct client *c, int fd)
{
    if (c->length + 65536 > c->room) {
        char *more = c->room < LINE_MAX_BYTES ? realloc(c->text, c->room * 2 + 131072) : NULL;
        if (!more)
            return -1;
        c->text = more;
        c->room = c->room * 2 + 131072;
    }
    ssize_t n = recv(fd, c->text + c->length, c->room - c->length - 1, 0);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    c->length += (size_t)n;

    char *line = c->text, *end;
    while ((end = memchr(line, '\n', c->length - (size_t)(line - c->text)))) {
        *end = '\0';
        reload();
        json_t *out = answer(line);
        int bad = send_line(fd, out);
        json_decref(out);
        if (bad)
            return -1;
        line = end + 1;
    }
    c->length -= (size_t)(line - c->text);
    memmove(c->text, line, c->length);
    return 0;
}

static int listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(name) >= sizeof(at.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(at.sun_path, name);
    if (lstat(name, &st) == 0 && S_ISSOCK(st.st_mode)) /* of the one before; anything else stays */
        unlink(name);
    mode_t before = umask(0177);
    int rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&at, sizeof(at));
    umask(before);
    return rc < 0 || listen(fd, CLIENTS) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
    struct pollfd fds[1 + CLIENTS];
    struct client client[1 + CLIENTS] = {{0}};
    int n = 1;
    char err[256];

    if (argc != 3) {
        fprintf(stderr, "usage: answer MATRIX SOCKET\n");
        return 64;
    }
    path = argv[1];
    signal(SIGPIPE, SIG_IGN);
    if (railgauge_open(&matrix, path, err) < 0) {
        fprintf(stderr, "answer: %s\n", err);
        return 65;
    }
    fds[0] = (struct pollfd){listen_at(argv[2]), POLLIN, 0};
    if (fds[0].fd < 0) {
        perror(argv[2]);
        return 74;
    }
    for (;;) {
        if (poll(fds, (nfds_t)n, -1) < 0 && errno != EINTR)
            return 74;
        for (int i = n - 1; i > 0; i--) {
            if (!fds[i].revents || serve(&client[i], fds[i].fd) == 0)
                continue;
            close(fds[i].fd);
            free(client[i].text);
            n--;
            fds[i] = fds[n];
            client[i] = client[n];
        }
        if (fds[0].revents && n <= CLIENTS) {
            int fd = accept4(fds[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd >= 0) {
                fds[n] = (struct pollfd){fd, POLLIN, 0};
                client[n++] = (struct client){0};
            }
        }
    }
}
