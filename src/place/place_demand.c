/* SPDX-License-Identifier: BSD-3-Clause */
/* place_demand.c - bytes from each rank to each other: read from a table or from Matrix Market
 * (math.nist.gov/MatrixMarket/formats.html: banner, % comments, "rows columns entries", then "row
 * column value" from 1), or made from a step's traffic; as a list by rank. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "place/place_impl.h"

enum { FILE_MAX = 256 << 20, RANK_MAX = LAYOUT_RANKS_MAX - 1 };
static const double BYTES_MAX = 1e18;

static void add(struct demand *d, int src, int dst, double bytes)
{
    MEM_PUSH(d->flow, d->flows) = (struct flow){src, dst, bytes};
    d->ranks = src >= d->ranks ? src + 1 : d->ranks;
    d->ranks = dst >= d->ranks ? dst + 1 : d->ranks;
}

static int read_rows(struct demand *d, const struct tsv *t, struct err *err)
{
    int src = tsv_column(t, "src", err), dst, bytes;

    if (src < 0 || (dst = tsv_column(t, "dst", err)) < 0 ||
        (bytes = tsv_column(t, "bytes", err)) < 0)
        return -1;
    for (int i = 0; i < t->rows; i++) {
        int from, to;
        double value;
        if (tsv_int(t, i, src, 0, RANK_MAX, &from, err) < 0 ||
            tsv_int(t, i, dst, 0, RANK_MAX, &to, err) < 0 ||
            tsv_double(t, i, bytes, 0, BYTES_MAX, &value, err) < 0)
            return -1;
        add(d, from, to, value);
    }
    return 0;
}

/* --- Matrix Market --- */

struct market {
    const char *path;
    char *text; /* rest of the text */
    int line;
    bool symmetric;
    int rank_max;
    long entries;
};

/* Returns the next line that is no comment, without its end; NULL at the end of the file. */
static char *next_line(struct market *m)
{
    char *line;

    while ((line = strsep(&m->text, "\n")) != NULL) {
        m->line++;
        line[strcspn(line, "\r")] = '\0';
        if (line[0] != '%' && line[strspn(line, " \t")])
            return line;
    }
    return NULL;
}

static const char *word(char **line)
{
    static const char blank[] = " \t";
    char *w;

    do
        w = strsep(line, blank);
    while (w && !*w);
    return w ? w : "";
}

static int bad_word(const struct market *m, const char *what, const char *got, const char *want,
                    struct err *err)
{
    return err_data(err, "%s:%d: %s \"%.40s\" of Matrix Market is not read, only %s", m->path,
                    m->line, what, got, want);
}

static int banner(struct market *m, struct err *err)
{
    char *line = strsep(&m->text, "\n"), *rest = line;

    m->line = 1;
    line[strcspn(line, "\r")] = '\0';
    word(&rest);
    const char *object = word(&rest), *format = word(&rest), *field = word(&rest);
    const char *symmetry = word(&rest);
    if (strcasecmp(object, "matrix"))
        return bad_word(m, "object", object, "matrix", err);
    if (strcasecmp(format, "coordinate"))
        return bad_word(m, "format", format, "coordinate", err);
    if (strcasecmp(field, "real") && strcasecmp(field, "integer"))
        return bad_word(m, "field", field, "real and integer", err);
    m->symmetric = !strcasecmp(symmetry, "symmetric");
    if (!m->symmetric && strcasecmp(symmetry, "general"))
        return bad_word(m, "symmetry", symmetry, "general and symmetric", err);
    return 0;
}

static int number(const struct market *m, const char *what, const char *text, int min, int max,
                  int *out, struct err *err)
{
    struct err why;

    if (units_int(out, text, min, max, &why) < 0)
        return err_data(err, "%s:%d: %s %s", m->path, m->line, what, why.text);
    return 0;
}

static int sizes(struct market *m, struct err *err)
{
    char *line = next_line(m), *rest = line;
    int rows, columns, entries;

    if (!line)
        return err_data(err, "%s: the line of sizes is missing", m->path);
    if (number(m, "rows", word(&rest), 1, LAYOUT_RANKS_MAX, &rows, err) < 0 ||
        number(m, "columns", word(&rest), 1, LAYOUT_RANKS_MAX, &columns, err) < 0 ||
        number(m, "entries", word(&rest), 0, 1 << 28, &entries, err) < 0)
        return -1;
    if (rows != columns)
        return err_data(err,
                        "%s:%d: %d rows and %d columns: ranks send to ranks, a square is needed",
                        m->path, m->line, rows, columns);
    m->rank_max = rows;
    m->entries = entries;
    return 0;
}

static int entry(struct demand *d, const struct market *m, char *line, struct err *err)
{
    struct err why;
    double bytes;
    int row, column;

    if (number(m, "row", word(&line), 1, m->rank_max, &row, err) < 0 ||
        number(m, "column", word(&line), 1, m->rank_max, &column, err) < 0)
        return -1;
    if (units_double(&bytes, word(&line), 0, BYTES_MAX, &why) < 0)
        return err_data(err, "%s:%d: bytes %s", m->path, m->line, why.text);
    if (*word(&line))
        return err_data(err, "%s:%d: more than row, column and bytes", m->path, m->line);
    add(d, row - 1, column - 1, bytes);
    if (m->symmetric && row != column)
        add(d, column - 1, row - 1, bytes);
    return 0;
}

static int read_market(struct demand *d, char *text, const char *path, struct err *err)
{
    struct market m = {.path = path, .text = text};
    char *line;
    long seen = 0;

    if (banner(&m, err) < 0 || sizes(&m, err) < 0)
        return -1;
    for (; (line = next_line(&m)) != NULL; seen++)
        if (entry(d, &m, line, err) < 0)
            return -1;
    if (seen != m.entries)
        return err_data(err, "%s: %ld entries are announced and %ld are there", path, m.entries,
                        seen);
    d->ranks = m.rank_max;
    return 0;
}

int demand_parse(struct demand *d, char *text, size_t len, const char *path, struct err *err)
{
    static const char mark[] = "%%MatrixMarket";
    struct tsv t;
    int rc;

    memset(d, 0, sizeof(*d));
    if (strlen(text) != len) {
        rc = err_data(err, "%s: a NUL character after %zu bytes", path, strlen(text));
        free(text);
    } else if (!strncasecmp(text, mark, strlen(mark))) {
        rc = read_market(d, text, path, err);
        free(text);
    } else {
        rc = tsv_parse(&t, path, text, err);
        if (rc == 0) {
            rc = read_rows(d, &t, err);
            tsv_free(&t);
        }
    }
    if (rc == 0 && d->flows == 0)
        rc = err_data(err, "%s: nobody sends anything", path);
    if (rc < 0)
        demand_free(d);
    return rc;
}

int demand_load(struct demand *d, const char *path, struct err *err)
{
    char *text;
    size_t len;

    memset(d, 0, sizeof(*d));
    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    return demand_parse(d, text, len, path, err);
}

void demand_free(struct demand *d)
{
    free(d->flow);
    memset(d, 0, sizeof(*d));
}

/* --- by rank --- */

/* Larger all-to-all groups are reduced to peers 1, 2, 4 ... apart with the same total bytes. */
enum { ALL_PAIRS_MAX = 16 };

/* Add the wire bytes of one message of one group, by its pattern. */
static void group_flows(struct demand *d, const struct message *m, int group)
{
    int n = m->span.size;
    double bytes = m->count * message_wire_bytes(m, n);
    bool all = op_table[m->op].links == OP_EXCHANGE, few = n <= ALL_PAIRS_MAX;
    int peers = 0, last = all ? n - 1 : 1;

    for (int k = 1; k <= last; k = few ? k + 1 : 2 * k)
        peers++;
    for (int i = 0; i < n; i++) {
        int rank = span_rank(&m->span, group, i);
        if (op_table[m->op].links == OP_NEXT && i == n - 1)
            break; /* a pipeline is no ring */
        for (int k = 1; k <= last; k = few ? k + 1 : 2 * k)
            add(d, rank, span_rank(&m->span, group, (i + k) % n), bytes / peers);
    }
}

static void traffic_flows(struct demand *d, const struct traffic *t, int ranks)
{
    for (int i = 0; i < t->messages; i++)
        for (int g = 0; g < span_groups(&t->message[i].span, ranks); g++)
            group_flows(d, &t->message[i], g);
}

enum { FEW_TIES = 24 }; /* more are sorted by qsort() */

static void sort_few(struct tie *t, int n)
{
    for (int i = 1; i < n; i++) {
        struct tie one = t[i];
        int k = i;
        for (; k > 0 && t[k - 1].peer > one.peer; k--)
            t[k] = t[k - 1];
        t[k] = one;
    }
}

/* Merge the ties to the same peer.  Returns their number. */
static int merge(struct tie *t, int n)
{
    int kept = 0;

    if (n <= FEW_TIES)
        sort_few(t, n);
    else
        qsort(t, (size_t)n, sizeof(*t), stats_by_int);
    for (int i = 0; i < n; i++)
        if (kept && t[kept - 1].peer == t[i].peer) {
            t[kept - 1].out += t[i].out;
            t[kept - 1].in += t[i].in;
        } else {
            t[kept++] = t[i];
        }
    return kept;
}

static struct ties *by_rank(const struct demand *d, int ranks)
{
    struct ties *t = mem_calloc(1, sizeof(*t));
    int *fill = mem_calloc((size_t)ranks + 2, sizeof(int)), at = 0;

    t->start = mem_calloc((size_t)ranks + 2, sizeof(int));
    t->tie = mem_calloc(2 * (size_t)d->flows + 1, sizeof(*t->tie));
    for (int i = 0; i < d->flows; i++)
        if (d->flow[i].src != d->flow[i].dst) {
            fill[d->flow[i].src + 1]++;
            fill[d->flow[i].dst + 1]++;
        }
    for (int r = 0; r < ranks; r++)
        fill[r + 1] += fill[r];
    memcpy(t->start, fill, ((size_t)ranks + 1) * sizeof(int));
    for (int i = 0; i < d->flows; i++) {
        const struct flow *f = &d->flow[i];
        if (f->src == f->dst)
            continue;
        t->tie[fill[f->src]++] = (struct tie){f->dst, f->bytes, 0};
        t->tie[fill[f->dst]++] = (struct tie){f->src, 0, f->bytes};
    }
    for (int r = 0; r < ranks; r++) {
        int from = t->start[r], n = merge(&t->tie[from], t->start[r + 1] - from);
        memmove(&t->tie[at], &t->tie[from], (size_t)n * sizeof(*t->tie));
        t->start[r] = at;
        at += n;
    }
    t->start[ranks] = at;
    free(fill);
    return t;
}

const struct ties *placer_ties(struct placer *pl)
{
    struct demand d = {0};

    if (pl->ties)
        return pl->ties;
    if (!pl->ask->demand)
        traffic_flows(&d, &pl->step->traffic, pl->ranks);
    pl->ties = by_rank(pl->ask->demand ? pl->ask->demand : &d, pl->ranks);
    demand_free(&d);
    return pl->ties;
}
