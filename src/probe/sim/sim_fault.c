/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults as they are typed, and whom they concern. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "probe/sim/sim.h"

/* What the ends of a fault are numbers or names of. */
enum end { NO_END, ENDPOINT, HOST, LEAF, LEAF_OR_RACK, RACK, RACK_OR_DOMAIN };

/* How each is written: NAME=A[-B][:F[:side]]; F alone where it has no end. */
static const struct {
    const char *name;
    enum end end;
    bool two, factor, side;
} forms[FAULT_COUNT] = {
    [FAULT_SLOW_LINK] = {"slow-link", ENDPOINT, true, true, false},
    [FAULT_SLOW_CABLE] = {"slow-cable", ENDPOINT, true, true, false},
    [FAULT_SLOW_NIC] = {"slow-nic", ENDPOINT, false, true, true},
    [FAULT_SLOW_GPU] = {"slow-gpu", ENDPOINT, false, true, false},
    [FAULT_SLOW_HOST] = {"slow-host", HOST, false, true, false},
    [FAULT_SLOW_LEAF] = {"slow-leaf", LEAF, false, true, false},
    [FAULT_SLOW_UPLINKS] = {"slow-uplinks", LEAF_OR_RACK, false, true, true},
    [FAULT_LOST_UPLINKS] = {"lost-uplinks", LEAF_OR_RACK, false, true, false},
    [FAULT_SLOW_RACK] = {"slow-rack", RACK, false, true, false},
    [FAULT_SLOW_RACK_UPLINKS] = {"slow-rack-uplinks", RACK, false, true, true},
    [FAULT_SLOW_RACKS] = {"slow-racks", RACK_OR_DOMAIN, true, true, false},
    [FAULT_SLOW_FABRIC] = {"slow-fabric", NO_END, false, true, false},
    [FAULT_DEAD_HOST] = {"dead-host", HOST, false, false, false},
    [FAULT_CORRUPT] = {"corrupt", ENDPOINT, false, false, false},
};

enum level sim_uplink_level(const struct topo *t)
{
    return t->group[LEVEL_LEAF].count ? LEVEL_LEAF : LEVEL_RACK;
}

static enum level level_of(const struct topo *t, enum end end)
{
    switch (end) {
    case LEAF:
        return LEVEL_LEAF;
    case LEAF_OR_RACK:
        return sim_uplink_level(t);
    case RACK:
        return LEVEL_RACK;
    case RACK_OR_DOMAIN:
        return t->group[LEVEL_RACK].count > 1 ? LEVEL_RACK : LEVEL_DOMAIN;
    default:
        return LEVEL_HOST;
    }
}

static int find_end(const struct topo *t, enum end end, const char *text, int *out, struct err *err)
{
    enum level level = level_of(t, end);
    const char *what = end == ENDPOINT         ? "endpoint"
                       : end == RACK_OR_DOMAIN ? level_name[LEVEL_RACK]
                                               : level_name[level];
    int count = end == ENDPOINT ? t->endpoints : t->group[level].count;
    struct err why;

    *out = end == ENDPOINT ? -1 : names_find(&t->group[level], text);
    if (*out >= 0)
        return 0;
    if (count == 0)
        return err_usage(err, "%s %s: this fabric has no %s", what, text, level_many[level]);
    if (units_int(out, text, 0, count - 1, &why) < 0)
        return err_usage(err, "%s %s: %s", what, text, why.text);
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

/* "A-B": names have hyphens, too, so it is cut where both halves are ends. */
static int find_two(const struct topo *t, enum end end, char *text, struct sim_fault *f,
                    struct err *err)
{
    struct err why;

    for (char *dash = strchr(text, '-'); dash; dash = strchr(dash + 1, '-')) {
        *dash = '\0';
        if (find_end(t, end, text, &f->a, &why) == 0 &&
            find_end(t, end, dash + 1, &f->b, &why) == 0)
            return 0;
        *dash = '-';
    }
    char *rest = text;
    if (!strchr(text, '-'))
        return err_usage(err, "\"%s\" is one end where A-B is needed", text);
    return find_end(t, end, piece(&rest, "-"), &f->a, err) < 0 ? -1
                                                               : find_end(t, end, rest, &f->b, err);
}

static int find_kind(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char known[512] = "";
    size_t at = 0;

    for (int k = 0; k < FAULT_COUNT; k++) {
        if (!strcmp(forms[k].name, name))
            return k;
        near_try(&near, forms[k].name);
        at += (size_t)snprintf(known + at, sizeof(known) - at, " %s", forms[k].name);
    }
    return err_usage(err, "no fault \"%s\"%s; known:%s", name, near_text(&near), known);
}

/* No cable lies between endpoints that do not meet over NICs. */
static int check_cable(const struct sim *s, const struct sim_fault *f, struct err *err)
{
    int tier = topo_tier(s->truth, f->a, f->b);

    if (f->kind != FAULT_SLOW_CABLE || s->fabric->tier[tier].nic)
        return 0;
    return err_usage(err, "no cable lies between %d and %d: they meet over %s", f->a, f->b,
                     s->fabric->tier[tier].rule.name);
}

static int parse_ends(const struct sim *s, struct sim_fault *f, char **rest, struct err *err)
{
    const struct topo *t = s->truth;
    enum end end = forms[f->kind].end;

    if (end == NO_END)
        return 0;
    f->level = level_of(t, end);
    f->ids = end == ENDPOINT;
    char *text = piece(rest, ":");
    if (!forms[f->kind].two)
        return find_end(t, end, text, &f->a, err);
    if (find_two(t, end, text, f, err) < 0)
        return -1;
    if (f->a == f->b)
        return err_usage(err, "%s: the two ends are the same, %d", forms[f->kind].name, f->a);
    return check_cable(s, f, err);
}

static int parse_fault(const struct sim *s, struct sim_fault *f, char *text, struct err *err)
{
    char *rest = text;
    int kind = find_kind(piece(&rest, "="), err);

    if (kind < 0)
        return -1;
    *f =
        (struct sim_fault){.kind = (enum fault_kind)kind, .a = -1, .b = -1, .tx = true, .rx = true};
    if (parse_ends(s, f, &rest, err) < 0)
        return -1;
    if (forms[kind].factor && units_double(&f->factor, piece(&rest, ":"), 1e-6, 1, err) < 0)
        return err_wrap(err, "factor of %s", forms[kind].name);
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
    struct sim_fault f;
    int rc = parse_fault(s, &f, copy, err);

    if (rc < 0)
        err_wrap(err, "--fault %s", text);
    else
        MEM_PUSH(s->fault, s->faults) = f;
    free(copy);
    return rc;
}

/* --- whom it concerns --- */

static bool between(int x, int y, int a, int b)
{
    return (x == a && y == b) || (x == b && y == a);
}

bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic)
{
    int x = topo_at(s->truth, src, (int)f->level), y = topo_at(s->truth, dst, (int)f->level);

    switch (f->kind) {
    case FAULT_SLOW_LINK:
    case FAULT_SLOW_CABLE:
        return between(src, dst, f->a, f->b);
    case FAULT_SLOW_NIC:
        return nic && ((f->a == src && f->tx) || (f->a == dst && f->rx));
    case FAULT_SLOW_GPU:
        return !nic && (f->a == src || f->a == dst);
    case FAULT_SLOW_HOST:
        return x == f->a || y == f->a;
    case FAULT_SLOW_LEAF:
    case FAULT_SLOW_RACK:
        return nic && (x == f->a || y == f->a);
    case FAULT_SLOW_UPLINKS:
    case FAULT_SLOW_RACK_UPLINKS:
        return nic && x != y && ((x == f->a && f->tx) || (y == f->a && f->rx));
    case FAULT_SLOW_RACKS:
        return between(x, y, f->a, f->b);
    case FAULT_SLOW_FABRIC:
        return nic;
    default:
        return false;
    }
}
