/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

enum what { ENDPOINT, HOST, RACK };

/* How each fault is written: NAME=A[-B][:F[:side]]. */
static const struct {
    const char *name;
    enum what what;
    bool two, factor, side;
} forms[FAULT_COUNT] = {
    [FAULT_SLOW_LINK] = {"slow-link", ENDPOINT, true, true, false},
    [FAULT_SLOW_NIC] = {"slow-nic", ENDPOINT, false, true, true},
    [FAULT_SLOW_GPU] = {"slow-gpu", ENDPOINT, false, true, false},
    [FAULT_SLOW_HOST] = {"slow-host", HOST, false, true, false},
    [FAULT_SLOW_RACKS] = {"slow-racks", RACK, true, true, false},
    [FAULT_DEAD_HOST] = {"dead-host", HOST, false, false, false},
    [FAULT_CORRUPT] = {"corrupt", ENDPOINT, false, false, false},
};

/* Racks where there are any, NVLink domains elsewhere. */
static enum level rack_level(const struct topo *t)
{
    return t->group[LEVEL_RACK].count > 1 ? LEVEL_RACK : LEVEL_DOMAIN;
}

static int find_part(const struct topo *t, enum what what, const char *text, int *out,
                     struct err *err)
{
    static const char *const names[] = {"endpoint", "host", "rack"};
    int count = what == ENDPOINT ? t->endpoints
                : what == HOST   ? t->hosts
                                 : t->group[rack_level(t)].count;
    struct err why;

    *out = what == HOST ? topo_find_host(t, text) : -1;
    if (*out >= 0)
        return 0;
    if (units_int(out, text, 0, count - 1, &why) < 0)
        return err_usage(err, "%s %s: %s", names[what], text, why.text);
    return 0;
}

/* The next piece of "a-b:f:side" up to one of `ends`; cuts it out of *rest. */
static char *piece(char **rest, const char *ends)
{
    char *here = *rest, *end = here + strcspn(here, ends);

    *rest = *end ? end + 1 : end;
    *end = '\0';
    return here;
}

static int parse_fault(const struct sim *s, struct fault *f, char *text, struct err *err)
{
    char *rest = text, *name = piece(&rest, "=");
    int kind = 0;

    while (kind < FAULT_COUNT && strcmp(forms[kind].name, name))
        kind++;
    if (kind == FAULT_COUNT)
        return err_usage(err,
                         "no fault \"%s\"; known: slow-link slow-nic slow-gpu slow-host slow-racks "
                         "dead-host corrupt",
                         name);
    *f = (struct fault){.kind = (enum fault_kind)kind, .b = -1, .tx = true, .rx = true};
    char *a = piece(&rest, forms[kind].two ? "-" : ":");
    if (find_part(s->truth, forms[kind].what, a, &f->a, err) < 0)
        return -1;
    if (forms[kind].two && find_part(s->truth, forms[kind].what, piece(&rest, ":"), &f->b, err) < 0)
        return -1;
    if (f->a == f->b)
        return err_usage(err, "%s: the two ends are the same, %d", name, f->a);
    if (forms[kind].factor && units_double(&f->factor, piece(&rest, ":"), 1e-6, 1, err) < 0)
        return err_wrap(err, "factor of %s", name);
    if (forms[kind].side && *rest) {
        char *side = piece(&rest, ":");
        if (strcmp(side, "tx") && strcmp(side, "rx"))
            return err_usage(err, "side \"%s\" is neither tx nor rx", side);
        f->tx = side[0] == 't';
        f->rx = !f->tx;
    }
    return *rest ? err_usage(err, "\"%s\" is left over", rest) : 0;
}

int sim_fault(struct sim *s, const char *text, struct err *err)
{
    char *copy = mem_strdup(text);
    struct fault f;
    int rc = parse_fault(s, &f, copy, err);

    if (rc < 0)
        err_wrap(err, "--fault %s", text);
    else
        MEM_PUSH(s->fault, s->faults) = f;
    free(copy);
    return rc;
}

void sim_free(struct sim *s)
{
    free(s->fault);
    sim_uplinks_free(s->uplinks);
    memset(s, 0, sizeof(*s));
}

static bool between(int x, int y, int a, int b)
{
    return (x == a && y == b) || (x == b && y == a);
}

bool sim_concerns(const struct sim *s, const struct fault *f, int src, int dst, bool nic)
{
    const int *x = s->truth->endpoint[src].place.at, *y = s->truth->endpoint[dst].place.at;
    enum level rack = rack_level(s->truth);

    switch (f->kind) {
    case FAULT_SLOW_LINK:
        return between(src, dst, f->a, f->b);
    case FAULT_SLOW_NIC:
        return nic && ((f->a == src && f->tx) || (f->a == dst && f->rx));
    case FAULT_SLOW_GPU:
        return !nic && (f->a == src || f->a == dst);
    case FAULT_SLOW_HOST:
        return x[LEVEL_HOST] == f->a || y[LEVEL_HOST] == f->a;
    case FAULT_SLOW_RACKS:
        return between(x[rack], y[rack], f->a, f->b);
    default:
        return false;
    }
}

double sim_factor(const struct sim *s, int src, int dst, int tier)
{
    double worst = 1;

    for (int i = 0; i < s->faults; i++)
        if (sim_concerns(s, &s->fault[i], src, dst, s->fabric->tier[tier].nic))
            worst = fmin(worst, s->fault[i].factor);
    return worst;
}

int sim_domain(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : at[LEVEL_HOST];
}

double sim_pair(const struct sim *s, enum op op, int src, int dst, double bytes, double share)
{
    const struct topo *t = s->truth;
    int tier = topo_tier(t->tier, t->tiers, &t->endpoint[src].place, &t->endpoint[dst].place);
    const struct fabric_tier *ft = &s->fabric->tier[tier];
    double alpha = ft->alpha.value, there = share * sim_factor(s, src, dst, tier),
           back = share * sim_factor(s, dst, src, tier);

    if (op == OP_PAIR_LATENCY) /* half of a round trip */
        return alpha + bytes / ft->Bps.value * (1 / there + 1 / back) / 2;
    if (op == OP_PAIR_BIBW)
        return alpha / OP_PAIR_WINDOW + bytes / (ft->bi_Bps.value * fmin(there, back));
    return alpha / OP_PAIR_WINDOW + bytes / (ft->Bps.value * there);
}
