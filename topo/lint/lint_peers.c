/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/lint/lint_impl.h"
#include "topo/nic.h"

/* lint_peers.c - comparable properties of hosts, GPUs, NICs and endpoints, the value of most
 * peers, and the objects that differ from it. */

/* --- what is compared --- */

enum lint_what { HOSTS, GPUS, NICS, ENDPOINTS };
enum { VALUE_TEXT = 160 };

/* Property that is compared: a field of the object, or the result of get(). */
struct lint_check {
    const char *kind, *unit; /* "7 HCAs up", or for texts "driver 550.54" */
    enum lint_what what;
    enum { GET, COUNT, INDEX, STRING, CHARS } field; /* not visible: 0, -1, NULL, "" */
    size_t at;
    bool (*get)(const struct lint_view *v, int i, char text[VALUE_TEXT]); /* false: not visible */
    bool words;                                                           /* the value is a text */
    double tolerance;                                                     /* share, for numbers */
    bool note;                                                            /* for information only */
    /* May have the cause of the row above: left out where that row reported the same value. */
    bool again;
    char *(*detail)(const struct lint_view *v, int odd, int peer); /* NULL: none */
};

static bool put(char text[VALUE_TEXT], bool told, const char *value)
{
    if (told)
        snprintf(text, VALUE_TEXT, "%s", value);
    return told;
}

static bool number(char text[VALUE_TEXT], bool told, double value)
{
    if (told)
        snprintf(text, VALUE_TEXT, "%.10g", value);
    return told;
}

static bool host_gpus(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    return number(text, true, v->t->gpus ? v->host[h].gpus : v->host[h].named);
}

static bool host_driver(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    const struct gpu *g = v->host[h].gpus ? &v->t->gpu[v->host[h].gpu] : NULL;

    return put(text, g && *g->driver, g ? g->driver : "");
}

static bool host_memory(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    return number(text, v->t->host[h].memory_bytes > 0,
                  round(v->t->host[h].memory_bytes / (1 << 30)));
}

/* Compare only the name of the module: its version does not matter. */
static bool host_gdr(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    bool told = put(text, v->t->host[h].gdr[0], v->t->host[h].gdr);

    if (told)
        text[strcspn(text, " ")] = '\0';
    return told;
}

static bool host_hcas(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    return number(text, v->t->nics > 0, v->host[h].hcas);
}

static bool host_up(const struct lint_view *v, int h, char text[VALUE_TEXT])
{
    return number(text, v->t->nics > 0, v->host[h].up);
}

static bool gpu_links_active(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    return number(text, v->t->gpu[i].links > 0, gpu_links_up(&v->t->gpu[i]));
}

static bool gpu_link_rate(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    return number(text, v->t->gpu[i].link_Bps > 0, v->t->gpu[i].link_Bps / 1e9);
}

static bool nic_rate(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    return number(text, v->t->nic[i].up && v->t->nic[i].rate_Bps > 0,
                  8 * v->t->nic[i].rate_Bps / 1e9);
}

static bool nic_layer(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    enum link_layer layer = v->t->nic[i].layer;

    return put(text, layer != LINK_UNKNOWN, nic_layer_text[layer]);
}

static bool nic_mtu(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    return number(text, v->t->nic[i].up && v->t->nic[i].verbs.mtu > 0, v->t->nic[i].verbs.mtu);
}

static bool end_nic(const struct lint_view *v, int i, char text[VALUE_TEXT])
{
    int nic = v->t->endpoint[i].nic;

    return put(text, nic >= 0, nic >= 0 ? v->t->nic[nic].name : "");
}

/* --- details --- */

static char *listed(char *text, const char *name, const char *state)
{
    return mem_append(text, "%s%s is %s", text ? ", " : "", name, state);
}

static const struct nic *nic_called(const struct lint_view *v, int host, const char *name)
{
    for (int i = 0; i < v->host[host].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[host].nic + i]];
        if (!strcmp(n->name, name))
            return n;
    }
    return NULL;
}

/* RDMA NICs that are down or missing, by the names on a host of the majority. */
static char *missing_nics(const struct lint_view *v, int host, int peer)
{
    char *text = NULL;

    for (int i = 0; i < v->host[host].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[host].nic + i]];
        if (n->rdma && !n->up)
            text = listed(text, n->name, "down");
    }
    for (int i = 0; i < v->host[peer].nics; i++) {
        const struct nic *n = &v->t->nic[v->nic[v->host[peer].nic + i]];
        if (n->rdma && n->up && !nic_called(v, host, n->name))
            text = listed(text, n->name, "missing");
    }
    return text;
}

static char *links_down(const struct lint_view *v, int gpu, int peer)
{
    char *text = NULL, name[24];

    (void)peer;
    for (int i = 0; i < GPU_LINKS; i++)
        if (v->t->gpu[gpu].down >> i & 1) {
            snprintf(name, sizeof(name), "link %d", i);
            text = listed(text, name, "down");
        }
    return text;
}

/* --- the table --- */

#define FIELD(kind, of, name) .field = kind, .at = offsetof(struct of, name)
static const struct lint_check checks[] = {
    {"gpus", "GPUs", HOSTS, .get = host_gpus},
    {"driver", "driver", HOSTS, .get = host_driver, .words = true},
    {"cpu", "CPU", HOSTS, FIELD(STRING, host, cpu), .words = true},
    {"cores", "cores", HOSTS, FIELD(COUNT, host, cores)},
    {"sockets", "sockets", HOSTS, FIELD(COUNT, host, sockets)},
    {"memory", "GiB of memory", HOSTS, .get = host_memory, .tolerance = 0.03},
    {"gdr", "GPUDirect RDMA by", HOSTS, .get = host_gdr, .words = true},
    {"hcas", "HCAs", HOSTS, .get = host_hcas, .detail = missing_nics},
    {"hcas", "HCAs up", HOSTS, .get = host_up, .again = true, .detail = missing_nics},
    {"gpu", "model", GPUS, FIELD(CHARS, gpu, model), .words = true},
    {"nvlink", "NVLinks", GPUS, FIELD(INDEX, gpu, links)},
    {"nvlink", "NVLinks up", GPUS, .get = gpu_links_active, .again = true, .detail = links_down},
    {"nvlink", "GB/s a link", GPUS, .get = gpu_link_rate, .tolerance = 0.01},
    {"pcie", "PCIe at most of generation", GPUS, FIELD(COUNT, gpu, pcie_gen_max), .words = true},
    {"pcie", "PCIe lanes", GPUS, FIELD(COUNT, gpu, pcie_width)},
    {"nic", "Gb/s", NICS, .get = nic_rate, .tolerance = 0.01},
    {"nic", "link layer", NICS, .get = nic_layer, .words = true},
    {"nic", "bytes of MTU", NICS, .get = nic_mtu},
    {"nic", "board", NICS, FIELD(CHARS, nic, board), .words = true, .note = true},
    {"nic", "firmware", NICS, FIELD(CHARS, nic, firmware), .words = true, .note = true},
    {"nic", "driver", NICS, FIELD(CHARS, nic, driver), .words = true, .note = true},
    {"nic", "addresses of type", NICS, FIELD(CHARS, nic, gid_type), .words = true},
    {"nic", "NUMA node", NICS, FIELD(INDEX, nic, numa), .words = true},
    {"rails", "rail", NICS, FIELD(INDEX, nic, rail), .words = true},
    {"affinity", "nearest NIC", ENDPOINTS, .get = end_nic, .words = true},
    {"numa", "NUMA node", ENDPOINTS, FIELD(INDEX, endpoint, numa), .words = true},
};

/* Value of object i as text; false: not visible. */
static bool value_of(const struct lint_view *v, const struct lint_check *c, int i,
                     char text[VALUE_TEXT])
{
    const struct topo *t = v->t;
    const void *object = c->what == HOSTS  ? (const void *)&t->host[i]
                         : c->what == GPUS ? (const void *)&t->gpu[i]
                         : c->what == NICS ? (const void *)&t->nic[i]
                                           : (const void *)&t->endpoint[i];
    const char *at = (const char *)object + c->at;
    const char *string = at;
    int whole;

    if (c->field == GET)
        return c->get(v, i, text);
    if (c->field == STRING)
        memcpy(&string, at, sizeof(string));
    if (c->field == STRING || c->field == CHARS)
        return put(text, string && (c->field == STRING || *string), string);
    memcpy(&whole, at, sizeof(whole));
    return number(text, whole >= (c->field == COUNT), whole);
}

/* --- peers, their majority, and the exceptions --- */

/* ALONE: minorities up to this size are named one by one.  LISTED: up to this many values are
 * listed if there is no majority. */
enum { ALONE = 4, LISTED = 8 };

static int count_of(const struct topo *t, enum lint_what what)
{
    const int count[] = {t->hosts, t->gpus, t->nics, t->endpoints};

    return count[what];
}

static int object_host(const struct topo *t, enum lint_what what, int i)
{
    return what == HOSTS  ? i
           : what == GPUS ? t->gpu[i].host
           : what == NICS ? t->nic[i].host
                          : t->endpoint[i].place.at[LEVEL_HOST];
}

/* Name of an object, preceded by the host's name (except for hosts). */
static char *name_of(const struct topo *t, enum lint_what what, int i)
{
    const char *host = t->host[object_host(t, what, i)].name;

    switch (what) {
    case GPUS:
        return mem_printf("%s GPU %d", host, t->gpu[i].index);
    case NICS:
        return mem_printf("%s %s", host, t->nic[i].name);
    case ENDPOINTS:
        return mem_printf("%s %s %d", host, t->endpoint[i].kind == ENDPOINT_GPU ? "GPU" : "socket",
                          t->endpoint[i].local);
    default:
        return mem_strdup(host);
    }
}

/* Key of an object; objects with the same key are peers.  NULL: no peers. */
static char *peers_of(const struct lint_view *v, enum lint_what what, int i)
{
    const struct topo *t = v->t;
    int k = v->host[object_host(t, what, i)].kind;

    switch (what) {
    case GPUS:
        return mem_printf("%s", t->gpu[i].model);
    case NICS:
        return t->nic[i].rdma ? mem_printf("%d %s", k, t->nic[i].name) : NULL;
    case ENDPOINTS:
        return mem_printf("%d %d %d", k, (int)t->endpoint[i].kind, t->endpoint[i].local);
    default:
        return mem_printf("%d", k);
    }
}

/* --- majority and minorities --- */

/* State of one check. */
struct run {
    struct lint *l;
    struct lint_view *v;
    const struct lint_check *c;
    bool *said, *above; /* by object: reported by this check, by the row above */
};

struct told {
    int peers, i;
    double number;
    char text[VALUE_TEXT];
};

static bool same_value(const struct lint_check *c, const struct told *a, const struct told *b)
{
    if (!c->words && c->tolerance > 0)
        return fabs(a->number - b->number) <= c->tolerance * fmax(fabs(a->number), 1e-9);
    return !strcmp(a->text, b->text);
}

static const struct lint_check *sorted_by; /* qsort() has no context: set before each sort */

static int by_value(const void *x, const void *y)
{
    const struct told *a = x, *b = y;
    int order = sorted_by->words ? strcmp(a->text, b->text)
                                 : (a->number > b->number) - (a->number < b->number);

    if (a->peers != b->peers)
        return a->peers < b->peers ? -1 : 1;
    return order ? order : a->i < b->i ? -1 : a->i > b->i;
}

static char *value_text(const struct lint_check *c, const char *value)
{
    return c->words ? mem_printf("%s %s", c->unit, value) : mem_printf("%s %s", value, c->unit);
}

static void say(const struct run *r, const char *what, const char *text)
{
    if (r->c->note)
        lint_note(r->l, r->c->kind, what, "%s", text);
    else
        lint_add(r->l, r->c->kind, what, "%s", text);
}

/* True if the row above already reported this object with this value: the same cause. */
static bool said_above(const struct run *r, const struct told *x)
{
    char text[VALUE_TEXT];

    return r->c->again && r->above[x->i] && value_of(r->v, &r->c[-1], x->i, text) &&
           !strcmp(text, x->text);
}

static void mark(const struct run *r, const struct told *x)
{
    r->said[x->i] = true;
    if (r->c->what == GPUS && !strcmp(r->c->kind, "nvlink"))
        r->v->named[x->i] = true;
}

static void say_one(const struct run *r, const char *who, const struct told *x,
                    const struct told *usual, int most, bool detailed)
{
    const struct lint_check *c = r->c;
    char *value = value_text(c, x->text);
    char *more = c->detail && detailed ? c->detail(r->v, x->i, usual->i) : NULL;
    char *text =
        mem_printf("%s: %s where %d %s%s %s %s%s%s", who, value, most,
                   c->what == HOSTS ? "host" : "other", most == 1 ? "" : "s",
                   most == 1 ? "has" : "have", usual->text, more ? ": " : "", more ? more : "");

    say(r, who, text);
    free(text);
    free(more);
    free(value);
}

/* Report n objects with x's value where `most` peers have `usual`. */
static void say_odd(const struct run *r, const struct told *x, int n, const struct told *usual,
                    int most)
{
    const struct told **odd = mem_calloc((size_t)n, sizeof(*odd));
    char **name = NULL;
    int names = 0;

    for (int i = 0; i < n; i++)
        if (!said_above(r, &x[i])) {
            odd[names] = &x[i];
            MEM_PUSH(name, names) = name_of(r->v->t, r->c->what, x[i].i);
            mark(r, &x[i]);
        }
    for (int i = 0; i < names && names <= ALONE; i++)
        say_one(r, name[i], odd[i], usual, most, true);
    if (names > ALONE) {
        char *who = hostlist_fold(name, names);
        say_one(r, who, x, usual, most, false);
        free(who);
    }
    free(odd);
    hostlist_free(name, names);
}

/* Report peers that disagree without a majority. */
static void say_split(const struct run *r, const struct told *x, int n)
{
    char *text = mem_strdup(""), *first = name_of(r->v->t, r->c->what, x->i);
    int above = 0, values = 0;

    for (int i = 0, j; i < n && values <= LISTED; i = j, values++) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        char *value = value_text(r->c, x[i].text), *name = name_of(r->v->t, r->c->what, x[i].i);
        text = values == LISTED
                   ? mem_append(text, ", ...")
                   : mem_append(text, "%s%d %s %s (%s%s)", i ? ", " : "", j - i,
                                j - i == 1 ? "has" : "have", value, name, j - i > 1 ? ", ..." : "");
        free(value);
        free(name);
    }
    for (int i = 0; i < n; i++) {
        above += said_above(r, &x[i]);
        r->said[x[i].i] = true;
    }
    char *whole = mem_printf("no majority among %d: %s", n, text);
    if (above < n)
        say(r, first, whole);
    free(whole);
    free(first);
    free(text);
}

static void judge_peers(const struct run *r, const struct told *x, int n)
{
    int most = 0, usual = 0;

    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        if (j - i > most) {
            most = j - i;
            usual = i;
        }
    }
    if (most == n)
        return;
    if (2 * most <= n) {
        say_split(r, x, n);
        return;
    }
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && same_value(r->c, &x[i], &x[j]); j++)
            ;
        if (i != usual)
            say_odd(r, x + i, j - i, &x[usual], most);
    }
}

static void run_check(const struct run *r)
{
    const struct lint_check *c = r->c;
    int count = count_of(r->v->t, c->what), n = 0;
    struct told *x = mem_calloc((size_t)count + 1, sizeof(*x));

    for (int i = 0; i < count; i++) {
        char *peers = peers_of(r->v, c->what, i);
        if (peers && value_of(r->v, c, i, x[n].text)) {
            x[n].peers = names_add(&r->v->peers, peers);
            x[n].number = c->words ? 0 : strtod(x[n].text, NULL);
            x[n++].i = i;
        }
        free(peers);
    }
    sorted_by = c;
    qsort(x, (size_t)n, sizeof(*x), by_value);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && x[j].peers == x[i].peers; j++)
            ;
        judge_peers(r, x + i, j - i);
    }
    free(x);
}

void lint_peers(struct lint *l, struct lint_view *v)
{
    bool *above = NULL;

    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        const struct lint_check *c = &checks[i];
        bool *said = mem_calloc((size_t)count_of(v->t, c->what) + 1, sizeof(*said));
        run_check(&(struct run){l, v, c, said, above});
        free(above);
        above = said;
    }
    free(above);
}
