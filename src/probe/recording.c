/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/recording.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"

enum { WORDS = 40, HOST_MAX = 255, RANKS_MAX = 1 << 20 };
#define RECORDING_MAX_BYTES ((size_t)1 << 30)

/* What a column holds; the halves' come twice, out of place first. */
enum { SIZE, COUNT, TYPE, REDOP, ROOT, TIME, ALGBW, BUSBW, WRONG, LEAST, MOST, KINDS };
static const struct {
    const char *name, *other;
} column_name[KINDS] = {{"size", ""},        {"count", ""}, {"type", ""},  {"redop", ""},
                        {"root", ""},        {"time", ""},  {"algbw", ""}, {"busbw", ""},
                        {"#wrong", "error"}, {"i_min", ""}, {"i_max", ""}};

struct reader {
    struct recording *r;
    struct recording_table *t; /* the last one; NULL: none yet */
    int line;
    bool rows;                 /* between a line of column names and the end of the table */
    int at[2][KINDS], columns; /* column of each kind in each half, -1: none */
};

struct recording_table *recording_add(struct recording *r, int line)
{
    MEM_PUSH(r->table, r->tables) =
        (struct recording_table){.line = line, .iters = 1, .threads = 1, .gpus = 1, .factor = 2};
    return &r->table[r->tables - 1];
}

void recording_busid(char out[16], const char *text)
{
    unsigned domain, bus, device;
    int used = 0;

    out[0] = '\0';
    if (sscanf(text, "%4x:%2x:%2x%n", &domain, &bus, &device, &used) == 3 && !text[used])
        snprintf(out, 16, "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff, device & 0xff);
}

const char *recording_at(const struct recording *r, const char *list, int line, char buf[320])
{
    if (r->json)
        snprintf(buf, 320, "%.280s: %s[%d]", r->path, list, line);
    else
        snprintf(buf, 320, "%.280s:%d", r->path, line);
    return buf;
}

int recording_plain(const struct recording *r, int line, const char *what, const char *text,
                    size_t max, struct err *err)
{
    char at[320];

    for (const char *s = text; *s; s++)
        if (*s < ' ' || *s > '~')
            return err_data(err, "%s: %s has the byte 0x%02x at position %d",
                            recording_at(r, "results", line, at), what, (unsigned char)*s,
                            (int)(s - text) + 1);
    if (!*text || strlen(text) > max)
        return err_data(err, "%s: %s of %zu characters where 1..%zu are possible",
                        recording_at(r, "results", line, at), what, strlen(text), max);
    return 0;
}

int recording_set(const struct recording *r, const struct recording_row *row,
                  struct recording_half *h, double sec, const double rate[2], int n,
                  struct err *err)
{
    double want = (double)row->bytes / sec / 1e9;
    char at[320];

    h->mean = true;
    h->bus = rate[0] >= 0.5 && rate[1] >= 0.5 ? rate[1] / rate[0] : 0;
    h->sec = (struct summary){.n = n,
                              .median = sec,
                              .lo = NAN,
                              .hi = NAN,
                              .min = NAN,
                              .p5 = NAN,
                              .p95 = NAN,
                              .max = NAN,
                              .mad = NAN};
    /* Rates have two decimals, times at least two digits. */
    if (fabs(rate[0] - want) <= 0.011 + 0.06 * want)
        return 0;
    return err_data(err, "%s: algbw %g GB/s is not %zu bytes in %g us, which are %.4g GB/s",
                    recording_at(r, "results", row->line, at), rate[0], row->bytes, sec * 1e6,
                    want);
}

/* A new run begins: the table that has no row yet goes on. */
static struct recording_table *table(struct reader *in)
{
    if (!in->t || in->t->rows || in->t->ended)
        in->t = recording_add(in->r, in->line);
    in->rows = false;
    return in->t;
}

static int split(char *text, char **word, int max)
{
    char *save = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save), n++)
        if (n < max)
            word[n] = w;
    return n;
}

/* The number behind "name" in a line of settings; 0: it is not there. */
static size_t setting(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static int positive(size_t v)
{
    return v >= 1 && v <= 10000000 ? (int)v : 1;
}

static void read_settings(struct reader *in, const char *text)
{
    struct recording_table *t = table(in);
    const char *warmup = strstr(text, "warmup iters: "),
               *iters = warmup ? strstr(warmup + strlen("warmup iters: "), " iters: ") : NULL;

    t->threads = positive(setting(text, "nThread "));
    t->gpus = positive(setting(text, "nGpus "));
    t->iters = iters ? positive(setting(iters, " iters: ")) : 1;
    t->factor = strstr(text, "(factor)") ? setting(text, "step: ") : 0;
}

/* The text behind " NAME "; *text moves on behind the word there. */
static bool word_after(char **text, const char *name, char **word)
{
    size_t n = strlen(name);
    char *at = *text + strspn(*text, " \t");

    if (strncmp(at, name, n) || !isspace((unsigned char)at[n]))
        return false;
    at += n;
    at += strspn(at, " \t");
    *word = at;
    at += strcspn(at, " \t");
    if (*at)
        *at++ = '\0';
    *text = at;
    return **word;
}

static int number_after(char **text, const char *name, int *out)
{
    char *word;

    return word_after(text, name, &word) ? units_int(out, word, 0, 1 << 30, NULL) : -1;
}

/* "Rank 0 Group 0 Pid 812 on node01 device 0 [0000:19:00] NVIDIA H100" behind the '#'. */
static int read_rank(struct reader *in, char *text, struct err *err)
{
    struct recording_rank k = {.line = in->line};
    char *rest = text, *host, *end, *whole = mem_strdup(text);
    int pid, rc = -1;

    if (number_after(&rest, "Rank", &k.rank) < 0)
        goto bad;
    if (!strncmp(rest + strspn(rest, " "), "Group", 5) &&
        number_after(&rest, "Group", &k.group) < 0)
        goto bad;
    if (number_after(&rest, "Pid", &pid) < 0 || !word_after(&rest, "on", &host) ||
        number_after(&rest, "device", &k.device) < 0)
        goto bad;
    rest += strspn(rest, " ");
    if (*rest != '[' || !(end = strchr(rest, ']')))
        goto bad;
    *end++ = '\0';
    recording_busid(k.busid, rest + 1);
    end += strspn(end, " ");
    end[strcspn(end, "\r")] = '\0';
    struct recording_table *t = table(in);
    if (recording_plain(in->r, in->line, "a host's name", host, HOST_MAX, err) < 0 ||
        (*end && recording_plain(in->r, in->line, "a device's name", end, 4096, err) < 0))
        goto out;
    snprintf(k.host, sizeof(k.host), "%s", host);
    snprintf(k.model, sizeof(k.model), "%s", end);
    if (t->ranks == RANKS_MAX) {
        rc = err_data(err, "%s:%d: more than %d ranks", in->r->path, in->line, RANKS_MAX);
        goto out;
    }
    MEM_PUSH(t->rank, t->ranks) = k;
    rc = 0;
    goto out;
bad:
    rc = err_data(err,
                  "%s:%d: \"%.80s\" is not \"Rank N Group N Pid N on HOST device N [PCI] NAME\"",
                  in->r->path, in->line, whole);
out:
    free(whole);
    return rc;
}

/* "size count type ...": which column is what. */
static int read_columns(struct reader *in, char *text, struct err *err)
{
    char *word[WORDS];
    int n = split(text, word, WORDS), half = -1;

    if (!in->t || in->t->rows || in->t->ended)
        table(in);
    memset(in->at, -1, sizeof(in->at));
    in->columns = n;
    if (n > WORDS)
        return err_data(err, "%s:%d: %d columns", in->r->path, in->line, n);
    for (int i = 0; i < n; i++) {
        if (!strcmp(word[i], "cputime"))
            return err_data(err,
                            "%s:%d: cputime: these times are of the calling CPU (-C 1), not of the "
                            "collective",
                            in->r->path, in->line);
        if (!strcmp(word[i], "timestamp"))
            in->columns++; /* a day and a time of day */
        for (int k = 0; k < KINDS; k++)
            if (!strcmp(word[i], column_name[k].name) || !strcmp(word[i], column_name[k].other)) {
                half += k == TIME;
                if (half < 2)
                    in->at[half > 0][k] = i;
            }
    }
    if (in->at[0][SIZE] != 0 || in->at[0][COUNT] != 1 || in->at[0][TYPE] < 0)
        return err_data(err, "%s:%d: the columns do not begin with size, count and type",
                        in->r->path, in->line);
    for (int k = TIME; k <= WRONG; k++)
        if (in->at[0][k] < 0 || in->at[1][k] < 0)
            return err_data(err, "%s:%d: column %s is not there twice (out of place, in place)",
                            in->r->path, in->line, column_name[k].name);
    in->rows = true;
    return 0;
}

static int number(const struct reader *in, char *const *word, int half, int kind, double max,
                  double *out, struct err *err)
{
    const char *text = word[in->at[half][kind]];

    if (units_double(out, text, 0, max, err) < 0)
        return err_data(err, "%s:%d: %s \"%.40s\" is not a number from 0 to %g", in->r->path,
                        in->line, column_name[kind].name, text, max);
    return 0;
}

static int read_half(const struct reader *in, char *const *word, struct recording_row *row,
                     int half, struct err *err)
{
    struct recording_half *h = &row->half[half];
    const char *wrong = word[in->at[half][WRONG]];
    double us, rate[2], count = 0, least = NAN, most = NAN;

    h->wrong = -1;
    if (!strcmp(word[in->at[half][TIME]], "N/A"))
        return 0;
    if (number(in, word, half, TIME, 1e12, &us, err) < 0 ||
        number(in, word, half, ALGBW, 1e9, &rate[0], err) < 0 ||
        number(in, word, half, BUSBW, 1e9, &rate[1], err) < 0 ||
        (strcmp(wrong, "N/A") && number(in, word, half, WRONG, 1e18, &count, err) < 0))
        return -1;
    if (in->at[half][LEAST] >= 0 && number(in, word, half, LEAST, 1e12, &least, err) < 0)
        return -1;
    if (in->at[half][MOST] >= 0 && number(in, word, half, MOST, 1e12, &most, err) < 0)
        return -1;
    if (!row->bytes)
        return 0;
    if (us <= 0)
        return err_data(err, "%s:%d: time %s us is not positive", in->r->path, in->line,
                        word[in->at[half][TIME]]);
    /* Before 2.11 the column is the largest difference, which rounding makes: nothing is wrong. */
    if (strcmp(wrong, "N/A") && count == floor(count))
        h->wrong = count > 1e9 ? 1000000000 : (int)count;
    int rc = recording_set(in->r, row, h, us / 1e6, rate, in->t->iters, err);
    h->sec.min = least / 1e6;
    h->sec.max = most / 1e6;
    return rc;
}

static bool digits(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* A line below the column names: a row when it begins with two whole numbers. */
static int read_row(struct reader *in, char *text, struct err *err)
{
    struct recording_row row = {.line = in->line, .root = -1};
    char *word[WORDS + 1];
    int n = split(text, word, WORDS + 1), root = in->at[0][ROOT], redop = in->at[0][REDOP];

    if (n < 2 || !digits(word[0]) || !digits(word[1]))
        return 0;
    if (n != in->columns)
        return err_data(err, "%s:%d: %d columns where %d are named above", in->r->path, in->line, n,
                        in->columns);
    if (units_bytes(&row.bytes, word[0], err) < 0 || row.bytes > (size_t)1 << 60)
        return err_data(err, "%s:%d: size \"%s\" is not a number of bytes", in->r->path, in->line,
                        word[0]);
    snprintf(row.type, sizeof(row.type), "%s", word[in->at[0][TYPE]]);
    snprintf(row.redop, sizeof(row.redop), "%s", redop < 0 ? "" : word[redop]);
    if (recording_plain(in->r, in->line, "a type", row.type, 15, err) < 0 ||
        (redop >= 0 && recording_plain(in->r, in->line, "a redop", row.redop, 15, err) < 0))
        return -1;
    if (root >= 0 && units_int(&row.root, word[root], -1, 1 << 24, err) < 0)
        return err_data(err, "%s:%d: root \"%.40s\" is not a rank or -1", in->r->path, in->line,
                        word[root]);
    for (int half = 0; half < 2; half++)
        if (read_half(in, word, &row, half, err) < 0)
            return -1;
    MEM_PUSH(in->t->row, in->t->rows) = row;
    return 0;
}

/* What launchers put before a line: "[1,0]<stdout>: " (mpirun --tag-output), "0: " (srun -l). */
static char *strip(char *line)
{
    char *at = line + strspn(line, " "), *end = at;

    if (*at == '[' && (end = strstr(at, "]<stdout>:")))
        return end + strlen("]<stdout>:");
    end = at + strspn(at, "0123456789");
    return end > at && end[0] == ':' && end[1] == ' ' ? end + 2 : line;
}

/* A line that begins with '#'. */
static int read_comment(struct reader *in, char *text, struct err *err)
{
    struct recording *r = in->r;
    char *at = text + strspn(text, " "), *word[1];
    const char *library = strstr(at, "nccl-library=");
    static const char starting[] = "Collective test starting: ";

    if (!strncmp(at, "nccl-tests version ", 19)) {
        table(in);
        r->library = library ? (int)(setting(library, "nccl-library=") & 0xffffff) : 0;
        snprintf(r->version, sizeof(r->version), "%.*s", (int)strcspn(at + 19, " \r"), at + 19);
        return recording_plain(r, in->line, "the version", r->version, 23, err);
    }
    if (!strncmp(at, starting, strlen(starting))) {
        struct recording_table *t = table(in);
        if (split(at + strlen(starting), word, 1) > 0)
            snprintf(t->program, sizeof(t->program), "%s", word[0]);
        return recording_plain(r, in->line, "the program's name", t->program, 31, err);
    } else if (!strncmp(at, "nThread ", 8)) {
        read_settings(in, at);
    } else if (!strncmp(at, "Rank ", 5)) {
        return read_rank(in, at, err);
    } else if (!strncmp(at, "size ", 5) && strstr(at, "busbw")) {
        return read_columns(in, at, err);
    } else if (!strncmp(at, "Out of bounds values", 20) && in->t) {
        in->t->ended = true;
        in->rows = false;
    }
    return 0;
}

static int read_text(struct reader *in, char *text, size_t len, struct err *err)
{
    char *end = text + len;

    for (char *here = text, *next; here < end; here = next) {
        char *nl = memchr(here, '\n', (size_t)(end - here));
        next = nl ? nl + 1 : end;
        in->line++;
        *(nl ? nl : end) = '\0';
        here = strip(here);
        char *at = here + strspn(here, " ");
        if (*at == '#' ? read_comment(in, at + 1, err) < 0 : in->rows && read_row(in, at, err) < 0)
            return -1;
    }
    return 0;
}

int recording_parse(struct recording *r, const char *path, char *text, size_t len, struct err *err)
{
    struct reader in = {.r = r};
    int rows = 0;

    *r = (struct recording){.path = mem_strdup(path)};
    r->json = text[strspn(text, " \t\r\n")] == '{';
    if ((r->json ? recording_parse_json(r, text, len, err) : read_text(&in, text, len, err)) < 0)
        goto fail;
    for (int i = 0; i < r->tables; i++)
        rows += r->table[i].rows;
    if (rows)
        return 0;
    err_data(err, "%s: no table of nccl-tests: %s", path,
             r->json     ? "its \"results\" are empty"
             : r->tables ? "there is no row of numbers below its header"
                         : "no line begins with \"# nThread\", \"#  Rank\" or \"# size count\"");
fail:
    recording_free(r);
    return -1;
}

int recording_load(struct recording *r, const char *path, struct err *err)
{
    char *text;
    size_t len;

    *r = (struct recording){.path = NULL};
    if (file_read(&text, &len, path, RECORDING_MAX_BYTES, err) < 0)
        return -1;
    int rc = recording_parse(r, path, text, len, err);
    free(text);
    return rc;
}

void recording_free(struct recording *r)
{
    for (int i = 0; i < r->tables; i++) {
        free(r->table[i].rank);
        free(r->table[i].row);
    }
    free(r->table);
    free(r->path);
    *r = (struct recording){.path = NULL};
}
