/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/taint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "topo/host/nic.h"
#include "topo/host/nvml.h"
#include "topo/net/port_counters.h"

enum { TOLD_MAX = 8, ROOT = 256 };

static int host_of(const struct topo *t, int endpoint)
{
    return t->endpoint[endpoint].place.at[LEVEL_HOST];
}

/* --- the note of a point --- */

static const char prefix[] = "tainted: ";

void taint_note(struct point *p, const struct topo *t, int endpoint, const char *text)
{
    const struct endpoint *e = &t->endpoint[endpoint];

    snprintf(p->note, sizeof(p->note), "%sendpoint %d (%.40s:%d): %s", prefix, endpoint,
             t->host[e->place.at[LEVEL_HOST]].name, e->local, text);
}

void taint_note_port(struct point *p, const struct topo *t, int host, const char *port,
                     const char *text)
{
    snprintf(p->note, sizeof(p->note), "%s%s on %.40s: %s", prefix, port, t->host[host].name, text);
}

bool taint_is(const struct point *p)
{
    const char *subject;

    return p->stop != STOP_FAILED && !p->wrong && taint_subject(p, &subject) > 0;
}

int taint_subject(const struct point *p, const char **subject)
{
    const char *s = *subject = p->note + sizeof(prefix) - 1, *end;
    int endpoint;

    if (strncmp(p->note, prefix, sizeof(prefix) - 1) != 0 || !(end = strstr(s, ": ")))
        return 0;
    const char *on = strstr(s, " on ");
    bool good = !strncmp(s, "endpoint ", 9) ? sscanf(s, "endpoint %9d (", &endpoint) == 1
                                            : on && on > s && on < end;
    return good ? (int)(end - s) : 0;
}

const char *taint_words(const struct point *p)
{
    const char *subject;
    int len = taint_subject(p, &subject);

    return len ? subject + len + 2 : "";
}

/* --- GPUs --- */

/* A look costs as much as a small point on a GPU with 18 NVLinks.  Points follow each other
 * closely, so the look that ended one begins the next, unless it is older than this. */
static const double gpu_fresh = 0.02;

struct taint {
    struct nvml *nvml;
    int gpu;
    double seen; /* when `last` was taken */
    int xid;     /* the last one since it was opened */
    struct nvml_counts first, before, last;
};

static void look_at_gpu(struct taint *t)
{
    nvml_look(t->nvml, t->gpu, &t->last);
    t->xid = t->last.xid ? t->last.xid : t->xid;
    t->seen = log_now();
}

struct taint *taint_open(const char *busid)
{
    struct taint *t = mem_calloc(1, sizeof(*t));

    if (nvml_open(&t->nvml, NULL) < 0 || (t->gpu = nvml_find(t->nvml, busid)) < 0) {
        taint_close(t);
        return NULL;
    }
    nvml_watch(t->nvml, t->gpu);
    look_at_gpu(t);
    t->first = t->before = t->last;
    return t;
}

void taint_close(struct taint *t)
{
    if (!t)
        return;
    nvml_close(t->nvml);
    free(t);
}

void taint_begin(struct taint *t)
{
    if (!t)
        return;
    if (log_now() - t->seen > gpu_fresh)
        look_at_gpu(t);
    t->before = t->last;
}

bool taint_end(struct taint *t, char text[TAINT_TEXT])
{
    *text = '\0';
    if (!t)
        return false;
    look_at_gpu(t);
    return nvml_harm(&t->before, &t->last, text, TAINT_TEXT);
}

struct taint *taint_watch(const struct world *w, const struct topo *t)
{
    const struct endpoint *e = w->solo ? NULL : &t->endpoint[w->rank];

    return e && e->kind == ENDPOINT_GPU && e->busid[0] ? taint_open(e->busid) : NULL;
}

static void tell_gpus(const struct topo *t, const char *all, int ranks)
{
    int told = 0;

    for (int r = 0; r < ranks; r++) {
        const char *text = all + (size_t)r * TAINT_TEXT;
        const struct endpoint *e = &t->endpoint[r];
        if (*text && ++told <= TOLD_MAX)
            log_warn("during the campaign, endpoint %d (%s:%d): %s", r,
                     t->host[e->place.at[LEVEL_HOST]].name, e->local, text);
    }
    if (told > TOLD_MAX)
        log_warn("during the campaign, %d more endpoints suffered", told - TOLD_MAX);
}

int taint_report(struct taint *t, struct world *w, const struct topo *topo, struct err *err)
{
    char mine[TAINT_TEXT] = "", *all = NULL;

    if (w->solo)
        return 0;
    if (t) {
        struct nvml_counts all_along = t->last;
        all_along.xid = t->xid;
        nvml_harm(&t->first, &all_along, mine, TAINT_TEXT);
    }
    if (w->rank == 0)
        all = mem_calloc((size_t)w->size, TAINT_TEXT);
    int rc = w->gather(w, mine, TAINT_TEXT, all, err);
    if (all && rc == 0)
        tell_gpus(topo, all, w->size);
    free(all);
    return rc;
}

/* --- network ports --- */

/* The look that ended a size begins the next, unless it is older than this: writing points down
 * lies between. */
static const double ports_fresh = 0.1;

struct heard_of_host {
    const struct taint_port_said *said; /* of the first rank that had something to say */
    int more;
};

struct taint_port {
    struct world *world;
    const struct topo *topo;
    struct port_counters **port;
    int ports, most; /* of this rank; of any, before it was asked whether they can be read */
    double seen;
    struct heard_of_host *heard; /* rank 0: by host */
};

/* --- who looks at what --- */

struct watch_order {
    int rank;
    struct port_id port;
};

struct watch_orders {
    char root[ROOT];
    int count, most;
    struct watch_order one[];
};

/* Ranks by host: those of h are rank[first[h]] to rank[first[h + 1] - 1].  How many hosts have any.
 */
static int sort_ranks(const struct topo *t, int *first, int *rank)
{
    int hosts = 0;

    for (int e = 0; e < t->endpoints; e++)
        hosts += first[host_of(t, e) + 1]++ == 0;
    for (int h = 0; h < t->hosts; h++)
        first[h + 1] += first[h];
    for (int e = t->endpoints; e-- > 0;)
        rank[--first[host_of(t, e) + 1]] = e;
    for (int h = 0; h < t->hosts; h++)
        first[h] = first[h + 1];
    first[t->hosts] = t->endpoints;
    return hosts;
}

static void deal_out(struct watch_orders *o, const struct topo *t, const int *first,
                     const int *rank)
{
    bool *compute = mem_calloc((size_t)t->hosts, sizeof(*compute));
    int *dealt = mem_calloc((size_t)t->hosts, sizeof(*dealt));

    for (int i = 0; i < t->nics; i++)
        compute[t->nic[i].host] = compute[t->nic[i].host] || t->nic[i].use == NIC_COMPUTE;
    for (int i = 0; i < t->nics; i++) {
        const struct nic *n = &t->nic[i];
        int ranks = first[n->host + 1] - first[n->host];
        if (!ranks || (compute[n->host] ? n->use != NIC_COMPUTE : !n->up))
            continue;
        int turn = dealt[n->host]++;
        o->one[o->count++] =
            (struct watch_order){rank[first[n->host] + turn % ranks], port_id_of(n)};
        o->most = turn / ranks + 1 > o->most ? turn / ranks + 1 : o->most;
    }
    free(dealt);
    free(compute);
}

static int make_orders(struct watch_orders **out, size_t *len, const struct topo *t,
                       struct err *err)
{
    const char *root = getenv("RAILGAUGE_COUNTERS");
    int *first = mem_calloc((size_t)t->hosts + 2, sizeof(*first));
    int *rank = mem_calloc((size_t)t->endpoints + 1, sizeof(*rank));
    struct watch_orders *o = mem_calloc(1, sizeof(*o) + sizeof(*o->one) * (size_t)t->nics);
    int hosts = sort_ranks(t, first, rank), rc = 0;

    if (root && strlen(root) >= ROOT)
        rc = err_config(err, "RAILGAUGE_COUNTERS has %zu characters, more than %d", strlen(root),
                        ROOT - 1);
    else if (hosts > 1 && !(root && !strcmp(root, "off")))
        deal_out(o, t, first, rank);
    snprintf(o->root, sizeof(o->root), "%s", rc == 0 && root ? root : "");
    *len = sizeof(*o) + sizeof(*o->one) * (size_t)o->count;
    *out = o;
    free(rank);
    free(first);
    return rc;
}

static struct taint_port *open_ports(struct world *w, const struct topo *t,
                                     const struct watch_orders *o)
{
    struct taint_port *p = mem_calloc(1, sizeof(*p));

    p->world = w;
    p->topo = t;
    p->most = o->most;
    p->heard = w->rank == 0 ? mem_calloc((size_t)t->hosts, sizeof(*p->heard)) : NULL;
    for (int i = 0; i < o->count; i++) {
        struct port_counters *c =
            o->one[i].rank == w->rank ? port_counters_open(o->root, &o->one[i].port) : NULL;
        if (c)
            MEM_PUSH(p->port, p->ports) = c;
    }
    p->seen = log_now();
    return p;
}

int taint_port_open(struct taint_port **out, struct world *w, const struct topo *t, struct err *err)
{
    struct watch_orders *o = NULL;
    size_t len = 0;
    int rc = 0;

    *out = NULL;
    if (w->solo)
        return 0;
    if (w->rank == 0)
        rc = make_orders(&o, &len, t, err);
    void *data = o;
    if (w->agree(w, rc, err) < 0 || w->share(w, &data, &len, err) < 0) {
        free(o);
        return -1;
    }
    o = data;
    if (o->count)
        *out = open_ports(w, t, o);
    free(o);
    return 0;
}

void taint_port_close(struct taint_port *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->ports; i++)
        port_counters_close(t->port[i]);
    free(t->port);
    free(t->heard);
    free(t);
}

/* --- one size --- */

static void look_at_ports(struct taint_port *t, bool all)
{
    for (int i = 0; i < t->ports; i++)
        port_counters_look(t->port[i], all);
    t->seen = log_now();
}

void taint_port_begin(struct taint_port *t)
{
    if (!t)
        return;
    if (log_now() - t->seen > ports_fresh)
        look_at_ports(t, false);
    for (int i = 0; i < t->ports; i++)
        port_counters_begin(t->port[i]);
}

int taint_port_end(struct taint_port *t, struct taint_port_said *said, struct err *err)
{
    char words[TAINT_TEXT];

    memset(said, 0, sizeof(*said));
    if (!t)
        return 0;
    if (t->world->agree(t->world, 0, err) < 0)
        return -1;
    look_at_ports(t, false);
    for (int i = 0; i < t->ports; i++) {
        if (!port_counters_harm(t->port[i], words, sizeof(words)))
            continue;
        if (said->port[0]) {
            said->more++;
            continue;
        }
        snprintf(said->port, sizeof(said->port), "%s", port_counters_name(t->port[i]));
        memcpy(said->words, words, sizeof(said->words));
    }
    return 0;
}

void taint_port_hear(struct taint_port *t, const struct taint_port_said *first, size_t stride)
{
    if (!t)
        return;
    memset(t->heard, 0, sizeof(*t->heard) * (size_t)t->topo->hosts);
    for (int r = 0; r < t->world->size; r++) {
        const void *at = (const char *)first + (size_t)r * stride;
        const struct taint_port_said *said = at;
        struct heard_of_host *h = &t->heard[host_of(t->topo, r)];
        if (!said->port[0])
            continue;
        h->more += said->more + (h->said != NULL);
        h->said = h->said ? h->said : said;
    }
}

void taint_port_mark(const struct taint_port *t, struct point *p, const int *members, int n)
{
    const struct heard_of_host *h = NULL;
    bool across = false;
    char words[TAINT_TEXT + 32];
    int host = 0;

    for (int i = 0; t && i < n; i++) {
        int at = host_of(t->topo, members[i]);
        across = across || at != host_of(t->topo, members[0]);
        if (!h && t->heard[at].said) {
            h = &t->heard[at];
            host = at;
        }
    }
    if (!h || !across)
        return;
    int len = snprintf(words, sizeof(words), "%s", h->said->words);
    if (h->more)
        snprintf(words + len, sizeof(words) - (size_t)len, ", and %d more port%s", h->more,
                 h->more == 1 ? "" : "s");
    taint_note_port(p, t->topo, host, h->said->port, words);
}

/* --- the whole campaign --- */

struct total {
    char port[40];
    char harm[TAINT_TEXT], full[TAINT_TEXT], congestion[TAINT_TEXT];
};

struct tally {
    int ports, harmed, congested;
};

static void tell_ports(const struct taint_port *t, const struct total *all, struct tally *n)
{
    for (int r = 0; r < t->world->size; r++) {
        const struct total *one = &all[r];
        const char *host = t->topo->host[host_of(t->topo, r)].name;
        n->ports += one->port[0] != '\0';
        if (one->harm[0] && ++n->harmed <= TOLD_MAX)
            log_warn("during the campaign, %s on %s: %s", one->port, host, one->harm);
        if (one->full[0])
            log_warn("%s on %s: %s, and new errors do not show", one->port, host, one->full);
        if (one->congestion[0] && !n->congested++)
            log_info("congestion during the campaign, %s on %s: %s", one->port, host,
                     one->congestion);
    }
}

int taint_port_report(struct taint_port *t, struct err *err)
{
    struct total mine, *all = NULL;
    struct tally n = {0, 0, 0};
    int rc = 0;

    if (!t)
        return 0;
    look_at_ports(t, true);
    if (t->world->rank == 0)
        all = mem_calloc((size_t)t->world->size, sizeof(*all));
    for (int i = 0; i < t->most && rc == 0; i++) {
        memset(&mine, 0, sizeof(mine));
        if (i < t->ports) {
            snprintf(mine.port, sizeof(mine.port), "%s", port_counters_name(t->port[i]));
            port_counters_total(t->port[i], false, mine.harm, sizeof(mine.harm));
            port_counters_total(t->port[i], true, mine.congestion, sizeof(mine.congestion));
            port_counters_full(t->port[i], mine.full, sizeof(mine.full));
        }
        rc = t->world->gather(t->world, &mine, sizeof(mine), all, err);
        if (rc == 0 && all)
            tell_ports(t, all, &n);
    }
    if (n.harmed > TOLD_MAX)
        log_warn("during the campaign, %d more ports suffered", n.harmed - TOLD_MAX);
    if (n.congested > 1)
        log_info("congestion on %d of %d ports", n.congested, n.ports);
    free(all);
    return rc;
}
