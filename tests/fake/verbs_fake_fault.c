/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults that FAKE_VERBS_FAULT lists (verbs_fake.h). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_fake.h"

enum kind { STATUS, RECV_STATUS, LOST, HANG, CORRUPT, DOWN, GONE, SLOW, DIE, KINDS };
static const char *const kind_name[KINDS] = {
    [LOST] = "lost", [HANG] = "hang", [CORRUPT] = "corrupt", [DOWN] = "down",
    [GONE] = "gone", [SLOW] = "slow", [DIE] = "die"};

static const char *const status_name[VERBS_WC_STATUSES] = {
    [VERBS_WC_LOCAL_LENGTH] = "local-length",
    [VERBS_WC_LOCAL_QP_OPERATION] = "local-operation",
    [VERBS_WC_LOCAL_PROTECTION] = "local-protection",
    [VERBS_WC_FLUSHED] = "flushed",
    [VERBS_WC_BAD_RESPONSE] = "bad-response",
    [VERBS_WC_LOCAL_ACCESS] = "local-access",
    [VERBS_WC_REMOTE_INVALID_REQUEST] = "remote-invalid",
    [VERBS_WC_REMOTE_ACCESS] = "remote-access",
    [VERBS_WC_REMOTE_OPERATION] = "remote-operation",
    [VERBS_WC_RETRY_EXCEEDED] = "retry-exceeded",
    [VERBS_WC_RNR_RETRY_EXCEEDED] = "rnr-exceeded",
    [VERBS_WC_REMOTE_ABORTED] = "remote-aborted",
    [VERBS_WC_FATAL] = "fatal",
    [VERBS_WC_RESPONSE_TIMEOUT] = "response-timeout",
    [VERBS_WC_GENERAL] = "general"};

struct fault {
    enum kind kind;
    int status;
    char where[72];
    unsigned long after;
    bool in_bytes;
    double more;
    unsigned long requests, bytes; /* so far, there */
};
static struct fault faults[32];
static int count;

int status_by_name(const char *name, size_t n)
{
    for (int i = 1; i < VERBS_WC_STATUSES; i++)
        if (status_name[i] && strlen(status_name[i]) == n && !strncmp(status_name[i], name, n))
            return i;
    return -1;
}

static void refuse(const char *one)
{
    fprintf(stderr, "fake libibverbs: no fault %s\n", one);
    abort();
}

static void read_kind(struct fault *f, const char *name)
{
    bool recv = !strncmp(name, "recv-", 5);

    f->status = status_by_name(name + (recv ? 5 : 0), strlen(name) - (recv ? 5 : 0));
    f->kind = recv ? RECV_STATUS : STATUS;
    for (int k = LOST; k < KINDS; k++)
        if (!strcmp(kind_name[k], name))
            f->kind = (enum kind)k;
    if (f->status < 0 && f->kind <= RECV_STATUS)
        refuse(name);
}

static void read_one(char *one)
{
    struct fault *f = &faults[count];
    char *rest = one, *name = strsep(&rest, "@"), *where = strsep(&rest, ":"),
         *after = strsep(&rest, ":");

    if (!where || !*where || count == (int)(sizeof(faults) / sizeof(*faults)))
        refuse(one);
    count++;
    read_kind(f, name);
    snprintf(f->where, sizeof(f->where), "%.71s", where);
    f->after = after && *after ? strtoul(after, NULL, 10) : 1;
    f->in_bytes = after && strchr(after, 'b');
    f->more = rest ? atof(rest) : 0;
}

static void read_all(void)
{
    static char list[2048];
    char *rest = list, *one;

    text_of();
    snprintf(list, sizeof(list), "%s",
             getenv("FAKE_VERBS_FAULT") ? getenv("FAKE_VERBS_FAULT") : "");
    while ((one = strsep(&rest, ",")) != NULL)
        if (*one)
            read_one(one);
}

static void need(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_all);
}

/* "mlx5_0", "mlx5_0.2", "n1/mlx5_0" */
static bool device_is(const char *where, struct fake_place p)
{
    const struct fake_text *t = text_of();
    const char *slash = strchr(where, '/');
    char name[VERBS_NAME + 16];

    if (slash) {
        const char *host = p.host < t->hosts ? t->host[p.host].name : "";
        if (strlen(host) != (size_t)(slash - where) || strncmp(host, where, strlen(host)) != 0)
            return false;
        where = slash + 1;
    }
    snprintf(name, sizeof(name), "%s.%d", t->card[p.card].name, p.port);
    return !strcmp(where, t->card[p.card].name) || !strcmp(where, name);
}

static bool is_here(const struct fault *f, struct fake_place mine, int peer)
{
    int a, b, used = 0;

    if (!strcmp(f->where, "*"))
        return true;
    if (sscanf(f->where, "%d>%d%n", &a, &b, &used) == 2 && !f->where[used])
        return a == text_rank() && b == peer;
    if (sscanf(f->where, "%d%n", &a, &used) == 1 && !f->where[used])
        return a == text_rank();
    return device_is(f->where, mine);
}

/* Count it; is it the fault's turn? */
static bool due(struct fault *f, size_t bytes)
{
    f->requests++;
    f->bytes += bytes;
    return f->in_bytes ? f->bytes > f->after : f->requests >= f->after;
}

/* When it was is the time of a file, for tests of how soon others notice. */
static void die(void)
{
    const char *text = getenv("FAKE_VERBS");
    char path[4200];
    FILE *f;

    snprintf(path, sizeof(path), "%s.died", text ? text : "/dev/null");
    f = fopen(path, "w");
    if (f)
        fclose(f);
    kill(getpid(), SIGKILL);
}

struct fake_harm fault_of_send(struct fake_place mine, int peer_rank, size_t bytes)
{
    struct fake_harm h = {.corrupt = -1};

    need();
    for (struct fault *f = faults; f < faults + count; f++) {
        if (f->kind == RECV_STATUS || f->kind == SLOW || !is_here(f, mine, peer_rank) ||
            !due(f, bytes))
            continue;
        if (f->kind == DIE)
            die();
        h.status = f->kind == STATUS ? f->status : h.status;
        h.lost |= f->kind == LOST;
        h.hang |= f->kind == HANG;
        h.down |= f->kind == DOWN;
        h.gone |= f->kind == GONE;
        h.corrupt = f->kind == CORRUPT ? (long)f->more : h.corrupt;
    }
    return h;
}

int fault_of_recv(struct fake_place mine, int peer_rank)
{
    need();
    for (struct fault *f = faults; f < faults + count; f++)
        if (f->kind == RECV_STATUS && is_here(f, mine, peer_rank) && due(f, 0))
            return f->status;
    return 0;
}

double fault_rate(struct fake_place p)
{
    double rate = text_of()->card[p.card].rate_Bps;

    need();
    for (struct fault *f = faults; f < faults + count; f++)
        if (f->kind == SLOW && device_is(f->where, p))
            rate = f->more;
    return rate;
}
