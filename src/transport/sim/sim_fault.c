/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_fault.c - parse faults, and find the flows that they concern. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "transport/sim/sim.h"

/* Kinds of ends; numbers or names. */
enum end { NO_END, ENDPOINT, HOST, LEAF, LEAF_OR_RACK, RACK, RACK_OR_DOMAIN };

/* States that a kind of fault can have, as bits of enum fault_state. */
enum {
    WHEN = 1 << ON_TIME | 1 << ON_SINCE,
    SIZES = 1 << ON_FROM | 1 << ON_TO,
    SLOWS = WHEN | SIZES | 1 << ON_SAMPLES | 1 << ON_AFTER | 1 << ON_LOAD | 1 << ON_BOTH,
    HASHED = SLOWS | 1 << ON_ONE_OF,
    WRONG = WHEN | SIZES | 1 << ON_LOAD | 1 << ON_CHECKS
};

/* Syntax of each: NAME=A[-B][:F[:side]][@states]; only F if there is no end. */
static const struct {
    const char *name;
    enum end end;
    bool two, factor, side;
    unsigned states;
    bool late; /* a time instead of a factor */
} forms[FAULT_COUNT] = {
    [FAULT_SLOW_LINK] = {"slow-link", ENDPOINT, true, true, false, SLOWS, false},
    [FAULT_SLOW_CABLE] = {"slow-cable", ENDPOINT, true, true, false, SLOWS, false},
    [FAULT_SLOW_NIC] = {"slow-nic", ENDPOINT, false, true, true, SLOWS, false},
    [FAULT_SLOW_GPU] = {"slow-gpu", ENDPOINT, false, true, false, SLOWS, false},
    [FAULT_SLOW_HOST] = {"slow-host", HOST, false, true, false, SLOWS, false},
    [FAULT_SLOW_LEAF] = {"slow-leaf", LEAF, false, true, false, SLOWS, false},
    [FAULT_SLOW_UPLINKS] = {"slow-uplinks", LEAF_OR_RACK, false, true, true, HASHED, false},
    [FAULT_LOST_UPLINKS] = {"lost-uplinks", LEAF_OR_RACK, false, true, false, WHEN, false},
    [FAULT_SLOW_RACK] = {"slow-rack", RACK, false, true, false, SLOWS, false},
    [FAULT_SLOW_RACK_UPLINKS] = {"slow-rack-uplinks", RACK, false, true, true, HASHED, false},
    [FAULT_SLOW_RACKS] = {"slow-racks", RACK_OR_DOMAIN, true, true, false, HASHED, false},
    [FAULT_SLOW_FABRIC] = {"slow-fabric", NO_END, false, true, false, SLOWS, false},
    [FAULT_DEAD_HOST] = {"dead-host", HOST, false, false, false, WHEN, false},
    [FAULT_CORRUPT] = {"corrupt", ENDPOINT, false, false, false, WRONG, false},
    [FAULT_LATE_NIC] = {"late-nic", ENDPOINT, false, false, false, SLOWS, true},
    [FAULT_LATE_LEAF] = {"late-leaf", LEAF, false, false, false, SLOWS, true},
    [FAULT_LATE_RACK] = {"late-rack", RACK, false, false, false, SLOWS, true},
};

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

/* Cut the next piece of "a-b:f:side" up to one of `ends` out of *rest. */
static char *piece(char **rest, const char *ends)
{
    char *here = *rest, *end = here + strcspn(here, ends);

    *rest = *end ? end + 1 : end;
    *end = '\0';
    return here;
}

/* Split "A-B".  Names contain hyphens, too, so it is split where both halves are ends. */
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

/* Endpoints that are not connected over NICs have no cable between them. */
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

/* --- states --- */

static const struct {
    const char *name;
    enum { SHARE, COUNT, SECONDS, SIZE, FLAG } value;
} state_form[ON_COUNT] = {
    [ON_TIME] = {"time", SHARE},     [ON_SAMPLES] = {"samples", SHARE},
    [ON_CHECKS] = {"checks", SHARE}, [ON_SINCE] = {"since", SHARE},
    [ON_AFTER] = {"after", SECONDS}, [ON_LOAD] = {"load", FLAG},
    [ON_BOTH] = {"both", FLAG},      [ON_FROM] = {"from", SIZE},
    [ON_TO] = {"to", SIZE},          [ON_ONE_OF] = {"one-of", COUNT},
};

enum { ONE_OF_MAX = 4096 };

static int state_value(double *out, int state, const char *text, struct err *err)
{
    size_t bytes = 0;
    int count = 0, rc = 0;

    switch (state_form[state].value) {
    case SHARE:
        return units_share(out, text, err);
    case SECONDS:
        return units_seconds(out, text, err);
    case COUNT:
        rc = units_int(&count, text, 1, ONE_OF_MAX, err);
        *out = count;
        return rc;
    case SIZE:
        rc = units_bytes(&bytes, text, err);
        *out = (double)bytes;
        return rc;
    default:
        return *text ? err_usage(err, "it takes no value") : 0;
    }
}

/* Parse "NAME[=VALUE]" in place. */
static int parse_state(struct sim_fault *f, char *text, struct err *err)
{
    struct near near = {.word = text};
    char known[160] = "", *value = text + strcspn(text, "=");
    size_t at = 0;
    const unsigned may = forms[f->kind].states;

    if (*value)
        *value++ = '\0';
    for (int k = 0; k < ON_COUNT; k++) {
        if (!(may >> k & 1))
            continue;
        if (!strcmp(state_form[k].name, text)) {
            if (f->states >> k & 1)
                return err_usage(err, "state \"%s\" is given twice", text);
            f->states |= 1u << k;
            return state_value(&f->state[k], k, value, err) < 0 ? err_wrap(err, "state %s", text)
                                                                : 0;
        }
        near_try(&near, state_form[k].name);
        at += (size_t)snprintf(known + at, sizeof(known) - at, " %s", state_form[k].name);
    }
    return err_usage(err, "unknown state \"%s\" of %s%s; known:%s", text, forms[f->kind].name,
                     near_text(&near), known);
}

static int parse_states(struct sim_fault *f, char *rest, struct err *err)
{
    for (char *one = strsep(&rest, ","); one; one = strsep(&rest, ","))
        if (parse_state(f, one, err) < 0)
            return -1;
    return 0;
}

/* Parse F and the side, or the time, after the ends. */
static int parse_size(struct sim_fault *f, char **rest, struct err *err)
{
    const char *name = forms[f->kind].name;

    if (forms[f->kind].late && units_seconds(&f->added, piece(rest, ":"), err) < 0)
        return err_wrap(err, "time of %s", name);
    if (forms[f->kind].factor && units_double(&f->factor, piece(rest, ":"), 1e-6, 1, err) < 0)
        return err_wrap(err, "factor of %s", name);
    if (forms[f->kind].side && **rest) {
        char *side = piece(rest, ":");
        if (strcmp(side, "tx") && strcmp(side, "rx"))
            return err_usage(err, "side \"%s\" is neither tx nor rx", side);
        f->tx = side[0] == 't';
        f->rx = !f->tx;
    }
    return **rest ? err_usage(err, "\"%s\" is left over", *rest) : 0;
}

static int parse_fault(const struct sim *s, struct sim_fault *f, char *text, struct err *err)
{
    char *rest = text, *states = strchr(text, '@');

    if (states)
        *states++ = '\0';
    int kind = find_kind(piece(&rest, "="), err);

    if (kind < 0)
        return -1;
    *f = (struct sim_fault){
        .kind = (enum fault_kind)kind, .a = -1, .b = -1, .factor = 1, .tx = true, .rx = true};
    if (parse_ends(s, f, &rest, err) < 0 || parse_size(f, &rest, err) < 0)
        return -1;
    return states ? parse_states(f, states, err) : 0;
}

int sim_fault(struct sim *s, const char *text, struct err *err)
{
    char *copy = mem_strdup(text);
    struct sim_fault f;
    int rc = parse_fault(s, &f, copy, err);

    if (rc < 0)
        err_wrap(err, "--fault %s", text);
    else {
        MEM_PUSH(s->fault, s->faults) = f;
        s->varies |= f.states != 0;
        s->late |= f.added > 0;
    }
    free(copy);
    return rc;
}

/* --- concerned flows --- */

static bool between(int x, int y, int a, int b)
{
    return (x == a && y == b) || (x == b && y == a);
}

static bool goes_both_ways(enum op op)
{
    return op == OP_PAIR_BIBW || !op_is_pair(op);
}

/* Number in [0, 1) of this fault: for `what` at `when`. */
static double draw(const struct sim *s, const struct sim_fault *f, enum fault_state what, int when)
{
    unsigned long long key = sim_mix(s->seed, (unsigned)(f - s->fault) * ON_COUNT + what);

    return sim_uniform(sim_mix(sim_mix(key, (unsigned)when), s->by_nic));
}

/* True if one state of a fault holds. */
static bool holds(const struct sim *s, const struct sim_fault *f, enum fault_state k, int src,
                  int dst)
{
    const struct sim_now *now = &s->now;
    const double v = f->state[k];

    switch (k) {
    case ON_TIME:
        return draw(s, f, k, now->turn / FAULT_SLOT) < v;
    case ON_SAMPLES:
        return now->hit == f - s->fault + 1;
    case ON_SINCE:
        return now->turn >= v * now->turns;
    case ON_AFTER:
        return now->busy >= v;
    case ON_LOAD:
        return now->load;
    case ON_BOTH:
        return goes_both_ways(now->op);
    case ON_FROM:
        return (double)now->bytes >= v;
    case ON_TO:
        return (double)now->bytes <= v;
    case ON_ONE_OF:
        return sim_lane(s, src, dst, (int)v) == 0;
    case ON_CHECKS: /* once per turn */
        return sim_uniform(sim_mix(sim_mix(s->seed, (unsigned)now->turn), (unsigned)dst)) < v;
    default:
        return true;
    }
}

bool sim_fault_on(const struct sim *s, const struct sim_fault *f, int src, int dst)
{
    for (int k = 0; k < ON_COUNT; k++)
        if (f->states >> k & 1 && !holds(s, f, (enum fault_state)k, src, dst))
            return false;
    return true;
}

/* True if the fault is on the path of the flow src -> dst, whatever its states. */
static inline bool lies_on(const struct sim *s, const struct sim_fault *f, int src, int dst,
                           bool nic)
{
    int x = topo_at(s->truth, src, (int)f->level), y = topo_at(s->truth, dst, (int)f->level);

    switch (f->kind) {
    case FAULT_SLOW_LINK:
    case FAULT_SLOW_CABLE:
        return between(src, dst, f->a, f->b);
    case FAULT_SLOW_NIC:
    case FAULT_LATE_NIC:
        return nic && ((f->a == src && f->tx) || (f->a == dst && f->rx));
    case FAULT_SLOW_GPU:
        return !nic && (f->a == src || f->a == dst);
    case FAULT_SLOW_HOST:
        return x == f->a || y == f->a;
    case FAULT_SLOW_LEAF:
    case FAULT_SLOW_RACK:
    case FAULT_LATE_LEAF:
    case FAULT_LATE_RACK:
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

/* Separate function, so that the common path saves no registers. */
static __attribute__((noinline)) bool lies_on_now(const struct sim *s, const struct sim_fault *f,
                                                  int src, int dst, bool nic)
{
    bool pair = f->kind == FAULT_SLOW_LINK || f->kind == FAULT_SLOW_CABLE;

    return lies_on(s, f, nic && !pair ? sim_sender(s, src, dst) : src, dst, nic) &&
           sim_fault_on(s, f, src, dst);
}

bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic)
{
    return s->varies ? lies_on_now(s, f, src, dst, nic) : lies_on(s, f, src, dst, nic);
}
