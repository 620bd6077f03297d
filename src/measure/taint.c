/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/taint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"
#include "topo/sources/host/nvml.h"
#include "topo/sources/net/port_counters.h"

enum { TOLD_MAX = 8, ROOT = 256 };

/* --- note of a point --- */

static const char prefix[] = "tainted: ";

void taint_note(struct point *p, const struct topo *t, int endpoint, const char *text)
{
    const struct endpoint *e = &t->endpoint[endpoint];

    point_note(p, "%sendpoint %d (%.40s:%d): %s", prefix, endpoint,
               t->host[e->place.at[LEVEL_HOST]].name, e->local, text);
}

void taint_note_port(struct point *p, const struct topo *t, int host, const char *port,
                     const char *text)
{
    point_note(p, "%s%s on %.40s: %s", prefix, port, t->host[host].name, text);
}

bool taint_is(const struct point *p)
{
    const char *subject;

    return p->stop != STOP_FAILED && !p->wrong && taint_subject(p, &subject) > 0;
}

int taint_subject(const struct point *p, const char **subject)
{
    const char *note = point_words(p), *s = *subject = note + sizeof(prefix) - 1, *end;
    int endpoint;

    if (strncmp(note, prefix, sizeof(prefix) - 1) != 0 || !(end = strstr(s, ": ")))
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

/* --- watched devices --- */

/* Maximum age of a reading, s.  Reading a GPU with 18 NVLinks costs as much as a small point.
 * Points follow each other closely, so the reading after one also serves as the reading before the
 * next, unless it is older than this because points were written in between. */
static const double gpu_fresh = 0.02, ports_fresh = 0.1;

struct heard_of_host {
    const struct taint_said *said; /* first report about a port of this host */
    int more;
};

struct taint {
    struct world *world;
    const struct topo *topo;
    bool measures;
    const struct taint_said *said; /* rank 0: reports of all ranks, `stride` bytes apart */
    size_t stride;
    struct {
        struct nvml *nvml; /* NULL: not visible */
        int index;
        double seen; /* time of `last` */
        int xid;     /* last Xid since it was opened */
        struct nvml_counts first, before, last;
    } gpu;
    struct {
        bool any; /* some rank watches ports */
        struct port_counters **port;
        /* ports of this rank; largest number on a rank, before it is known which are readable */
        int count, most;
        double seen;
        struct heard_of_host *heard; /* rank 0: by host */
    } ports;
};

/* --- GPUs --- */

static void look_at_gpu(struct taint *t)
{
    nvml_look(t->gpu.nvml, t->gpu.index, &t->gpu.last);
    t->gpu.xid = t->gpu.last.xid ? t->gpu.last.xid : t->gpu.xid;
    t->gpu.seen = log_now();
}

static void open_gpu(struct taint *t)
{
    const struct endpoint *e = &t->topo->endpoint[t->world->rank];

    if (e->kind != ENDPOINT_GPU || !e->busid[0])
        return;
    if (nvml_open(&t->gpu.nvml, NULL) < 0 ||
        (t->gpu.index = nvml_find(t->gpu.nvml, e->busid)) < 0) {
        nvml_close(t->gpu.nvml);
        t->gpu.nvml = NULL;
        return;
    }
    nvml_watch(t->gpu.nvml, t->gpu.index);
    look_at_gpu(t);
    t->gpu.first = t->gpu.before = t->gpu.last;
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

static int report_gpus(struct taint *t, struct err *err)
{
    struct world *w = t->world;
    char mine[TAINT_TEXT] = "", *all = NULL;

    if (t->gpu.nvml) {
        struct nvml_counts all_along = t->gpu.last;
        all_along.xid = t->gpu.xid;
        nvml_harm(&t->gpu.first, &all_along, mine, TAINT_TEXT);
    }
    if (w->rank == 0)
        all = mem_calloc((size_t)w->size, TAINT_TEXT);
    int rc = w->gather(w, mine, TAINT_TEXT, all, err);
    if (all && rc == 0)
        tell_gpus(t->topo, all, w->size);
    free(all);
    return rc;
}

/* --- network ports: assignment to ranks --- */

struct watch_order {
    int rank;
    struct port_id port;
};

struct watch_orders {
    char root[ROOT];
    int count, most;
    struct watch_order one[];
};

/* Sort ranks by host: those of h are rank[first[h]] to rank[first[h + 1] - 1].  Returns the number
 * of hosts with ranks. */
static int sort_ranks(const struct topo *t, int *first, int *rank)
{
    int hosts = 0;

    for (int e = 0; e < t->endpoints; e++)
        hosts += first[topo_at(t, e, LEVEL_HOST) + 1]++ == 0;
    for (int h = 0; h < t->hosts; h++)
        first[h + 1] += first[h];
    for (int e = t->endpoints; e-- > 0;)
        rank[--first[topo_at(t, e, LEVEL_HOST) + 1]] = e;
    for (int h = 0; h < t->hosts; h++)
        first[h] = first[h + 1];
    first[t->hosts] = t->endpoints;
    return hosts;
}

/* Ports that a transport reported in use. */
static struct used_port {
    char host[64], name[40];
} * used;
static int uses;

void taint_uses(const char *host, const char *nic)
{
    struct used_port *u = &MEM_PUSH(used, uses);

    snprintf(u->host, sizeof(u->host), "%s", host);
    snprintf(u->name, sizeof(u->name), "%s", nic);
}

static bool is_used(const struct topo *t, const struct nic *n)
{
    for (int i = 0; i < uses; i++)
        if (!strcmp(used[i].name, n->name) && !strcmp(used[i].host, t->host[n->host].name))
            return true;
    return false;
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
        if (!ranks || !(is_used(t, n) || (compute[n->host] ? n->use == NIC_COMPUTE : n->up)))
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

static void take_orders(struct taint *t, const struct watch_orders *o)
{
    t->ports.any = o->count > 0;
    t->ports.most = o->most;
    if (t->ports.any && t->world->rank == 0)
        t->ports.heard = mem_calloc((size_t)t->topo->hosts, sizeof(*t->ports.heard));
    for (int i = 0; i < o->count; i++) {
        struct port_counters *c =
            o->one[i].rank == t->world->rank ? port_counters_open(o->root, &o->one[i].port) : NULL;
        if (c)
            MEM_PUSH(t->ports.port, t->ports.count) = c;
    }
    t->ports.seen = log_now();
}

static int open_ports(struct taint *t, struct err *err)
{
    struct world *w = t->world;
    struct watch_orders *o = NULL;
    size_t len = 0;
    int rc = 0;

    if (w->rank == 0)
        rc = make_orders(&o, &len, t->topo, err);
    void *data = o;
    if (w->agree(w, rc, err) < 0 || w->share(w, &data, &len, err) < 0) {
        free(o);
        return -1;
    }
    take_orders(t, data);
    free(data);
    return 0;
}

static void look_at_ports(struct taint *t, bool all)
{
    for (int i = 0; i < t->ports.count; i++)
        port_counters_look(t->ports.port[i], all);
    t->ports.seen = log_now();
}

static void say_ports(struct taint *t, struct taint_said *said)
{
    char words[TAINT_TEXT];

    look_at_ports(t, false);
    for (int i = 0; i < t->ports.count; i++) {
        if (!port_counters_harm(t->ports.port[i], words, sizeof(words)))
            continue;
        if (said->port[0]) {
            said->more++;
            continue;
        }
        snprintf(said->port, sizeof(said->port), "%s", port_counters_name(t->ports.port[i]));
        memcpy(said->words, words, sizeof(said->words));
    }
}

static const struct taint_said *said_of(const struct taint *t, int rank)
{
    const void *at = (const char *)t->said + (size_t)rank * t->stride;

    return at;
}

static void hear_ports(struct taint *t)
{
    memset(t->ports.heard, 0, sizeof(*t->ports.heard) * (size_t)t->topo->hosts);
    for (int r = 0; r < t->world->size; r++) {
        const struct taint_said *said = said_of(t, r);
        struct heard_of_host *h = &t->ports.heard[topo_at(t->topo, r, LEVEL_HOST)];
        if (!said->port[0])
            continue;
        h->more += said->more + (h->said != NULL);
        h->said = h->said ? h->said : said;
    }
}

static void mark_ports(const struct taint *t, struct point *p, const int *members, int n)
{
    const struct heard_of_host *h = NULL;
    bool across = false;
    char words[TAINT_TEXT + 32];
    int host = 0;

    for (int i = 0; i < n; i++) {
        int at = topo_at(t->topo, members[i], LEVEL_HOST);
        across = across || at != topo_at(t->topo, members[0], LEVEL_HOST);
        if (!h && t->ports.heard[at].said) {
            h = &t->ports.heard[at];
            host = at;
        }
    }
    if (!h || !across)
        return;
    int len = snprintf(words, sizeof(words), "%s", h->said->words);
    if (h->more)
        snprintf(words + len, sizeof(words) - (size_t)len, ", and %d more port%s", h->more,
                 units_s(h->more));
    taint_note_port(p, t->topo, host, h->said->port, words);
}

struct total {
    char port[40];
    char harm[TAINT_TEXT], full[TAINT_TEXT], congestion[TAINT_TEXT];
};

struct tally {
    int ports, harmed, congested;
};

static void tell_ports(const struct taint *t, const struct total *all, struct tally *n)
{
    for (int r = 0; r < t->world->size; r++) {
        const struct total *one = &all[r];
        const char *host = t->topo->host[topo_at(t->topo, r, LEVEL_HOST)].name;
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

static int report_ports(struct taint *t, struct err *err)
{
    struct total mine, *all = NULL;
    struct tally n = {0, 0, 0};
    int rc = 0;

    look_at_ports(t, true);
    if (t->world->rank == 0)
        all = mem_calloc((size_t)t->world->size, sizeof(*all));
    for (int i = 0; i < t->ports.most && rc == 0; i++) {
        memset(&mine, 0, sizeof(mine));
        if (i < t->ports.count) {
            const struct port_counters *c = t->ports.port[i];
            snprintf(mine.port, sizeof(mine.port), "%s", port_counters_name(c));
            port_counters_total(c, false, mine.harm, sizeof(mine.harm));
            port_counters_total(c, true, mine.congestion, sizeof(mine.congestion));
            port_counters_full(c, mine.full, sizeof(mine.full));
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

/* --- GPUs and ports --- */

int taint_open(struct taint **out, struct world *w, const struct topo *t, struct err *err)
{
    *out = NULL;
    if (w->solo)
        return 0;
    *out = mem_calloc(1, sizeof(**out));
    (*out)->world = w;
    (*out)->topo = t;
    open_gpu(*out);
    return open_ports(*out, err);
}

void taint_close(struct taint *t)
{
    if (!t)
        return;
    nvml_close(t->gpu.nvml);
    for (int i = 0; i < t->ports.count; i++)
        port_counters_close(t->ports.port[i]);
    free(t->ports.port);
    free(t->ports.heard);
    free(t);
}

void taint_begin(struct taint *t, bool measures)
{
    if (!t)
        return;
    if (t->ports.any && log_now() - t->ports.seen > ports_fresh)
        look_at_ports(t, false);
    for (int i = 0; i < t->ports.count; i++)
        port_counters_begin(t->ports.port[i]);
    t->measures = measures && t->gpu.nvml;
    if (t->measures && log_now() - t->gpu.seen > gpu_fresh)
        look_at_gpu(t);
    t->gpu.before = t->gpu.last;
}

int taint_end(struct taint *t, struct taint_said *said, struct err *err)
{
    memset(said, 0, sizeof(*said));
    if (!t)
        return 0;
    if (t->measures) {
        look_at_gpu(t);
        nvml_harm(&t->gpu.before, &t->gpu.last, said->gpu, TAINT_TEXT);
    }
    if (!t->ports.any)
        return 0;
    if (t->world->agree(t->world, 0, err) < 0)
        return -1;
    say_ports(t, said);
    return 0;
}

void taint_hear(struct taint *t, const struct taint_said *first, size_t stride)
{
    if (!t)
        return;
    t->said = first;
    t->stride = stride;
    if (t->ports.any)
        hear_ports(t);
}

/* A failed or wrong point keeps its own note. */
void taint_mark(const struct taint *t, struct point *p, const int *members, int n)
{
    for (int i = 0; t && i < n && !p->note; i++)
        if (said_of(t, members[i])->gpu[0])
            taint_note(p, t->topo, members[i], said_of(t, members[i])->gpu);
    if (t && t->ports.any && !p->note)
        mark_ports(t, p, members, n);
}

int taint_report(struct taint *t, struct err *err)
{
    if (!t)
        return 0;
    return report_gpus(t, err) < 0 ? -1 : t->ports.any ? report_ports(t, err) : 0;
}
