/* SPDX-License-Identifier: BSD-3-Clause */
/* recording_text.c - what a program of nccl-tests printed, line by line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "probe/import/recording.h"
#include "probe/import/recording_columns.h"

enum { HOST_MAX = 255, RANKS_MAX = 1 << 20 };

struct reader {
    struct recording *r;
    struct recording_table *t; /* the last one; NULL: none yet */
    int line;
    bool rows; /* between a line of column names and the end of the table */
    struct columns columns;
};

/* A new run begins: the table that has no row yet goes on. */
static struct recording_table *table(struct reader *in)
{
    if (!in->t || in->t->rows || in->t->ended)
        in->t = recording_add(in->r, in->line);
    in->rows = false;
    return in->t;
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

/* "Rank 0 Group 0 Pid 812 on node01 device 0 [0000:19:00] NVIDIA H100" behind the '#', cut up;
 * "Group N" is not always there.  *host and *model lie in text. */
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

static int read_rank(struct reader *in, char *text, struct err *err)
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

/* "size count type ...": which column is what. */
static int read_columns(struct reader *in, char *text, struct err *err)
{
    table(in);
    in->rows = true;
    return columns_read(&in->columns, in->r, in->line, text, err);
}

/* A line below the column names; whatever is no row is passed over. */
static int read_row(struct reader *in, char *text, struct err *err)
{
    struct recording_row row = {.line = in->line};
    int got = columns_row(&in->columns, &row, in->r, in->t->iters, text, err);

    if (got > 0)
        MEM_PUSH(in->t->row, in->t->rows) = row;
    return got < 0 ? -1 : 0;
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
        if (columns_split(at + strlen(starting), word, 1) > 0)
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

int recording_parse_text(struct recording *r, char *text, size_t len, struct err *err)
{
    struct reader in = {.r = r};
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
