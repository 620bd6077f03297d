/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/recording.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"

/* --- columns of the table, and reading a row with them --- */

enum { WORDS = 40 };

/* Contents of a column.  From COLUMN_TIME on each occurs twice, out of place first. */
enum recording_column {
    COLUMN_SIZE,
    COLUMN_COUNT,
    COLUMN_TYPE,
    COLUMN_REDOP,
    COLUMN_ROOT,
    COLUMN_TIME,
    COLUMN_ALGBW,
    COLUMN_BUSBW,
    COLUMN_WRONG,
    COLUMN_LEAST,
    COLUMN_MOST,
    COLUMNS
};

struct recording_columns {
    int at[2][COLUMNS]; /* column of each kind in each half; -1: none */
    int words;          /* words per row */
};

static const struct {
    const char *name, *other;
} column_name[COLUMNS] = {
    [COLUMN_SIZE] = {"size", ""},         [COLUMN_COUNT] = {"count", ""},
    [COLUMN_TYPE] = {"type", ""},         [COLUMN_REDOP] = {"redop", ""},
    [COLUMN_ROOT] = {"root", ""},         [COLUMN_TIME] = {"time", ""},
    [COLUMN_ALGBW] = {"algbw", ""},       [COLUMN_BUSBW] = {"busbw", ""},
    [COLUMN_WRONG] = {"#wrong", "error"}, [COLUMN_LEAST] = {"i_min", ""},
    [COLUMN_MOST] = {"i_max", ""},
};

/* Split a line into at most `max` words.  Returns their number. */
static int split_words(char *text, char **word, int max)
{
    char *save = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save), n++)
        if (n < max)
            word[n] = w;
    return n;
}

static int kind_of(const char *column)
{
    int k = 0;

    while (k < COLUMNS && strcmp(column, column_name[k].name) &&
           strcmp(column, column_name[k].other))
        k++;
    return k;
}

/* Read the column names of this line, "size count type ...".  text is modified. */
static int columns_read(struct recording_columns *c, const struct recording *r, int line,
                        char *text, struct err *err)
{
    char *word[WORDS];
    int n = split_words(text, word, WORDS), half = -1;

    memset(c->at, -1, sizeof(c->at));
    c->words = n;
    if (n > WORDS)
        return err_data(err, "%s:%d: %d columns", r->path, line, n);
    for (int i = 0; i < n; i++) {
        if (!strcmp(word[i], "cputime"))
            return err_data(err,
                            "%s:%d: cputime: these times are of the calling CPU (-C 1), not of the "
                            "collective",
                            r->path, line);
        if (!strcmp(word[i], "timestamp"))
            c->words++; /* two words: date and time of day */
        int kind = kind_of(word[i]);
        half += kind == COLUMN_TIME;
        if (kind < COLUMNS && half < 2)
            c->at[half > 0][kind] = i;
    }
    if (c->at[0][COLUMN_SIZE] != 0 || c->at[0][COLUMN_COUNT] != 1 || c->at[0][COLUMN_TYPE] < 0)
        return err_data(err, "%s:%d: the columns do not begin with size, count and type", r->path,
                        line);
    for (int k = COLUMN_TIME; k <= COLUMN_WRONG; k++)
        if (c->at[0][k] < 0 || c->at[1][k] < 0)
            return err_data(err, "%s:%d: column %s is not there twice (out of place, in place)",
                            r->path, line, column_name[k].name);
    return 0;
}

/* A line below the names. */
struct recording_cells {
    const struct recording_columns *columns;
    const struct recording *r;
    int line, iters;
    char *word[WORDS + 1];
};

static const char *cell(const struct recording_cells *in, int half, enum recording_column kind)
{
    return in->word[in->columns->at[half][kind]];
}

/* *out is not changed if there is no such column. */
static int number(const struct recording_cells *in, int half, enum recording_column kind,
                  double max, double *out, struct err *err)
{
    if (in->columns->at[half][kind] < 0 ||
        units_double(out, cell(in, half, kind), 0, max, err) == 0)
        return 0;
    return err_data(err, "%s:%d: %s \"%.40s\" is not a number from 0 to %g", in->r->path, in->line,
                    column_name[kind].name, cell(in, half, kind), max);
}

static int read_half(const struct recording_cells *in, struct recording_row *row, int half,
                     struct err *err)
{
    struct recording_half *h = &row->half[half];
    bool checked = strcmp(cell(in, half, COLUMN_WRONG), "N/A") != 0;
    double us = 0, rate[2] = {0, 0}, count = 0, least = NAN, most = NAN;

    h->wrong = -1;
    if (!strcmp(cell(in, half, COLUMN_TIME), "N/A"))
        return 0;
    if (number(in, half, COLUMN_TIME, 1e12, &us, err) < 0 ||
        number(in, half, COLUMN_ALGBW, 1e9, &rate[0], err) < 0 ||
        number(in, half, COLUMN_BUSBW, 1e9, &rate[1], err) < 0 ||
        (checked && number(in, half, COLUMN_WRONG, 1e18, &count, err) < 0) ||
        number(in, half, COLUMN_LEAST, 1e12, &least, err) < 0 ||
        number(in, half, COLUMN_MOST, 1e12, &most, err) < 0)
        return -1;
    if (!row->bytes)
        return 0;
    if (us <= 0)
        return err_data(err, "%s:%d: time %s us is not positive", in->r->path, in->line,
                        cell(in, half, COLUMN_TIME));
    /* Before 2.11 this column is the largest difference, a result of rounding: not a count of
     * errors. */
    if (checked && count == floor(count))
        h->wrong = count > 1e9 ? 1000000000 : (int)count;
    int rc = recording_set(in->r, row, h, us / 1e6, rate, in->iters, err);
    h->sec.min = least / 1e6;
    h->sec.max = most / 1e6;
    return rc;
}

/* Read size, type, reduction and root. */
static int read_kind(const struct recording_cells *in, struct recording_row *row, struct err *err)
{
    const int *at = in->columns->at[0];
    char *const *word = in->word;
    bool redop = at[COLUMN_REDOP] >= 0;

    if (units_bytes(&row->bytes, word[0], err) < 0 || row->bytes > (size_t)1 << 60)
        return err_data(err, "%s:%d: size \"%s\" is not a number of bytes", in->r->path, in->line,
                        word[0]);
    snprintf(row->type, sizeof(row->type), "%s", word[at[COLUMN_TYPE]]);
    snprintf(row->redop, sizeof(row->redop), "%s", redop ? word[at[COLUMN_REDOP]] : "");
    if (recording_plain(in->r, in->line, "a type", row->type, 15, err) < 0 ||
        (redop && recording_plain(in->r, in->line, "a redop", row->redop, 15, err) < 0))
        return -1;
    if (at[COLUMN_ROOT] >= 0 && units_int(&row->root, word[at[COLUMN_ROOT]], -1, 1 << 24, err) < 0)
        return err_data(err, "%s:%d: root \"%.40s\" is not a rank or -1", in->r->path, in->line,
                        word[at[COLUMN_ROOT]]);
    return 0;
}

static bool digits(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* Parse a line below the names into *row, whose `line` is set; times are means of `iters`.  Returns
 * 1: a row; 0: does not begin with two whole numbers; -1: it does and is wrong.  text is
 * modified. */
static int columns_row(const struct recording_columns *c, struct recording_row *row,
                       const struct recording *r, int iters, char *text, struct err *err)
{
    struct recording_cells in = {.columns = c, .r = r, .line = row->line, .iters = iters};
    int n = split_words(text, in.word, WORDS + 1);

    if (n < 2 || !digits(in.word[0]) || !digits(in.word[1]))
        return 0;
    if (n != c->words)
        return err_data(err, "%s:%d: %d columns where %d are named above", r->path, in.line, n,
                        c->words);
    row->root = -1;
    if (read_kind(&in, row, err) < 0)
        return -1;
    for (int half = 0; half < 2; half++)
        if (read_half(&in, row, half, err) < 0)
            return -1;
    return 1;
}

/* --- output of a program of nccl-tests, line by line --- */

enum { HOST_MAX = 255, RANKS_MAX = 1 << 20 };

struct recording_reader {
    struct recording *r;
    struct recording_table *t; /* current table; NULL: none yet */
    int line;
    bool rows; /* between the column names and the end of the table */
    struct recording_columns columns;
};

/* Start a new run; a table without rows is continued. */
static struct recording_table *table(struct recording_reader *in)
{
    if (!in->t || in->t->rows || in->t->ended)
        in->t = recording_add(in->r, in->line);
    in->rows = false;
    return in->t;
}

/* Number after "name" in a line of settings; 0: not found. */
static size_t setting(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static int positive(size_t v)
{
    return v >= 1 && v <= 10000000 ? (int)v : 1;
}

static void read_settings(struct recording_reader *in, const char *text)
{
    struct recording_table *t = table(in);
    const char *warmup = strstr(text, "warmup iters: "),
               *iters = warmup ? strstr(warmup + strlen("warmup iters: "), " iters: ") : NULL;

    t->threads = positive(setting(text, "nThread "));
    t->gpus = positive(setting(text, "nGpus "));
    t->iters = iters ? positive(setting(iters, " iters: ")) : 1;
    t->factor = strstr(text, "(factor)") ? setting(text, "step: ") : 0;
}

/* Find " NAME " and the word after it; *text moves past this word. */
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

/* Parse "Rank 0 Group 0 Pid 812 on node01 device 0 [0000:19:00] NVIDIA H100" after the '#'; "Group
 * N" is optional.  text is modified; *host and *model point into it. */
static int split_rank(struct recording_rank *k, char *text, char **host, char **model)
{
    char *rest = text, *end;
    int pid;

    if (number_after(&rest, "Rank", &k->rank) < 0)
        return -1;
    if (!strncmp(rest + strspn(rest, " "), "Group", 5) &&
        number_after(&rest, "Group", &k->group) < 0)
        return -1;
    if (number_after(&rest, "Pid", &pid) < 0 || !word_after(&rest, "on", host) ||
        number_after(&rest, "device", &k->device) < 0)
        return -1;
    rest += strspn(rest, " ");
    if (*rest != '[' || !(end = strchr(rest, ']')))
        return -1;
    *end++ = '\0';
    recording_busid(k->busid, rest + 1);
    end += strspn(end, " ");
    end[strcspn(end, "\r")] = '\0';
    *model = end;
    return 0;
}

static int read_rank(struct recording_reader *in, char *text, struct err *err)
{
    struct recording_rank k = {.line = in->line};
    char *host, *model, *whole = mem_strdup(text);
    int rc = split_rank(&k, text, &host, &model);

    if (rc < 0)
        err_data(err,
                 "%s:%d: \"%.80s\" is not \"Rank N Group N Pid N on HOST device N [PCI] NAME\"",
                 in->r->path, in->line, whole);
    free(whole);
    if (rc < 0)
        return -1;
    struct recording_table *t = table(in);
    if (recording_plain(in->r, in->line, "a host's name", host, HOST_MAX, err) < 0 ||
        (*model && recording_plain(in->r, in->line, "a device's name", model, 4096, err) < 0))
        return -1;
    if (t->ranks == RANKS_MAX)
        return err_data(err, "%s:%d: more than %d ranks", in->r->path, in->line, RANKS_MAX);
    snprintf(k.host, sizeof(k.host), "%s", host);
    snprintf(k.model, sizeof(k.model), "%s", model);
    MEM_PUSH(t->rank, t->ranks) = k;
    return 0;
}

/* Read the line of column names. */
static int read_columns(struct recording_reader *in, char *text, struct err *err)
{
    table(in);
    in->rows = true;
    return columns_read(&in->columns, in->r, in->line, text, err);
}

/* Read a line below the column names; lines that are not rows are skipped. */
static int read_row(struct recording_reader *in, char *text, struct err *err)
{
    struct recording_row row = {.line = in->line};
    int got = columns_row(&in->columns, &row, in->r, in->t->iters, text, err);

    if (got > 0)
        MEM_PUSH(in->t->row, in->t->rows) = row;
    return got < 0 ? -1 : 0;
}

/* Remove prefixes of launchers: "[1,0]<stdout>: " (mpirun --tag-output), "0: " (srun -l). */
static char *strip(char *line)
{
    char *at = line + strspn(line, " "), *end = at;

    if (*at == '[' && (end = strstr(at, "]<stdout>:")))
        return end + strlen("]<stdout>:");
    end = at + strspn(at, "0123456789");
    return end > at && end[0] == ':' && end[1] == ' ' ? end + 2 : line;
}

/* A line that begins with '#'. */
static int read_comment(struct recording_reader *in, char *text, struct err *err)
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
        if (split_words(at + strlen(starting), word, 1) > 0)
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

static int parse_text(struct recording *r, char *text, size_t len, struct err *err)
{
    struct recording_reader in = {.r = r};
    char *end = text + len;

    for (char *here = text, *next; here < end; here = next) {
        char *nl = memchr(here, '\n', (size_t)(end - here));
        next = nl ? nl + 1 : end;
        in.line++;
        *(nl ? nl : end) = '\0';
        here = strip(here);
        char *at = here + strspn(here, " ");
        if (*at == '#' ? read_comment(&in, at + 1, err) < 0 : in.rows && read_row(&in, at, err) < 0)
            return -1;
    }
    return 0;
}

#define RECORDING_MAX_BYTES ((size_t)1 << 30)

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

int recording_parse(struct recording *r, const char *path, char *text, size_t len, struct err *err)
{
    int rows = 0;

    *r = (struct recording){.path = mem_strdup(path)};
    r->json = text[strspn(text, " \t\r\n")] == '{';
    int rc = r->json ? recording_parse_json(r, text, len, err) : parse_text(r, text, len, err);
    for (int i = 0; i < r->tables; i++)
        rows += r->table[i].rows;
    if (rc == 0 && !rows)
        rc = err_data(err, "%s: no table of nccl-tests: %s", path,
                      r->json ? "its \"results\" are empty"
                      : r->tables
                          ? "there is no row of numbers below its header"
                          : "no line begins with \"# nThread\", \"#  Rank\" or \"# size count\"");
    if (rc < 0)
        recording_free(r);
    return rc;
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
