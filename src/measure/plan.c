/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"

const char *const stage_name[STAGE_COUNT + 1] = {
    "class",    "tournament", "shift",        "isolated",     "ladder", "collective",
    "retest",   "nic",        "nic-ladder",   "nic-retest",   "random", "fresh-tx",
    "fresh-rx", "nic-random", "nic-fresh-tx", "nic-fresh-rx", NULL};

struct round *plan_add(struct plan *p, enum stage stage, enum op op, int groups)
{
    struct round r = {.id = p->rounds, .stage = stage, .op = op, .factor = 2, .groups = groups};

    r.group = mem_calloc((size_t)groups, sizeof(*r.group));
    MEM_PUSH(p->round, p->rounds) = r;
    return &p->round[p->rounds - 1];
}

void plan_add_pairs(struct plan *p, const struct plan_pairs *what, const int (*pair)[2], int pairs)
{
    struct round *r = plan_add(p, what->stage, what->op, pairs);

    r->first = r->last = what->bytes;
    r->epochs = what->epochs;
    for (int i = 0; i < pairs; i++)
        r->group[i] = (struct plan_group){mem_dup(pair[i], 2, sizeof(int)), 2};
}

static void forget_groups(struct round *r)
{
    for (int g = 0; r->group && g < r->groups && !r->block && !r->lent; g++)
        free(r->group[g].members);
    if (!r->lent) {
        free(r->block);
        free(r->group);
    }
    r->group = NULL;
    r->block = NULL;
}

void plan_forget_pairs(struct plan *p)
{
    for (int i = 0; i < p->rounds; i++)
        if (op_is_pair(p->round[i].op))
            forget_groups(&p->round[i]);
}

void plan_free(struct plan *p)
{
    for (int i = 0; i < p->rounds; i++)
        forget_groups(&p->round[i]);
    free(p->round);
    memset(p, 0, sizeof(*p));
}

int plan_steps(const struct round *r)
{
    int n = 0;

    for (size_t s = r->first; s <= r->last; s *= (size_t)r->factor)
        n++;
    return n;
}

size_t plan_size(const struct round *r, int group_size, int step)
{
    size_t unit = (size_t)op_blocks(r->op, group_size), s = r->first, before = 0, whole = 0;

    for (int i = 0; i <= step; i++, s *= (size_t)r->factor) {
        before = whole;
        whole = (s + unit - 1) / unit * unit;
    }
    return whole > before ? whole : 0;
}

/* Text of a plan, written piece by piece, because a plan has millions of ids. */
struct plan_out {
    FILE *file; /* NULL: only the checksum is wanted */
    unsigned crc;
    size_t len;
    char text[1 << 14];
};

static void flush(struct plan_out *o)
{
    if (o->file)
        fwrite_unlocked(o->text, 1, o->len, o->file); /* errors show when the file is closed */
    o->crc = file_crc32c(o->crc, o->text, o->len);
    o->len = 0;
}

/* Room for a number, or for the head of a round. */
static char *room(struct plan_out *o, size_t len)
{
    if (sizeof(o->text) - o->len < len)
        flush(o);
    return o->text + o->len;
}

/* Write an id after a separator; 0: no separator. */
static void write_id(struct plan_out *o, char before, int id)
{
    char *to = room(o, 1 + UNITS_TEXT);

    *to = before;
    to += before != '\0';
    o->len = (size_t)(to - o->text) + units_whole(to, (uint64_t)id);
}

/* Write "0-7,9" for 0..7 and 9: consecutive ids fold into ranges, in order. */
static void write_members(struct plan_out *o, char before, const struct plan_group *g, bool pair)
{
    if (pair) {
        write_id(o, before, g->members[0]);
        write_id(o, '>', g->members[1]);
        return;
    }
    for (int i = 0, j; i < g->size; i = j) {
        for (j = i + 1; j < g->size && g->members[j] == g->members[j - 1] + 1; j++)
            ;
        write_id(o, i ? ',' : before, g->members[i]);
        if (j - i > 1)
            write_id(o, '-', g->members[j - 1]);
    }
}

enum { HEAD_TEXT = 256 }; /* room for the head of a round */

/* Write a plan and return its CRC32C.  file NULL: only the CRC. */
static unsigned write_plan(FILE *file, const struct plan *p)
{
    struct plan_out *o = mem_calloc(1, sizeof(*o));

    o->file = file;
    o->len = (size_t)snprintf(
        o->text, sizeof(o->text),
        "# railgauge-plan 1\nround\tstage\top\tbytes_from\tbytes_to\tfactor\tepochs\tgroups\n");
    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        o->len +=
            (size_t)snprintf(room(o, HEAD_TEXT), HEAD_TEXT, "%d\t%s\t%s\t%zu\t%zu\t%d", r->id,
                             stage_name[r->stage], op_name(r->op), r->first, r->last, r->factor);
        for (int e = 0, before = '\t'; e < PLAN_EPOCHS; e++)
            if (r->epochs >> e & 1) {
                write_id(o, (char)before, e);
                before = ',';
            }
        for (int g = 0; g < r->groups; g++)
            write_members(o, g ? ' ' : '\t', &r->group[g], op_is_pair(r->op));
        *room(o, 1) = '\n';
        o->len++;
    }
    flush(o);
    unsigned crc = o->crc;
    free(o);
    return crc;
}

char *plan_text(const struct plan *p)
{
    char *text;
    size_t len;
    FILE *out = mem_stream(&text, &len);

    write_plan(out, p);
    mem_stream_end(out);
    return text;
}

unsigned plan_crc(const struct plan *p)
{
    return write_plan(NULL, p);
}

int plan_save(const struct plan *p, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    write_plan(f.stream, p);
    return file_commit(&f, err);
}

/* Parse a number inside a group text.  Returns the character after it, or NULL. */
static const char *member(const char *s, int endpoints, int *out)
{
    char *end;
    long v = *s >= '0' && *s <= '9' ? strtol(s, &end, 10) : -1;

    if (v < 0 || v >= endpoints)
        return NULL;
    *out = (int)v;
    return end;
}

/* Endpoints in the rounds that are parsed. */
struct members {
    int endpoints;
    int *round; /* last round of an endpoint, + 1 */
};

/* Parse one group, "3>7" or "0-3,8".  Each endpoint may occur once per round. */
static int parse_group(struct plan_group *g, const char *text, const struct round *r,
                       struct members *all, struct err *err)
{
    const bool pair = op_is_pair(r->op);
    const char *s = text;
    int lo, hi;

    do {
        s = member(s, all->endpoints, &lo);
        hi = lo;
        if (s && *s == '-')
            s = member(s + 1, all->endpoints, &hi);
        if (!s || hi < lo)
            return err_data(err, "\"%.40s\" is not a group of endpoints 0..%d", text,
                            all->endpoints - 1);
        for (int id = lo; id <= hi; id++) {
            if (all->round[id] == r->id + 1)
                return err_data(err, "endpoint %d is twice in this round", id);
            all->round[id] = r->id + 1;
            MEM_PUSH(g->members, g->size) = id;
        }
    } while (*s == (pair ? '>' : ',') && s++);
    if (*s || g->size < 2 || (pair && g->size != 2))
        return err_data(err, "\"%.40s\" is not %s", text,
                        pair ? "a pair such as 0>5" : "a group of two or more");
    return 0;
}

static int parse_groups(struct round *r, char *text, struct members *all, struct err *err)
{
    char *save = NULL;

    for (char *t = strtok_r(text, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
        struct plan_group g = {NULL, 0};
        int rc = parse_group(&g, t, r, all, err);
        MEM_PUSH(r->group, r->groups) = g;
        if (rc < 0)
            return -1;
    }
    return r->groups ? 0 : err_data(err, "no groups");
}

static int parse_epochs(unsigned *epochs, const char *text, struct err *err)
{
    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s >= '0' + PLAN_EPOCHS || (s[1] && s[1] != ','))
            return err_data(err, "\"%s\" is not a list of epochs 0..%d", text, PLAN_EPOCHS - 1);
        *epochs |= 1u << (*s - '0');
        s += s[1] == ',';
    }
    return *epochs ? 0 : err_data(err, "no epoch");
}

static int find_stage(const char *text)
{
    for (int i = 0; i < STAGE_COUNT; i++)
        if (!strcmp(stage_name[i], text))
            return i;
    return -1;
}

enum { ROUND, STAGE, OP, FROM, TO, FACTOR, EPOCHS, GROUPS, COLUMNS };
static const char *const columns[COLUMNS] = {"round",    "stage",  "op",     "bytes_from",
                                             "bytes_to", "factor", "epochs", "groups"};

static int parse_row(struct plan *p, const struct tsv *t, int row, const int *col,
                     struct members *all, struct err *err)
{
    char **cell = t->row[row].cell;
    int stage = find_stage(cell[col[STAGE]]), op = op_find(cell[col[OP]]), id, rc = 0;
    struct err why;

    if (tsv_int(t, row, col[ROUND], 0, 1 << 30, &id, err) < 0)
        return -1;
    if (id != p->rounds)
        return err_data(err, "%s:%d: round %d where %d follows", t->path, t->row[row].line, id,
                        p->rounds);
    if (stage < 0 || op < 0)
        return err_data(err, "%s:%d: \"%s\" is not %s", t->path, t->row[row].line,
                        cell[col[stage < 0 ? STAGE : OP]], stage < 0 ? "a stage" : "an operation");
    struct round *r = plan_add(p, (enum stage)stage, (enum op)op, 0);
    if (tsv_size(t, row, col[FROM], &r->first, err) < 0 ||
        tsv_size(t, row, col[TO], &r->last, err) < 0 ||
        tsv_int(t, row, col[FACTOR], 2, 1024, &r->factor, err) < 0)
        return -1;
    if (r->first < 1 || r->last < r->first)
        return err_data(err, "%s:%d: sizes %zu to %zu", t->path, t->row[row].line, r->first,
                        r->last);
    if (parse_epochs(&r->epochs, cell[col[EPOCHS]], &why) < 0 ||
        parse_groups(r, cell[col[GROUPS]], all, &why) < 0)
        rc = err_data(err, "%s:%d: %s", t->path, t->row[row].line, why.text);
    return rc;
}

int plan_parse(struct plan *p, const char *path, char *text, int endpoints, struct err *err)
{
    struct tsv t;
    struct members all = {endpoints, NULL};
    int col[COLUMNS], rc = -1;

    memset(p, 0, sizeof(*p));
    if (tsv_parse(&t, path, text, err) < 0)
        return -1;
    if (!t.comments || strcmp(t.comment[0], "# railgauge-plan 1")) {
        err_data(err, "%s:1: not a railgauge-plan file of version 1", path);
        goto out;
    }
    for (int i = 0; i < COLUMNS; i++)
        if ((col[i] = tsv_column(&t, columns[i], err)) < 0)
            goto out;
    if (t.columns != COLUMNS) {
        err_data(err, "%s: %d columns where %d are known", path, t.columns, COLUMNS);
        goto out;
    }
    all.round = mem_calloc((size_t)endpoints, sizeof(*all.round));
    for (int i = 0; i < t.rows; i++)
        if (parse_row(p, &t, i, col, &all, err) < 0)
            goto out;
    rc = t.rows ? 0 : err_data(err, "%s: no rounds", path);
out:
    if (rc < 0)
        plan_free(p);
    free(all.round);
    tsv_free(&t);
    return rc;
}

int plan_load(struct plan *p, const char *path, int endpoints, struct err *err)
{
    char *text;

    memset(p, 0, sizeof(*p));
    if (file_read(&text, NULL, path, (size_t)2 << 30, err) < 0)
        return -1;
    return plan_parse(p, path, text, endpoints, err);
}

int plan_share(struct plan *p, const char *what, struct world *w, int endpoints, struct err *err)
{
    void *text = w->rank == 0 && p->rounds ? plan_text(p) : NULL;
    size_t len = text ? strlen(text) : 0;
    int rc = w->share(w, &text, &len, err);

    if (rc == 0 && w->rank != 0 && len)
        return plan_parse(p, what, text, endpoints, err);
    free(text);
    return rc;
}
