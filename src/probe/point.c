/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "probe/taint.h"

/* "ci", "time", "count", "failed" */
static const char *const stop_name[] = {"ci", "time", "count", "failed", NULL};

#define POINTS_MAX_BYTES ((size_t)8 << 30)

static const char *const columns[] = {
    "round",   "group",   "epoch",    "stage",  "op",     "ranks",   "src",    "dst",     "flows",
    "bytes",   "n",       "sec",      "sec_lo", "sec_hi", "sec_min", "sec_p5", "sec_p95", "sec_max",
    "sec_mad", "slowest", "skew_sec", "late",   "stop",   "check",   "note",   "crc32c",
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

static const char *const check_name[] = {"no", "ok", "wrong", NULL};

static int word(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text))
            return i;
    return -1;
}

/* One row being read: the cells, and where the first problem was. */
struct cells {
    char *cell[COLUMNS];
    int at; /* next column */
    struct err why;
    int bad; /* column of the first problem, -1: none */
};

static int next_int(struct cells *c, int min, int max)
{
    int v = 0;

    if (c->bad < 0 && units_int(&v, c->cell[c->at], min, max, &c->why) < 0)
        c->bad = c->at;
    c->at++;
    return v;
}

static double next_sec(struct cells *c)
{
    double v = NAN;

    if (strcmp(c->cell[c->at], "nan") && c->bad < 0 &&
        units_double(&v, c->cell[c->at], 0, 1e9, &c->why) < 0)
        c->bad = c->at;
    c->at++;
    return v;
}

static int next_word(struct cells *c, const char *const *names)
{
    int v = word(names, c->cell[c->at]);

    if (v < 0 && c->bad < 0) {
        err_data(&c->why, "\"%s\" is not a known word", c->cell[c->at]);
        c->bad = c->at;
    }
    c->at++;
    return v < 0 ? 0 : v;
}

static int next_op(struct cells *c)
{
    int v = op_find(c->cell[c->at]);

    if (v < 0 && c->bad < 0) {
        err_data(&c->why, "\"%s\" is not an operation", c->cell[c->at]);
        c->bad = c->at;
    }
    c->at++;
    return v < 0 ? 0 : v;
}

static void read_cells(struct point *p, struct cells *c, int endpoints)
{
    size_t bytes = 0;

    p->round = next_int(c, 0, 1 << 30);
    p->group = next_int(c, 0, 1 << 30);
    p->epoch = next_int(c, 0, PLAN_EPOCHS - 1);
    p->stage = (enum stage)next_word(c, stage_name);
    p->op = (enum op)next_op(c);
    p->ranks = next_int(c, 2, endpoints);
    p->src = next_int(c, 0, endpoints - 1);
    p->dst = next_int(c, 0, endpoints - 1);
    p->flows = next_int(c, 1, endpoints);
    if (c->bad < 0 && units_bytes(&bytes, c->cell[c->at], &c->why) < 0)
        c->bad = c->at;
    c->at++;
    p->bytes = bytes;
    p->sec.n = next_int(c, 0, 1 << 30);
    p->sec.median = next_sec(c);
    p->sec.lo = next_sec(c);
    p->sec.hi = next_sec(c);
    p->sec.min = next_sec(c);
    p->sec.p5 = next_sec(c);
    p->sec.p95 = next_sec(c);
    p->sec.max = next_sec(c);
    p->sec.mad = next_sec(c);
    p->slowest = next_int(c, -1, endpoints - 1);
    p->skew = next_sec(c);
    p->late = next_int(c, -1, endpoints - 1);
    p->stop = (enum stop)next_word(c, stop_name);
    int check = next_word(c, check_name);
    p->checked = check > 0;
    p->wrong = check == 2;
    snprintf(p->note, sizeof(p->note), "%s", c->cell[c->at]);
    if (c->bad < 0 && p->stop != STOP_FAILED && !(p->sec.median > 0)) {
        c->bad = 11;
        err_data(&c->why, "time %g is not positive", p->sec.median);
    }
}

/* Parse one row without its newline; text is cut up. */
static int parse_row(struct point *p, const char *path, int line, char *text, int endpoints,
                     struct err *err)
{
    struct cells c = {.bad = -1};
    int n = 0;

    for (char *next = text; next; n++) {
        char *here = next;
        next = strchr(here, '\t');
        if (next)
            *next++ = '\0';
        if (n < COLUMNS)
            c.cell[n] = here;
    }
    if (n != COLUMNS)
        return err_data(err, "%s:%d: %d columns where %d are needed", path, line, n, COLUMNS);
    memset(p, 0, sizeof(*p));
    read_cells(p, &c, endpoints);
    if (c.bad >= 0)
        return err_data(err, "%s:%d: column %s: %s", path, line, columns[c.bad], c.why.text);
    return 0;
}

/* Does the row carry the CRC of its own text? */
static bool row_whole(const char *text, size_t len)
{
    const char *tab = memrchr(text, '\t', len);
    char want[9];

    if (!tab || text + len - tab != 9)
        return false;
    snprintf(want, sizeof(want), "%08x", file_crc32c(0, text, (size_t)(tab + 1 - text)));
    return !memcmp(want, tab + 1, 8);
}

static int parse_head(struct points *p, const char *path, const char *line, struct err *err)
{
    int version = 0, used = 0, more = 0;
    int n =
        sscanf(line, "# railgauge-points %d plan=%8x endpoints=%d transport=%15s%n topology=%8x%n",
               &version, &p->plan_crc, &p->endpoints, p->transport, &used, &p->topology_crc, &more);

    p->bound = n == 5;
    if (n < 4 || line[p->bound ? more : used])
        return err_data(err, "%s:1: not a railgauge-points file: \"%.60s\"", path, line);
    if (version != 1)
        return err_data(err, "%s:1: version %d is not 1", path, version);
    if (p->endpoints < 2 || p->endpoints > 1 << 24)
        return err_data(err, "%s:1: endpoints=%d is outside 2..%d", path, p->endpoints, 1 << 24);
    return 0;
}

static int parse_header(const char *path, int line, const char *text, struct err *err)
{
    const char *at = text;

    for (int i = 0; i < COLUMNS; i++) {
        size_t n = strlen(columns[i]);
        if (strncmp(at, columns[i], n) || at[n] != (i + 1 < COLUMNS ? '\t' : '\0'))
            return err_data(err, "%s:%d: column %d of the header is not \"%s\"", path, line, i + 1,
                            columns[i]);
        at += n + 1;
    }
    return 0;
}

int points_parse(struct points *p, const char *path, char *text, size_t len, struct err *err)
{
    int line = 0, header = 0;
    char *end = text + len;

    memset(p, 0, sizeof(*p));
    for (char *here = text; here < end;) {
        char *nl = memchr(here, '\n', (size_t)(end - here)), *next = nl ? nl + 1 : end;
        line++;
        if (!nl) {
            p->torn = (int)(end - here);
            break;
        }
        *nl = '\0';
        if (tsv_clean(path, line, here, (size_t)(nl - here), next < end ? err : NULL) < 0) {
            if (next < end)
                goto fail;
            p->torn = (int)(end - here);
            break;
        }
        if (line == 1) {
            if (parse_head(p, path, here, err) < 0)
                goto fail;
        } else if (*here == '#') {
            /* provenance, for people */
        } else if (!header) {
            if (parse_header(path, line, here, err) < 0)
                goto fail;
            header = 1;
        } else if (!row_whole(here, (size_t)(nl - here))) {
            if (next < end) {
                err_data(err, "%s:%d: CRC does not match the row", path, line);
                goto fail;
            }
            p->torn = (int)(end - here);
            break;
        } else {
            struct point one;
            if (parse_row(&one, path, line, here, p->endpoints, err) < 0)
                goto fail;
            MEM_PUSH(p->point, p->count) = one;
        }
        here = next;
    }
    if (line == 0 || (line == 1 && p->torn)) {
        err_data(err, "%s: no header", path);
        goto fail;
    }
    return 0;
fail:
    points_free(p);
    return -1;
}

int points_load(struct points *p, const char *path, struct err *err)
{
    char *text;
    size_t len;

    memset(p, 0, sizeof(*p));
    if (file_read(&text, &len, path, POINTS_MAX_BYTES, err) < 0)
        return -1;
    int rc = points_parse(p, path, text, len, err);
    free(text);
    return rc;
}

void points_free(struct points *p)
{
    free(p->point);
    memset(p, 0, sizeof(*p));
}

void point_write_header(FILE *out)
{
    for (int i = 0; i < COLUMNS; i++)
        fprintf(out, "%s%c", columns[i], i + 1 < COLUMNS ? '\t' : '\n');
}

int point_format(char *buf, size_t room, const struct point *p)
{
    const struct summary *s = &p->sec;
    int n =
        snprintf(buf, room,
                 "%d\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%zu\t%d\t%.7g\t%.7g\t%.7g\t%.7g\t%.7g\t%.7g\t"
                 "%.7g\t%.3g\t%d\t%.3g\t%d\t%s\t%s\t%s\t",
                 p->round, p->group, p->epoch, stage_name[p->stage], op_name(p->op), p->ranks,
                 p->src, p->dst, p->flows, p->bytes, s->n, s->median, s->lo, s->hi, s->min, s->p5,
                 s->p95, s->max, s->mad, p->slowest, fabs(p->skew), p->late, stop_name[p->stop],
                 check_name[p->checked ? 1 + p->wrong : 0], p->note);
    unsigned crc = file_crc32c(0, buf, (size_t)n);
    return n + snprintf(buf + n, room - (size_t)n, "%08x\n", crc);
}

void point_describe(struct point *p, const struct round *r, int g, int epoch, size_t bytes)
{
    const struct plan_group *pg = &r->group[g];

    memset(p, 0, sizeof(*p));
    p->round = r->id;
    p->group = g;
    p->epoch = epoch;
    p->stage = r->stage;
    p->op = r->op;
    p->ranks = pg->size;
    p->src = pg->members[0];
    p->dst = pg->members[pg->size - 1];
    p->flows = r->groups;
    p->bytes = bytes;
    p->skew = NAN;
    p->slowest = p->late = -1;
}

char *points_trouble(const struct points *all)
{
    int wrong = 0, failed = 0, tainted = 0;
    const char *first = NULL, *taint = NULL;

    for (int i = 0; i < all->count; i++) {
        const struct point *p = &all->point[i];
        bool bad = p->wrong || p->stop == STOP_FAILED;
        wrong += p->wrong;
        failed += p->stop == STOP_FAILED;
        tainted += taint_is(p);
        first = !first && bad ? p->note : first;
        taint = !taint && taint_is(p) ? p->note : taint;
    }
    if (!first && !taint)
        return NULL;
    char *bad = first ? mem_printf("data were wrong in %d of %d points and %d failed; first: %s",
                                   wrong, all->count, failed, first)
                      : mem_strdup("");
    char *text = taint ? mem_printf("%s%s%d of %d points are tainted; first: %s", bad,
                                    first ? "; " : "", tainted, all->count, taint)
                       : mem_strdup(bad);
    free(bad);
    return text;
}

bool points_failed(const struct points *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->point[i].wrong || all->point[i].stop == STOP_FAILED)
            return true;
    return false;
}
