/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/limits.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "matrix/matrix.h"

static const char *const limit_of_name[LIMIT_OF_COUNT] = {"itself", "reference", "data-sheet"};

enum {
    SELF = 1 << LIMIT_ITSELF,
    REFERENCE = 1 << LIMIT_OF_REFERENCE,
    DATA_SHEET = 1 << LIMIT_OF_DATA_SHEET
};

// clang-format off
const struct limit_check limit_check[CHECK_COUNT] = {
    [CHECK_WRONG_DATA]     = {"wrong-data",     LIMIT_COUNT, false, SELF, 0, "points with wrong data"},
    [CHECK_FAILED_POINTS]  = {"failed-points",  LIMIT_COUNT, false, SELF, 0, "points that failed"},
    [CHECK_DEAD_PARTS]     = {"dead-parts",     LIMIT_COUNT, false, SELF, 0, "dead parts"},
    [CHECK_PART_SPEED]     = {"part-speed",     LIMIT_SHARE, true,  SELF, KEY_STATE, "slowest part, of its tier"},
    [CHECK_PART_SHARE]     = {"part-share",     LIMIT_SHARE, false, SELF, KEY_STATE,
                              "share of the time or messages in which a part is slow"},
    [CHECK_PART_LATENCY]   = {"part-latency",   LIMIT_TIME,  false, SELF, 0, "latency that a part adds"},
    [CHECK_TIER_BANDWIDTH] = {"tier-bandwidth", LIMIT_RATE,  true,  SELF | REFERENCE | DATA_SHEET, KEY_TIER | KEY_NIC,
                              "bandwidth of a pair"},
    [CHECK_TIER_LATENCY]   = {"tier-latency",   LIMIT_TIME,  false, SELF | REFERENCE, KEY_TIER, "latency of a pair"},
    [CHECK_TIER_SPREAD]    = {"tier-spread",    LIMIT_SHARE, false, SELF, KEY_TIER, "spread among healthy pairs"},
    [CHECK_TIER_LOADED]    = {"tier-loaded",    LIMIT_SHARE, true,  SELF, KEY_TIER, "under load, of a pair alone"},
    [CHECK_BUSBW]          = {"busbw",          LIMIT_RATE,  true,  SELF | REFERENCE, KEY_OP | KEY_RANKS | KEY_BYTES,
                              "bus bandwidth"},
    [CHECK_COLLECTIVE]     = {"collective",     LIMIT_SHARE, true,  SELF, KEY_OP | KEY_RANKS | KEY_BYTES,
                              "collectives across domains, of expected"},
    [CHECK_RACKS]          = {"racks",          LIMIT_COUNT, false, SELF, 0, "hosts elsewhere than declared"},
    [CHECK_TAINTED]        = {"tainted",        LIMIT_COUNT, false, SELF, 0, "findings of counters and throttling"},
    [CHECK_SEEN]           = {"seen",           LIMIT_SHARE, true,  SELF, KEY_PART, "share that can be judged"},
};
// clang-format on

/* --- a bound with its unit --- */

/* Copy "90 %" or "432 GB/s" without blanks. */
static char *squeeze(char buf[LIMIT_TEXT], const char *text)
{
    size_t n = 0;

    for (; *text && n + 1 < LIMIT_TEXT; text++)
        if (*text != ' ')
            buf[n++] = *text;
    buf[n] = 0;
    return buf;
}

/* A share of a reference time may exceed 100 %. */
static int read_percent(double *out, char *text)
{
    char *end = text + strlen(text);

    if (end == text || *--end != '%')
        return -1;
    *end = 0;
    int rc = units_double(out, text, 0, 1000, NULL);
    *out /= 100;
    return rc;
}

static int read_value(double *out, enum limit_unit unit, const char *text, struct err *err)
{
    static const char *const want[] = {[LIMIT_COUNT] = "a count such as 0",
                                       [LIMIT_SHARE] = "a share such as 90 %",
                                       [LIMIT_RATE] = "a rate such as 45 GB/s or 360 Gb/s",
                                       [LIMIT_TIME] = "a time such as 12 us"};
    char buf[LIMIT_TEXT];
    int rc = -1;

    squeeze(buf, text);
    if (unit == LIMIT_COUNT)
        rc = units_double(out, buf, 0, 1e9, NULL);
    else if (unit == LIMIT_SHARE)
        rc = read_percent(out, buf);
    else if (unit == LIMIT_RATE)
        rc = units_rate(out, buf, NULL);
    else if (strchr(buf, 's')) /* a bare number has no unit */
        rc = units_seconds(out, buf, NULL);
    return rc == 0 ? 0 : err_data(err, "\"%s\" is not %s", text, want[unit]);
}

char *limit_value_text(char buf[LIMIT_TEXT], enum limit_unit unit, double value)
{
    char text[UNITS_TEXT];

    if (unit == LIMIT_COUNT)
        snprintf(buf, LIMIT_TEXT, "%.0f", value);
    else if (unit == LIMIT_SHARE)
        snprintf(buf, LIMIT_TEXT, "%.1f %%", 100 * value);
    else
        snprintf(buf, LIMIT_TEXT, "%s",
                 unit == LIMIT_RATE ? units_rate_text(text, value)
                                    : units_seconds_text(text, value));
    return buf;
}

/* --- a row --- */

struct row_text {
    const char *check, *least, *most, *warn, *of, *tier, *op, *bytes, *part, *state, *nic, *source;
    json_t *ranks, *domains;
};

static int find_check(enum check *out, const char *name, const char *where, struct err *err)
{
    struct near near = {.word = name};

    for (int i = 0; i < CHECK_COUNT; i++) {
        if (!strcmp(name, limit_check[i].name)) {
            *out = (enum check)i;
            return 0;
        }
        near_try(&near, limit_check[i].name);
    }
    return err_data(err, "%s: no check \"%s\"%s; railgauge accept --list-checks prints them", where,
                    name, near_text(&near));
}

/* Refuse keys that this check ignores, because the user would expect them to narrow the check. */
static int refuse_keys(const struct row_text *r, const struct limit_check *c, const char *where,
                       struct err *err)
{
    const struct {
        const char *key;
        bool given;
        unsigned bit;
    } keys[] = {{"tier", r->tier, KEY_TIER},    {"op", r->op, KEY_OP},
                {"ranks", r->ranks, KEY_RANKS}, {"domains", r->domains, KEY_RANKS},
                {"bytes", r->bytes, KEY_BYTES}, {"part", r->part, KEY_PART},
                {"state", r->state, KEY_STATE}, {"nic", r->nic, KEY_NIC}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (keys[i].given && !(c->keys & keys[i].bit))
            return err_data(err, "%s: check \"%s\" has no \"%s\"", where, c->name, keys[i].key);
    if (!(c->least ? r->least : r->most) || (c->least ? r->most : r->least))
        return err_data(err, "%s: check \"%s\" needs \"%s\" and nothing else", where, c->name,
                        c->least ? "at_least" : "at_most");
    if ((c->keys & KEY_PART) && !r->part)
        return err_data(err, "%s: check \"%s\" needs a \"part\"", where, c->name);
    return 0;
}

static int read_of(struct limit *l, const char *of, const char *where, struct err *err)
{
    const struct limit_check *c = &limit_check[l->check];

    l->of = LIMIT_ITSELF;
    if (!of)
        return 0;
    for (int i = LIMIT_OF_REFERENCE; i < LIMIT_OF_COUNT; i++)
        if (!strcmp(of, limit_of_name[i]) && (c->of & 1u << i)) {
            l->of = (enum limit_of)i;
            return 0;
        }
    return err_data(err, "%s: check \"%s\" has no share of \"%s\"", where, c->name, of);
}

static int read_bounds(struct limit *l, const struct row_text *r, const char *where,
                       struct err *err)
{
    const struct limit_check *c = &limit_check[l->check];
    enum limit_unit unit = l->of == LIMIT_ITSELF ? c->unit : LIMIT_SHARE;

    l->warn = NAN;
    if (read_value(&l->bound, unit, c->least ? r->least : r->most, err) < 0)
        return err_wrap(err, "%s: %s", where, c->least ? "at_least" : "at_most");
    if (r->warn && read_value(&l->warn, unit, r->warn, err) < 0)
        return err_wrap(err, "%s: warn", where);
    if (r->warn && (c->least ? l->warn < l->bound : l->warn > l->bound))
        return err_data(err, "%s: warn %s lies beyond the bound %s", where, r->warn,
                        c->least ? r->least : r->most);
    return 0;
}

static int read_count(int *out, const json_t *from, const char *key, int least, const char *where,
                      struct err *err)
{
    double n = json_number_value(from);

    if (from && (!json_is_integer(from) || n < least || n > 1e7))
        return err_data(err, "%s: %s is not a whole number from %d on", where, key, least);
    *out = (int)n;
    return 0;
}

static int read_narrowing(struct limit *l, const struct row_text *r, const char *where,
                          struct err *err)
{
    struct near near = {.word = r->op}, state = {.word = r->state};
    size_t bytes = 0;

    l->op = r->op ? op_find(r->op) : -1;
    if (r->op && l->op < 0) {
        op_each(near_try, &near);
        return err_data(err, "%s: no operation \"%s\"%s", where, r->op, near_text(&near));
    }
    if (read_count(&l->ranks, r->ranks, "ranks", 2, where, err) < 0 ||
        read_count(&l->domains, r->domains, "domains", 1, where, err) < 0)
        return -1;
    if (r->bytes && units_bytes(&bytes, r->bytes, err) < 0) {
        err_wrap(err, "%s: bytes", where);
        return err_code(err, EXIT_DATA, "%s", err->text);
    }
    if (r->nic && read_value(&l->nic_Bps, LIMIT_RATE, r->nic, err) < 0)
        return err_wrap(err, "%s: nic", where);
    l->part = -1;
    for (int i = 0; r->part && i < SEEN_COUNT; i++)
        if (!strcmp(r->part, seen_name[i]))
            l->part = i;
    if (r->part && l->part < 0)
        return err_data(err, "%s: no part \"%s\"", where, r->part);
    l->state = -1;
    for (int i = 0; r->state && i < STATE_COUNT; i++) {
        near_try(&state, part_state_name[i]);
        if (!strcmp(r->state, part_state_name[i]))
            l->state = i;
    }
    if (r->state && l->state < 0)
        return err_data(err, "%s: no state \"%s\"%s", where, r->state, near_text(&state));
    l->bytes = (double)bytes;
    l->tier = r->tier ? mem_strdup(r->tier) : NULL;
    return 0;
}

static int read_row(struct limits *all, json_t *from, const char *where, struct err *err)
{
    struct limit l = {.op = -1};
    struct row_text r = {0};
    int optional = 0;

    if (json_take(from, where, err,
                  "{s:s, s?s, s?s, s?s, s?s, s?s, s?s, s?o, s?o, s?s, s?s, s?s, s?s, s?b, s:s}",
                  "check", &r.check, "at_least", &r.least, "at_most", &r.most, "warn", &r.warn,
                  "of", &r.of, "tier", &r.tier, "op", &r.op, "ranks", &r.ranks, "domains",
                  &r.domains, "bytes", &r.bytes, "part", &r.part, "state", &r.state, "nic", &r.nic,
                  "optional", &optional, "source", &r.source) < 0 ||
        find_check(&l.check, r.check, where, err) < 0 ||
        refuse_keys(&r, &limit_check[l.check], where, err) < 0 ||
        read_of(&l, r.of, where, err) < 0 || read_bounds(&l, &r, where, err) < 0 ||
        read_narrowing(&l, &r, where, err) < 0)
        return -1;
    l.optional = optional;
    l.source = mem_strdup(r.source);
    MEM_PUSH(all->limit, all->count) = l;
    return 0;
}

int limits_load(struct limits *l, const char *path, struct err *err)
{
    json_t *root, *rows;
    const char *title;
    char where[512];
    int rc;

    if (json_open(&root, path, "railgauge-limits", 1, err) < 0)
        return -1;
    rc = json_take(root, path, err, "{s:s, s:i, s?s, s?s, s:s, s:o}", "format", &(const char *){0},
                   "version", &(int){0}, "$schema", &(const char *){0}, SEAL_KEY,
                   &(const char *){0}, "title", &title, "limits", &rows);
    if (rc == 0 && !json_is_array(rows))
        rc = err_data(err, "%s: \"limits\" is not a list", path);
    for (size_t i = 0; rc == 0 && i < json_array_size(rows); i++) {
        snprintf(where, sizeof(where), "%s: limits[%zu]", path, i);
        rc = read_row(l, json_array_get(rows, i), where, err);
    }
    if (rc == 0 && !l->title)
        l->title = mem_strdup(title);
    json_decref(root);
    return rc;
}

int limits_builtin(struct limits *l, const char *preset, struct err *err)
{
    char *path = file_data("jobs/limits/default.json"),
         *name = preset ? mem_printf("jobs/limits/%s.json", preset) : NULL,
         *more = name ? file_data(name) : NULL;
    int rc = path
                 ? limits_load(l, path, err)
                 : err_config(err, "jobs/limits/default.json is not installed; RAILGAUGE_DATA says "
                                   "where data files are");

    if (rc == 0 && more)
        rc = limits_load(l, more, err);
    free(path);
    free(name);
    free(more);
    return rc;
}

void limits_free(struct limits *l)
{
    for (int i = 0; i < l->count; i++) {
        free(l->limit[i].tier);
        free(l->limit[i].source);
    }
    free(l->limit);
    free(l->title);
    *l = (struct limits){0};
}
