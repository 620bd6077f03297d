/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_kinds.c - kinds of devices: a GPU of another model than the rest of its host, and hosts
 * unlike most in GPU model and NIC rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/lint/lint_impl.h"
#include "topo/nic.h"

/* Majority of a host's endpoints: index of one, -1: no GPUs; its count; count of all. */
struct usual {
    int endpoint, times, all;
};

static bool is_gpu(const struct topo *t, int i)
{
    return t->endpoint[i].kind == ENDPOINT_GPU && *t->endpoint[i].model;
}

/* Majority of GPU models on the host with endpoints from..to-1. */
static struct usual usual_model(const struct topo *t, int from, int to)
{
    struct usual u = {-1, 0, 0};

    for (int i = from; i < to; i++) {
        int times = 0;
        u.all += is_gpu(t, i);
        for (int k = from; k < to && is_gpu(t, i); k++)
            times += is_gpu(t, k) && !strcmp(t->endpoint[i].model, t->endpoint[k].model);
        if (times > u.times) {
            u.times = times;
            u.endpoint = i;
        }
    }
    return u;
}

static void foreign_gpus(struct lint *l, const struct topo *t, int from, int to,
                         const struct usual *u)
{
    const char *host = t->host[topo_at(t, from, LEVEL_HOST)].name;

    for (int i = from; i < to && u->endpoint >= 0; i++) {
        const char *usual = t->endpoint[u->endpoint].model;
        if (!is_gpu(t, i) || !strcmp(t->endpoint[i].model, usual))
            continue;
        char *what = mem_printf("%s GPU %d", host, t->endpoint[i].local);
        lint_add(l, "models", what, "%s: %s where %d of the %d GPUs of this host are %s", what,
                 t->endpoint[i].model, u->times, u->all, usual);
        free(what);
    }
}

/* "NVIDIA H100 SXM, NICs of 400 Gb/s" */
static char *kind_text(const struct topo *t, int endpoint)
{
    const struct endpoint *e = &t->endpoint[endpoint];
    double rate = e->nic >= 0 ? t->nic[e->nic].rate_Bps : 0;

    return rate > 0 ? mem_printf("%s, NICs of %.0f Gb/s", e->model, rate * 8 / 1e9)
                    : mem_strdup(e->model);
}

/* Report hosts of each kind except the most common one, one line per kind. */
static void say_kinds(struct lint *l, const struct topo *t, const int *kind,
                      const struct names *kinds)
{
    int *hosts = mem_calloc((size_t)kinds->count + 1, sizeof(*hosts)), most = 0;

    for (int h = 0; h < t->hosts; h++)
        if (kind[h] >= 0)
            hosts[kind[h]]++;
    for (int k = 1; k < kinds->count; k++)
        most = hosts[k] > hosts[most] ? k : most;
    for (int k = 0; k < kinds->count; k++) {
        char **name = NULL;
        int names = 0;
        for (int h = 0; h < t->hosts && k != most; h++)
            if (kind[h] == k)
                MEM_PUSH(name, names) = mem_strdup(t->host[h].name);
        if (!names)
            continue;
        char *who = hostlist_fold(name, names);
        lint_note(l, "kinds", who,
                  "%s: %s where %d host%s %s; such pairs are judged by their own rate", who,
                  kinds->name[k], hosts[most], hosts[most] == 1 ? " has" : "s have",
                  kinds->name[most]);
        free(who);
        hostlist_free(name, names);
    }
    free(hosts);
}

int lint_kinds(struct lint *l, const struct topo *t)
{
    int before = l->findings, *kind = mem_ints(t->hosts, -1);
    struct names kinds = {0};

    for (int from = 0, to; from < t->endpoints; from = to) {
        int host = topo_at(t, from, LEVEL_HOST);
        for (to = from + 1; to < t->endpoints && topo_at(t, to, LEVEL_HOST) == host; to++)
            ;
        struct usual u = usual_model(t, from, to);
        foreign_gpus(l, t, from, to, &u);
        if (u.endpoint < 0)
            continue;
        char *text = kind_text(t, u.endpoint);
        kind[host] = names_add(&kinds, text);
        free(text);
    }
    say_kinds(l, t, kind, &kinds);
    names_free(&kinds);
    free(kind);
    return l->findings - before;
}
