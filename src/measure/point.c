/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/point.h"

#include <ctype.h>
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "kernels/nccl_api.h"
#include "noise/noise.h"
#include "topo/topo.h"

static const char *const stop_name[] = {"ci", "time", "count", "failed", NULL};
static const char *const check_name[] = {"no", "ok", "wrong", NULL};

/* --- columns of a row, for reading and writing --- */

static const char *const registration_name[] = {"none", "buffer", "symmetric"};

// clang-format off
enum kind { INT, EPOCH, FLOWS, STAGE, OP, BYTES, SEC, TIME, SHORT, STOP, CHECK, NOTE, DTYPE, REDOP, REGISTRATION, CRC };
// clang-format on
/* limits of `most`; RANKS and ENDPOINT: by the campaign's endpoints */
enum { MANY = 1 << 30, RANKS = -1, ENDPOINT = -2 };

#define AT(member)                                                                                 \
    .at = offsetof(struct point_row, member), .size = sizeof(((struct point_row *)0)->member)
static const struct column {
    const char *name;
    enum kind kind;
    size_t at, size;
    int least, most; /* INT, EPOCH, FLOWS */
} columns[] = {
    {"round", INT, AT(point.round), .most = MANY},
    {"group", INT, AT(point.group), .most = MANY},
    {"epoch", EPOCH, AT(point.words), .most = PLAN_EPOCHS - 1},
    {"stage", STAGE, AT(point.words)},
    {"op", OP, AT(point.words)},
    {"ranks", INT, AT(point.ranks), .least = 2, .most = RANKS},
    {"src", INT, AT(point.src), .most = ENDPOINT},
    {"dst", INT, AT(point.dst), .most = ENDPOINT},
    {"flows", FLOWS, AT(point.beside), .least = 1, .most = RANKS},
    {"bytes", BYTES, AT(point.bytes)},
    {"n", INT, AT(point.n), .most = MANY},
    {"sec", SEC, AT(point.sec.median)},
    {"sec_lo", TIME, AT(point.sec.lo)},
    {"sec_hi", TIME, AT(point.sec.hi)},
    {"sec_min", SEC, AT(min)},
    {"sec_p5", SEC, AT(p5)},
    {"sec_p95", SEC, AT(p95)},
    {"sec_max", SEC, AT(max)},
    {"sec_mad", SHORT, AT(mad)},
    {"slowest", INT, AT(slowest), .least = -1, .most = ENDPOINT},
    {"skew_sec", SHORT, AT(skew)},
    {"late", INT, AT(late), .least = -1, .most = ENDPOINT},
    {"stop", STOP, AT(point.words)},
    {"check", CHECK, AT(point.words)},
    {"note", NOTE, AT(point.note)},
    {"dtype", DTYPE, AT(point.words)},
    {"redop", REDOP, AT(point.words)},
    {"registration", REGISTRATION, AT(point.words)},
    {"crc32c", .kind = CRC},
};
enum { COLUMNS = POINT_COLUMNS };
_Static_assert(sizeof(columns) / sizeof(*columns) == COLUMNS, "each has a name");

/* Columns that files of older versions lack. */
static bool is_new(const struct column *c)
{
    return c->kind >= DTYPE && c->kind <= REGISTRATION;
}
enum { NEW_COLUMNS = 3 };
_Static_assert(NCCL_DTYPES < 16 && NCCL_REDOPS < 8, "a point has no room for more");

/* Read one of n words into *out, from 1; "-": 0. */
static int read_name(unsigned *out, const char *const *names, int n, const char *text,
                     struct err *err)
{
    *out = 0;
    for (int i = 0; i < n && !*out; i++)
        *out = strcmp(names[i], text) ? 0 : (unsigned)i + 1;
    return *out || !strcmp(text, "-") ? 0 : err_data(err, "\"%s\" is not a known word", text);
}

/* Find a word in names; `likely` is the word of the previous row. */
static int read_word(int *out, const char *const *names, int likely, const char *text,
                     struct err *err)
{
    *out = likely;
    if (!strcmp(names[likely], text))
        return 0;
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) {
            *out = i;
            return 0;
        }
    return err_data(err, "\"%s\" is not a known word", text);
}

static int read_check(struct point *p, const char *text, struct err *err)
{
    int word;

    if (read_word(&word, check_name, 0, text, err) < 0)
        return -1;
    p->checked = word > 0;
    p->wrong = word == 2;
    return 0;
}

static int read_sec(double *sec, const char *text, struct err *err)
{
    *sec = NAN;
    return strcmp(text, "nan") ? units_double(sec, text, 0, 1e9, err) : 0;
}

static int read_cell(const struct column *c, struct point_row *row, const char *text, int endpoints,
                     struct err *err)
{
    struct point *p = &row->point;
    void *at = (char *)row + c->at;
    int most = c->most < 0 ? endpoints + 1 + c->most : c->most, word = 0, rc = 0;
    double sec;
    unsigned name;

    switch (c->kind) {
    case INT:
        return units_int(at, text, c->least, most, err);
    case EPOCH:
        rc = units_int(&word, text, c->least, most, err);
        p->epoch = (unsigned)word & 7;
        return rc;
    case FLOWS:
        most = most < POINT_FLOWS_MOST ? most : POINT_FLOWS_MOST;
        rc = units_int(&word, text, c->least, most, err);
        p->flows = (unsigned)word;
        return rc;
    case STAGE:
        rc = read_word(&word, stage_name, (int)p->stage, text, err);
        p->stage = (enum stage)word;
        return rc;
    case OP:
        if (!strcmp(op_name(p->op), text))
            return 0;
        word = op_find(text);
        p->op = word < 0 ? p->op : (enum op)word;
        return word < 0 ? err_data(err, "\"%s\" is not an operation", text) : 0;
    case BYTES:
        return units_bytes(at, text, err);
    case SEC:
    case SHORT:
        return read_sec(at, text, err);
    case TIME:
        rc = read_sec(&sec, text, err);
        *(struct point_time *)at = point_time(sec);
        return rc;
    case STOP:
        rc = read_word(&word, stop_name, (int)p->stop, text, err);
        p->stop = (enum stop)word;
        return rc;
    case CHECK:
        return read_check(p, text, err);
    case NOTE:
        p->note = NULL;
        if (*text)
            point_note(p, "%s", text);
        return 0;
    case DTYPE:
        rc = read_name(&name, nccl_dtype_name, NCCL_DTYPES, text, err);
        p->dtype = name & 15;
        return rc;
    case REDOP:
        rc = read_name(&name, nccl_redop_name, NCCL_REDOPS, text, err);
        p->redop = name & 7;
        return rc;
    case REGISTRATION:
        rc = read_name(&name, registration_name, 3, text, err);
        p->registration = name & 3;
        return rc;
    case CRC:
        break;
    }
    return 0;
}

static size_t put_text(char *to, const char *text)
{
    size_t n = strlen(text);

    memcpy(to, text, n);
    return n;
}

static size_t put_int(char *to, int v)
{
    const bool minus = v < 0;

    *to = '-';
    return minus + units_whole(to + minus, minus ? -(uint64_t)v : (uint64_t)v);
}

static size_t put_cell(char *to, const struct column *c, const struct point_row *row)
{
    const struct point *p = &row->point;
    const void *at = (const char *)row + c->at;

    switch (c->kind) {
    case INT:
        return put_int(to, *(const int *)at);
    case EPOCH:
        return put_int(to, (int)p->epoch);
    case FLOWS:
        return put_int(to, (int)p->flows);
    case STAGE:
        return put_text(to, stage_name[p->stage]);
    case OP:
        return put_text(to, op_name(p->op));
    case BYTES:
        return units_whole(to, p->bytes);
    case SEC:
        return units_print(to, *(const double *)at, POINT_DIGITS);
    case TIME:
        return units_print(to, point_sec(*(const struct point_time *)at), POINT_DIGITS);
    case SHORT:
        return units_print(to, fabs(*(const double *)at), 3);
    case STOP:
        return put_text(to, stop_name[p->stop]);
    case CHECK:
        return put_text(to, check_name[p->checked ? 1 + p->wrong : 0]);
    case NOTE:
        return put_text(to, point_words(p));
    case DTYPE:
        return put_text(to, p->dtype ? nccl_dtype_name[p->dtype - 1] : "-");
    case REDOP:
        return put_text(to, p->redop ? nccl_redop_name[p->redop - 1] : "-");
    case REGISTRATION:
        return put_text(to, p->registration ? registration_name[p->registration - 1] : "-");
    case CRC:
        break;
    }
    return 0;
}

/* Write the last column of a row; text is the row before it. */
static void put_crc(char to[8], const char *text, size_t len)
{
    uint32_t crc = file_crc32c(0, text, len);

    for (int i = 7; i >= 0; i--, crc >>= 4)
        to[i] = "0123456789abcdef"[crc & 15];
}

/* True if a column is equal in both rows, bit for bit. */
static bool same_cell(const struct column *c, const struct point_row *x, const struct point_row *y)
{
    const char *a = (const char *)x + c->at, *b = (const char *)y + c->at;

    return c->size == 8 ? !memcmp(a, b, 8) : !memcmp(a, b, 4);
}

/* Number of columns from i on that equal those of the previous row. */
static int alike(const struct point_row *row, const struct point_written *last, int i)
{
    int n = 0;

    while (last->len && i + n < COLUMNS - 1 && same_cell(&columns[i + n], row, &last->row))
        n++;
    return n;
}

size_t point_row(char buf[POINT_TEXT], const struct point_row *row, struct point_written *last)
{
    const char *before = buf - last->len;
    size_t n = 0;

    for (int i = 0;; i++) {
        int same = alike(row, last, i);
        size_t from = last->at[i], len = same ? last->at[i + same] - from : 0;
        memcpy(buf + n, before + from, len);
        for (; same; same--)
            last->at[i++] += (unsigned short)(n - from);
        n += len;
        last->at[i] = (unsigned short)n;
        if (columns[i].kind == CRC)
            break;
        if (last->plain && is_new(&columns[i]))
            continue;
        n += put_cell(buf + n, &columns[i], row);
        buf[n++] = '\t';
    }
    put_crc(buf + n, buf, n);
    buf[n + 8] = '\n';
    last->row = *row;
    last->len = n + 9;
    return last->len;
}

char *points_header(void)
{
    char *text = NULL;

    for (int i = 0; i < COLUMNS; i++)
        text = mem_append(text, "%s%c", columns[i].name, i + 1 < COLUMNS ? '\t' : '\n');
    return text;
}

/* --- reading --- */

/* Text of a points.tsv, as far as it was read. */
struct reader {
    struct points *p;
    const char *path;
    int line; /* last complete line */
    bool header;
    struct point_row row;      /* last row */
    double tail_of[2];         /* its sec and p95 */
    unsigned tail;             /* point_tail() of both */
    const char *cell[COLUMNS]; /* texts of its cells; length SIZE_MAX: no longer there */
    size_t length[COLUMNS];
};

/* memcmp() == 0 without a call, because most cells are a few characters and there are millions. */
static inline bool same_text(const char *a, const char *b, size_t n)
{
    uint64_t x, y;

    for (; n >= sizeof(x); n -= sizeof(x), a += sizeof(x), b += sizeof(x)) {
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        if (x != y)
            return false;
    }
    while (n && *a == *b) {
        a++;
        b++;
        n--;
    }
    return n == 0;
}

/* Parse the cell at text into column i.  The cell is terminated in place.  r->row already holds the
 * value of the previous row. */
static int parse_cell(struct reader *r, int i, char *text, const char *end, struct err *err)
{
    size_t len = r->length[i], left = (size_t)(end - text);
    bool same = len < left && text[len] == '\t' && same_text(text, r->cell[i], len);
    const char *tab = same ? text + len : memchr(text, '\t', left);

    r->cell[i] = text;
    r->length[i] = tab ? (size_t)(tab - text) : left;
    text[r->length[i]] = '\0';
    return same ? 0 : read_cell(&columns[i], &r->row, text, r->p->endpoints, err);
}

static int count_cells(const char *text, const char *end)
{
    int n = text <= end;

    for (; text < end; text++)
        n += *text == '\t';
    return n;
}

/* Parse one row without its newline; text is modified. */
static int parse_row(struct reader *r, char *text, size_t len, struct err *err)
{
    const char *end = text + len;
    struct err why;
    int i = 0, rc = 0;

    const int all = COLUMNS - (r->p->plain ? NEW_COLUMNS : 0);
    int n = 0;

    for (; i < COLUMNS && text <= end && rc == 0; i++) {
        if (r->p->plain && is_new(&columns[i]))
            continue;
        rc = parse_cell(r, i, text, end, &why);
        text += r->length[i] + 1;
        n++;
    }
    n += count_cells(text, end);
    if (n != all)
        return err_data(err, "%s:%d: %d columns where %d are needed", r->path, r->line, n, all);
    if (rc < 0)
        return err_data(err, "%s:%d: column %s: %s", r->path, r->line, columns[i - 1].name,
                        why.text);
    const double sec = r->row.point.sec.median, p95 = r->row.p95;
    if (sec != r->tail_of[0] || p95 != r->tail_of[1]) { /* else as in the row before */
        r->tail = point_tail(p95, sec);
        r->tail_of[0] = sec;
        r->tail_of[1] = p95;
    }
    r->row.point.tail = r->tail;
    if (r->row.point.stop != STOP_FAILED && !(sec > 0))
        return err_data(err, "%s:%d: column sec: time %g is not positive", r->path, r->line, sec);
    return 0;
}

/* True if the row ends with the CRC of its own text. */
static bool row_whole(const char *text, size_t len)
{
    const char *tab = memrchr(text, '\t', len);
    char want[8];

    if (!tab || text + len - tab != 9)
        return false;
    put_crc(want, text, (size_t)(tab + 1 - text));
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

static int parse_header(struct reader *r, const char *text, struct err *err)
{
    const char *at = text;
    int seen = 0;

    r->p->plain = !strstr(text, "\tdtype\t");
    for (int i = 0; i < COLUMNS; i++) {
        size_t n = strlen(columns[i].name);
        if (r->p->plain && is_new(&columns[i]))
            continue;
        seen++;
        if (strncmp(at, columns[i].name, n) || at[n] != (i + 1 < COLUMNS ? '\t' : '\0'))
            return err_data(err, "%s:%d: column %d of the header is not \"%s\"", r->path, r->line,
                            seen, columns[i].name);
        at += n + 1;
    }
    return 0;
}

/* True if the last line was cut short when it was written. */
static bool is_torn(int line, const char *text, size_t len, bool header)
{
    return tsv_clean("", line, text, len, NULL) < 0 ||
           (header && *text != '#' && !row_whole(text, len));
}

static int parse_line(struct reader *r, char *text, size_t len, struct err *err)
{
    struct points *p = r->p;

    if (tsv_clean(r->path, r->line, text, len, err) < 0)
        return -1;
    if (r->line == 1)
        return parse_head(p, r->path, text, err);
    if (*text == '#')
        return 0; /* provenance, for people only */
    if (!r->header) {
        r->header = true;
        return parse_header(r, text, err);
    }
    if (!row_whole(text, len))
        return err_data(err, "%s:%d: CRC does not match the row", r->path, r->line);
    if (parse_row(r, text, len, err) < 0)
        return -1;
    MEM_PUSH(p->point, p->count) = r->row.point;
    return 0;
}

/* Parse the lines of the text.  The last line is used only at the end of the file. */
static int parse_lines(void *arg, char *text, size_t *len, bool over, struct err *err)
{
    struct reader *r = arg;
    char *end = text + *len, *here = text;

    memset(r->length, 0xff, sizeof(r->length));
    while (here < end) {
        char *nl = memchr(here, '\n', (size_t)(end - here));
        size_t used = (size_t)((nl ? nl : end) - here);
        bool last = here + used + 1 >= end;
        if (last && !over)
            break;
        r->line++;
        here[used] = '\0';
        if (!nl || (last && is_torn(r->line, here, used, r->header))) {
            r->p->torn = (int)(end - here);
            break;
        }
        if (parse_line(r, here, used, err) < 0)
            return -1;
        here = nl + 1;
    }
    *len = (size_t)(here - text);
    return 0;
}

/* --- a point is measured once: a second row would count as evidence of its own --- */

/* In the order of measuring. */
static int compare(const struct point *a, const struct point *b)
{
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group;
}

static int by_order(const void *a, const void *b)
{
    return compare(*(const struct point *const *)a, *(const struct point *const *)b);
}

/* First point of a sorted list that another one follows with the same key. */
static const struct point *repeated_sorted(const struct points *p)
{
    const struct point **at = mem_calloc((size_t)p->count + 1, sizeof(*at)), *found = NULL;

    for (int i = 0; i < p->count; i++)
        at[i] = &p->point[i];
    qsort(at, (size_t)p->count, sizeof(*at), by_order);
    for (int i = 1; i < p->count && !found; i++)
        if (compare(at[i - 1], at[i]) == 0)
            found = at[i];
    free(at);
    return found;
}

/* A point of both of two ascending lists; NULL: none. */
static const struct point *common(const struct point *a, const struct point *a_end,
                                  const struct point *b, const struct point *b_end)
{
    while (a < a_end && b < b_end) {
        int order = compare(a, b);
        if (order == 0)
            return b;
        if (order < 0)
            a++;
        else
            b++;
    }
    return NULL;
}

enum { RUNS_MOST = 16 };

/* A whole campaign is one ascending list, one with a second pass or interruptions a few: they are
 * compared without sorting millions of rows. */
static const struct point *repeated(const struct points *p)
{
    const struct point *run[RUNS_MOST + 1], *found = NULL;
    int runs = 1;

    run[0] = p->point;
    for (int i = 1; i < p->count; i++) {
        int order = compare(&p->point[i - 1], &p->point[i]);
        if (order == 0)
            return &p->point[i];
        if (order > 0 && runs == RUNS_MOST)
            return repeated_sorted(p);
        if (order > 0)
            run[runs++] = &p->point[i];
    }
    run[runs] = p->count ? p->point + p->count : run[0];
    for (int i = 1; i < runs && !found; i++)
        for (int k = 0; k < i && !found; k++)
            found = common(run[k], run[k + 1], run[i], run[i + 1]);
    return found;
}

static int check_repeated(const struct reader *r, struct err *err)
{
    const struct point *p = repeated(r->p);

    return p ? err_data(err, "%s: round %d, group %d, epoch %d, %zu bytes: two rows for one point",
                        r->path, p->round, p->group, p->epoch, p->bytes)
             : 0;
}

static int finish(struct reader *r, int rc, struct err *err)
{
    if (rc == 0 && (r->line == 0 || (r->line == 1 && r->p->torn)))
        rc = err_data(err, "%s: no header", r->path);
    if (rc == 0)
        rc = check_repeated(r, err);
    if (rc < 0)
        points_free(r->p);
    return rc;
}

int points_parse(struct points *p, const char *path, char *text, size_t len, struct err *err)
{
    struct reader r = {.p = p, .path = path};

    memset(p, 0, sizeof(*p));
    return finish(&r, parse_lines(&r, text, &len, true, err), err);
}

int points_load(struct points *p, const char *path, struct err *err)
{
    struct reader r = {.p = p, .path = path};

    memset(p, 0, sizeof(*p));
    return finish(&r, file_blocks(path, parse_lines, &r, err), err);
}

void points_free(struct points *p)
{
    free(p->point);
    noise_court_free(p->judged);
    memset(p, 0, sizeof(*p));
}

const char *point_kind_text(unsigned kind, char out[POINT_KIND])
{
    unsigned dtype = kind & 15, redop = kind >> 4 & 7, registration = kind >> 7;

    snprintf(out, POINT_KIND, "%s%s%s%s%s", dtype ? nccl_dtype_name[dtype - 1] : "",
             redop ? " " : "", redop ? nccl_redop_name[redop - 1] : "",
             redop && registration > 1 ? ", " : "",
             registration > 1 ? registration_name[registration - 1] : "");
    return out;
}

int points_alike(const struct points *p, const struct point *more, struct err *err)
{
    const struct point *first[OP_COUNT] = {NULL};
    char a[POINT_KIND], b[POINT_KIND];

    for (int i = 0; i < p->count + (more != NULL); i++) {
        const struct point *q = i < p->count ? &p->point[i] : more;
        if (!first[q->op])
            first[q->op] = q;
        else if (point_kind(q) != point_kind(first[q->op]))
            return err_data(err,
                            "%s of %s and of %s: times of different types, reductions or "
                            "registrations of buffers are not mixed",
                            op_name(q->op),
                            *point_kind_text(point_kind(first[q->op]), a) ? a : "unknown type",
                            *point_kind_text(point_kind(q), b) ? b : "unknown type");
    }
    return 0;
}

unsigned point_tail(double p95, double median)
{
    const double usual = point_sec(point_time(median)),
                 times = (p95 == median ? usual : point_sec(point_time(p95))) / usual;
    double steps = fmax(0, round(POINT_TAIL_STEPS * log(times)));

    return times > 0 ? (unsigned)fmin(1 + steps, POINT_TAIL_MOST) : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void point_note(struct point *p, const char *fmt, ...)
{
    static void *kept; /* tree of the stored notes */
    char text[POINT_NOTE];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
    char **found = tfind(text, &kept, by_text);
    if (!found)
        found = tsearch(mem_strdup(text), &kept, by_text);
    if (found)
        p->note = *found;
    else
        mem_ended();
}

void point_describe(struct point_row *row, const struct round *r, int g, int epoch, size_t bytes)
{
    const struct plan_group *pg = &r->group[g];

    *row = (struct point_row){.point = {.round = r->id,
                                        .group = g,
                                        .epoch = epoch,
                                        .stage = r->stage,
                                        .op = r->op,
                                        .ranks = pg->size,
                                        .src = pg->members[0],
                                        .dst = pg->members[pg->size - 1],
                                        .flows = (unsigned)r->groups,
                                        .bytes = bytes},
                              .skew = NAN,
                              .slowest = -1,
                              .late = -1};
}
