/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_part.c - the words for a part of a matrix: its state, its kind, its name, its effect. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "matrix/matrix.h"
#include "topo/nic.h"

/* --- effect --- */

static void size_text(char buf[MATRIX_EFFECT], const struct exception *e, bool small)
{
    char size[UNITS_TEXT];

    if (e->bytes > 0)
        snprintf(buf, MATRIX_EFFECT, small ? "up to %s" : "from %s on",
                 units_bytes_text(size, e->bytes));
    else
        snprintf(buf, MATRIX_EFFECT, small ? "at small sizes" : "at large sizes");
}

/* When or where a state shows; "" for states that always do. */
static char *condition(char buf[MATRIX_EFFECT], const struct exception *e, enum part_state state)
{
    buf[0] = '\0';
    if (state == STATE_INTERMITTENT && e->share > 0)
        snprintf(buf, MATRIX_EFFECT, "in %.0f %% of the time", 100 * e->share);
    else if (state == STATE_SMALL || state == STATE_LARGE)
        size_text(buf, e, state == STATE_SMALL);
    else
        snprintf(buf, MATRIX_EFFECT, "%s",
                 state == STATE_INTERMITTENT   ? "at times"
                 : state == STATE_LOADED       ? "beside other traffic"
                 : state == STATE_BOTH_WAYS    ? "both ways at once"
                 : state == STATE_LOST_UPLINKS ? "of its uplinks"
                                               : "");
    return buf;
}

static void wrong_text(char buf[MATRIX_EFFECT], const struct exception *e)
{
    if (e->share > 0 && e->evidence > 0)
        snprintf(buf, MATRIX_EFFECT, "wrong data in %d of %.0f checks", e->evidence,
                 e->evidence / e->share);
    else
        snprintf(buf, MATRIX_EFFECT, "wrong data");
}

/* A share of the messages; what they get where that is known. */
static void samples_text(char buf[MATRIX_EFFECT], const struct exception *e, const char *depth)
{
    char share[UNITS_TEXT] = "some", at[UNITS_TEXT + 8] = " slow";

    if (e->share > 0)
        units_share_text(share, e->share);
    if (*depth)
        snprintf(at, sizeof(at), " at %s", depth);
    snprintf(buf, MATRIX_EFFECT, "%s%s messages%s", share, e->share > 0 ? " of" : "", at);
}

/* depth: bandwidth while the state shows, as text; "": not known. */
static char *effect_text(const struct exception *e, const char *depth, char buf[MATRIX_EFFECT])
{
    enum part_state state = matrix_state(e);
    char text[UNITS_TEXT], when[MATRIX_EFFECT];

    if (state == STATE_WRONG)
        wrong_text(buf, e);
    else if (state == STATE_DEAD)
        snprintf(buf, MATRIX_EFFECT, "no answer");
    else if (state == STATE_LATE)
        snprintf(buf, MATRIX_EFFECT, "+%s", units_seconds_text(text, e->alpha_add));
    else if (state == STATE_SAMPLES)
        samples_text(buf, e, depth);
    else {
        condition(when, e, state);
        if (*depth)
            snprintf(buf, MATRIX_EFFECT, "%.15s%s%.40s", depth, *when ? " " : "", when);
        else
            snprintf(buf, MATRIX_EFFECT, "less %.48s", when);
    }
    return buf;
}

char *matrix_effect(const struct exception *e, bool words, char buf[MATRIX_EFFECT])
{
    enum part_state state = matrix_state(e);
    char depth[UNITS_TEXT] = "", late[UNITS_TEXT];

    if (words && state == STATE_LATE) {
        snprintf(buf, MATRIX_EFFECT, "%s more latency", units_seconds_text(late, e->alpha_add));
        return buf;
    }
    if (isfinite(matrix_depth(e)) && words)
        snprintf(depth, sizeof(depth), "%.0f %%%s", 100 * matrix_depth(e),
                 state == STATE_LOST_UPLINKS ? "" : " of normal");
    else if (isfinite(matrix_depth(e)))
        snprintf(depth, sizeof(depth), "%.2f", matrix_depth(e));
    return effect_text(e, depth, buf);
}

/* --- kind --- */

/* The domain that all endpoints of a rack share; -1: there is none, as on hosts with a domain each. */
static int rack_domain(const struct topo *t, int rack)
{
    int domain = -1;

    for (int i = 0; i < t->endpoints; i++) {
        if (topo_at(t, i, LEVEL_RACK) != rack)
            continue;
        int at = topo_at(t, i, LEVEL_DOMAIN);
        if (at < 0 || (domain >= 0 && at != domain))
            return -1;
        domain = at;
    }
    return domain;
}

enum part_kind matrix_kind(const struct matrix *m, const struct exception *e, struct part_shown on)
{
    switch (e->part) {
    case PART_ENDPOINT:
        if (on.nics && !on.inside)
            return PART_KIND_NIC;
        return m->topo.endpoint[e->a].kind == ENDPOINT_GPU ? PART_KIND_GPU : PART_KIND_CPU;
    case PART_PAIR:
        return on.nics ? PART_KIND_CABLE : PART_KIND_LINK;
    case PART_LEAF:
        return e->state == STATE_LOST_UPLINKS || matrix_beyond(m, e) ? PART_KIND_UPLINKS
                                                                     : PART_KIND_LEAF;
    case PART_RACK:
        return on.inside && e->factor > 0 && rack_domain(&m->topo, e->a) >= 0 ? PART_KIND_DOMAIN
                                                                              : PART_KIND_RACK;
    case PART_RACK_UPLINKS:
        return PART_KIND_UPLINKS;
    case PART_RACK_PAIR:
        return PART_KIND_RACK_PAIR;
    default:
        return PART_KIND_HOST;
    }
}

/* --- name --- */

static void device_title(const struct topo *t, enum part_kind kind, int id, char buf[MATRIX_PART])
{
    const struct endpoint *e = &t->endpoint[id];
    const char *host = t->host[e->place.at[LEVEL_HOST]].name,
               *device = e->kind == ENDPOINT_GPU ? "GPU" : "CPU";
    const char *nic = t->nic && e->nic >= 0 ? t->nic[e->nic].name : "";

    if (kind == PART_KIND_NIC)
        snprintf(buf, MATRIX_PART, "NIC%s%.60s of %.100s (%s %d)", *nic ? " " : "", nic, host,
                 device, e->local);
    else
        snprintf(buf, MATRIX_PART, "%s %d of %.100s", device, e->local, host);
}

static void end_title(const struct topo *t, enum part part, int at, char buf[MATRIX_PART / 2])
{
    if (part == PART_RACK_PAIR)
        snprintf(buf, MATRIX_PART / 2, "%.100s", t->group[LEVEL_RACK].name[at]);
    else
        snprintf(buf, MATRIX_PART / 2, "%.100s:%d",
                 t->host[t->endpoint[at].place.at[LEVEL_HOST]].name, t->endpoint[at].local);
}

/* "path between n00:1 and n04:1"; one way: "path from n00:1 to n04:1". */
static void two_title(const struct topo *t, enum part_kind kind, const struct exception *e,
                      char buf[MATRIX_PART])
{
    static const char *const what[PART_KIND_COUNT] = {
        [PART_KIND_RACK_PAIR] = "racks", [PART_KIND_CABLE] = "path", [PART_KIND_LINK] = "link"};
    bool racks = kind == PART_KIND_RACK_PAIR, both = e->side == SIDE_BOTH;
    char from[MATRIX_PART / 2], to[MATRIX_PART / 2];

    end_title(t, e->part, e->side == SIDE_RX ? e->b : e->a, from);
    end_title(t, e->part, e->side == SIDE_RX ? e->a : e->b, to);
    snprintf(buf, MATRIX_PART, "%s%s %.100s %s %.100s", what[kind],
             racks  ? ""
             : both ? " between"
                    : " from",
             from, both ? "and" : "to", to);
}

/* "host n03", "leaf-1", "leaf sw-7", "uplinks of rack-00": a name that says its level needs no other word. */
static void group_title(const struct topo *t, enum part_kind kind, const struct exception *e,
                        char buf[MATRIX_PART])
{
    int level = part_level[e->part], at = e->a;

    if (kind == PART_KIND_DOMAIN) {
        at = rack_domain(t, e->a);
        level = LEVEL_DOMAIN;
    }
    const char *name = at < 0 ? "?" : t->group[level].name[at];
    bool says =
        kind != PART_KIND_HOST && !strncmp(name, level_name[level], strlen(level_name[level]));
    snprintf(buf, MATRIX_PART, "%s%s%s%.100s",
             kind == PART_KIND_UPLINKS  ? "uplinks of "
             : kind == PART_KIND_DOMAIN ? "NVLink "
                                        : "",
             says ? "" : level_name[level], says ? "" : " ", name);
}

char *matrix_title(const struct topo *t, enum part_kind kind, const struct exception *e,
                   char buf[MATRIX_PART])
{
    static const char *const side[SIDE_COUNT] = {"", ", sending", ", receiving"};

    if (part_is_two(e->part)) {
        two_title(t, kind, e, buf);
        return buf;
    }
    if (e->part == PART_ENDPOINT)
        device_title(t, kind, e->a, buf);
    else
        group_title(t, kind, e, buf);
    size_t n = strlen(buf);
    snprintf(buf + n, MATRIX_PART - n, "%s", side[e->side]);
    return buf;
}

char *matrix_part(const struct matrix *m, const struct exception *e, char buf[MATRIX_PART])
{
    return matrix_title(&m->topo, matrix_kind(m, e, matrix_shown(m, e)), e, buf);
}
