/* SPDX-License-Identifier: BSD-3-Clause */
/* smi_topo.c - adds the output of `nvidia-smi topo -m` to a host. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/sources.h"

/* Table of `nvidia-smi topo -m`, with tabs between its cells, and its legends.
 *
 *             GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity    GPU NUMA ID
 *     GPU0     X      NV18    PIX     0-47            0                N/A
 *
 * Text from logs and tickets may be damaged: the header underlined by escape codes, tabs turned
 * into blanks, cells glued together ("NODENODE"), cells missing at the end of a row, a row
 * continued on the next line, quotes of mail.  A row whose X is not in its own column cannot be
 * trusted and is refused.  Codes are those of the legend that the command prints, and SOC, the
 * word of drivers of 2017 for SYS. */
enum { SMI_DEVICES = 128, SMI_NVLINKS = 1000 };

struct smi_table {
    struct smi_device {
        bool gpu;
        int number;    /* GPU or NIC number; -1 for NICs up to release 515 */
        char name[32]; /* NIC: name in the legend */
        bool seen;     /* a row was read */
    } device[SMI_DEVICES];
    int devices;
    /* Meaning of a cell: SMI_NVLINKS + NVLinks, enum gpu_path, or -1. */
    short cell[SMI_DEVICES][SMI_DEVICES];
    int numa[SMI_DEVICES];
    int open, column; /* row of the line before, -1: none; number of its cells so far */
    bool cpus;        /* CPUs of the row were read */
};

enum { CELL = 64 };

static const struct {
    const char *word;
    int path;
} words[] = {{"X", PATH_SELF},  {"SYS", PATH_SYS}, {"SOC", PATH_SYS}, {"NODE", PATH_NODE},
             {"PHB", PATH_PHB}, {"PXB", PATH_PXB}, {"PIX", PATH_PIX}};

/* Parse one code at the start of the text; returns its length, 0: no code. */
static int take_code(const char *text, int *out)
{
    if (!strncmp(text, "NV", 2) && isdigit((unsigned char)text[2])) {
        char *end;
        long links = strtol(text + 2, &end, 10);
        *out = SMI_NVLINKS + (int)(links < GPU_LINKS ? links : GPU_LINKS);
        return links > 0 && links <= 999 ? (int)(end - text) : 0;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strncmp(text, words[i].word, strlen(words[i].word))) {
            *out = words[i].path;
            return (int)strlen(words[i].word);
        }
    return 0;
}

static bool is_device(const char *word, struct smi_device *d)
{
    char rest;

    memset(d, 0, sizeof(*d));
    d->number = -1;
    snprintf(d->name, sizeof(d->name), "%s", word);
    if (sscanf(word, "GPU%3d%c", &d->number, &rest) == 1 && d->number >= 0) {
        d->gpu = true;
        return true;
    }
    return (sscanf(word, "NIC%3d%c", &d->number, &rest) == 1 && d->number >= 0) ||
           !strncmp(word, "mlx", 3);
}

/* Remove escape codes; other control characters but tabs become blanks, non-ASCII '?'. */
static void clean(char *line)
{
    char *to = line;

    for (const char *c = line; *c; c++) {
        if (*c == 0x1b) {
            if (c[1] == '[')
                for (c += 2; *c && !isalpha((unsigned char)*c); c++)
                    ;
            if (!*c)
                break;
            continue;
        }
        *to++ = *c == '\t' || isprint((unsigned char)*c) ? *c
                : iscntrl((unsigned char)*c)             ? ' '
                                                         : '?';
    }
    *to = '\0';
}

/* Next cell: up to a tab if the line has tabs, else up to a blank.  Blanks around it are
 * removed. */
static bool next_cell(char **line, bool tabs, char cell[CELL])
{
    char *from = *line, *end;

    if (!from)
        return false;
    if (!tabs)
        from += strspn(from, " ");
    end = from + strcspn(from, tabs ? "\t" : " ");
    *line = *end ? end + 1 : NULL;
    from += strspn(from, " ");
    while (end > from && end[-1] == ' ')
        end--;
    snprintf(cell, CELL, "%.*s", (int)(end - from), from);
    return tabs || *cell;
}

/* Read the column names; the affinities end the list. */
static bool read_header(struct smi_table *b, char *line)
{
    bool tabs = strchr(line, '\t') != NULL;
    char cell[CELL];

    b->devices = 0;
    while (next_cell(&line, tabs, cell)) {
        struct smi_device d;
        if (!*cell)
            continue;
        if (!is_device(cell, &d))
            break;
        if (b->devices == SMI_DEVICES)
            return false;
        b->device[b->devices++] = d;
    }
    return b->devices > 0;
}

static int find_device(const struct smi_table *b, const char *name)
{
    for (int i = 0; i < b->devices; i++)
        if (!strcmp(b->device[i].name, name))
            return i;
    return -1;
}

/* Read the last columns: CPUs, NUMA nodes ("0,3-9,11-17"; the first is that of the CPUs), and the
 * GPU's own memory.  Some releases put an empty cell between them. */
static int numa_of(char *rest, bool tabs, bool cpus)
{
    char cell[CELL], *end;

    if (!cpus) /* CPUs come first, unless they were on the line before */
        next_cell(&rest, tabs, cell);
    if (!next_cell(&rest, tabs, cell) || !isdigit((unsigned char)cell[0]))
        return -1;
    long numa = strtol(cell, &end, 10);
    return numa < 65535 ? (int)numa : -1;
}

struct where {
    const char *path;
    int line;
    struct err *err;
};

/* Read the rest of a row. */
static int read_cells(struct smi_table *b, int at, char *line, bool tabs, const struct where *p)
{
    char cell[CELL];
    int column = b->column;

    while (column < b->devices && line) {
        char *before = line;
        int code, length;
        if (!next_cell(&line, tabs, cell))
            break;
        if (!*cell) {
            column++;
            continue;
        }
        if (!take_code(cell, &code)) {
            /* A row that ends early continues with its CPUs. */
            if (!isdigit((unsigned char)cell[0]) && strcmp(cell, "N/A") != 0)
                return err_data(p->err, "%s:%d: \"%.20s\" in the row of %s is no path", p->path,
                                p->line, cell, b->device[at].name);
            line = before;
            break;
        }
        for (const char *c = cell; *c; c += length) {
            length = take_code(c, &code);
            if (!length || column >= b->devices)
                return err_data(p->err, "%s:%d: \"%.20s\" in the row of %s is no path", p->path,
                                p->line, cell, b->device[at].name);
            if ((code == PATH_SELF) != (column == at))
                return err_data(p->err,
                                "%s:%d: the row of %s has %s in column %d: its cells are not in "
                                "their columns",
                                p->path, p->line, b->device[at].name,
                                code == PATH_SELF ? "its X" : "no X", column + 1);
            b->cell[at][column++] = (short)code;
        }
    }
    b->numa[at] = line ? numa_of(line, tabs, b->cpus) : -1;
    b->cpus = line != NULL;
    b->open = at;
    b->column = column;
    return 0;
}

static int read_row(struct smi_table *b, int at, char *line, const struct where *p)
{
    bool tabs = strchr(line, '\t') != NULL;
    char cell[CELL];

    if (b->device[at].seen)
        return err_data(p->err, "%s:%d: %s has two rows", p->path, p->line, b->device[at].name);
    b->device[at].seen = true;
    b->column = 0;
    b->cpus = false;
    next_cell(&line, tabs, cell); /* name of the device */
    return read_cells(b, at, line, tabs, p);
}

/* True if the line continues a row that a mail program broke: more of its cells, or its CPUs. */
static bool goes_on(const struct smi_table *b, const char *first, const char *line)
{
    int code;

    if (b->open < 0 || b->numa[b->open] >= 0 || strchr(line, '='))
        return false;
    return b->column < b->devices ? take_code(first, &code) > 0 || isdigit((unsigned char)*first)
                                  : isdigit((unsigned char)*first);
}

/* Read "  NIC0: mlx5_0" below "NIC Legend:". */
static void read_legend(struct smi_table *b, const char *line)
{
    char name[32], device[32];

    if (sscanf(line, " %31[^: ] : %31s", name, device) != 2)
        return;
    int at = find_device(b, name);
    if (at >= 0 && !b->device[at].gpu)
        for (size_t i = 0; i < sizeof(device); i++)
            b->device[at].name[i] =
                isprint((unsigned char)device[i]) || !device[i] ? device[i] : '?';
}

/* Read the table; every GPU must have a row.  EXIT_DATA with file, line, value and reason. */
static int smi_table_parse(struct smi_table *b, const char *text, size_t len, const char *path,
                           struct err *err)
{
    if (memchr(text, '\0', len))
        return err_data(err, "%s: a NUL among the text: no text file", path);
    struct where p = {path, 0, err};
    char *copy = mem_printf("%.*s", (int)len, text), *next = copy;
    int rc = 0;

    memset(b, 0, sizeof(*b));
    memset(b->cell, -1, sizeof(b->cell));
    b->open = -1;
    for (char *line; rc == 0 && (line = next);) {
        char first[CELL], *at = line;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        p.line++;
        clean(line);
        at += strspn(at, " \t>"); /* '>': quoted in mail */
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(at, " \t"), at);
        struct smi_device d;
        int row = b->open;
        b->open = -1; /* an empty line ends the row */
        if (!b->devices) {
            if (is_device(first, &d) && !read_header(b, at))
                rc = err_data(err, "%s:%d: more than %d columns", path, p.line, SMI_DEVICES);
        } else if (find_device(b, first) >= 0) {
            rc = read_row(b, find_device(b, first), at, &p);
        } else if (is_device(first, &d)) {
            rc = err_data(err, "%s:%d: row \"%.20s\" has no column", path, p.line, first);
        } else if (strchr(at, ':')) {
            read_legend(b, at);
        } else if ((b->open = row) >= 0 && goes_on(b, first, at)) {
            rc = read_cells(b, row, at, strchr(at, '\t') != NULL, &p);
        } else
            b->open = -1;
    }
    if (rc == 0 && !b->devices)
        rc = err_data(err, "%s: no header with GPU0 ... as nvidia-smi topo -m prints it", path);
    for (int i = 0; rc == 0 && i < b->devices; i++)
        if (b->device[i].gpu && !b->device[i].seen)
            rc = err_data(err, "%s: %s has no row", path, b->device[i].name);
    free(copy);
    return rc;
}

/* --- facts of the table about a host --- */

enum { LINKS_OF_A_GPU = 18 };

/* Set the links.  All lead to switches if every peer has the same number and their sum is more
 * than a GPU has; with a single peer this is undecided. */
static void set_links(struct gpu *g, const struct smi_table *b, int at, bool anybody)
{
    int sum = 0, same = 0, peers = 0;
    bool equal = true;

    for (int c = 0; c < b->devices; c++) {
        int links = b->device[c].gpu ? b->cell[at][c] - SMI_NVLINKS : 0;
        if (links <= 0)
            continue;
        equal = equal && (!peers || links == same);
        same = links;
        sum += links;
        peers++;
    }
    if (g->links >= 0 || (!peers && !anybody))
        return;
    g->links = 0;
    g->counted = true;
    if (!peers)
        return;
    bool switched = equal && (sum > LINKS_OF_A_GPU || same > LINKS_OF_A_GPU);
    if (switched || peers == 1 || sum > GPU_LINKS) {
        g->links = same;
        g->remote[g->remotes++] =
            (struct gpu_remote){switched ? LINK_END_SWITCH : LINK_END_UNKNOWN, "", same};
        return;
    }
    g->links = sum;
    for (int c = 0; c < b->devices; c++)
        if (b->device[c].gpu && b->cell[at][c] > SMI_NVLINKS && g->remotes < GPU_LINKS)
            g->remote[g->remotes++] =
                (struct gpu_remote){LINK_END_GPU, "", b->cell[at][c] - SMI_NVLINKS};
}

/* Set PCI paths to other GPUs; the table hides them where there is NVLink. */
static void set_paths(struct gpu *g, const struct smi_table *b, int at)
{
    for (int c = 0; c < b->devices; c++) {
        int peer = b->device[c].number, path = b->cell[at][c];
        if (!b->device[c].gpu || peer >= GPU_PEERS)
            continue;
        while (g->paths <= peer)
            g->path[g->paths++] = -1;
        if (g->path[peer] < 0 && path >= 0 && path < SMI_NVLINKS)
            g->path[peer] = path;
    }
}

/* Nearest NIC; ties: the one used by the fewest GPUs.  If all are across sockets none is near. */
static int nearest(const struct topo *t, int host, const struct smi_table *b, int at,
                   const int *nic)
{
    int best = -1, best_key = 0, count = 0;

    for (int c = 0; c < b->devices; c++) {
        int path = b->cell[at][c], used = 0;
        if (b->device[c].gpu || path < 0 || path >= SMI_NVLINKS)
            continue;
        count++;
        for (int e = 0; e < t->endpoints; e++)
            used += t->endpoint[e].place.at[LEVEL_HOST] == host && t->endpoint[e].nic == nic[c];
        int key = (PATH_SYS - path) * 1000 + 999 - used;
        if (path < PATH_SYS && key > best_key) {
            best = nic[c];
            best_key = key;
        }
    }
    for (int c = 0; c < b->devices && count == 1; c++)
        if (!b->device[c].gpu)
            best = nic[c];
    return best;
}

static int fill(struct topo *t, int host, const struct smi_table *b, const char *path,
                struct err *err)
{
    int nic[SMI_DEVICES], rc = 0;
    bool anybody = false;

    for (int i = 0; i < b->devices; i++)
        for (int c = 0; c < b->devices; c++)
            anybody = anybody || b->cell[i][c] > SMI_NVLINKS;
    for (int i = 0; i < b->devices && rc == 0; i++) {
        nic[i] = -1;
        if (!b->device[i].gpu) {
            host_nic(t, host, b->device[i].name, true, SOURCE_SMI);
            nic[i] = host_find_nic(t, host, b->device[i].name);
            continue;
        }
        struct gpu *g = host_gpu(t, host, b->device[i].number, "");
        if (!g) {
            rc = err_data(err, "%s: GPU%d is more than the %d GPUs of a host", path,
                          b->device[i].number, GPU_PEERS);
            break;
        }
        set_links(g, b, i, anybody);
        set_paths(g, b, i);
    }
    host_finish(t, host, SOURCE_SMI);
    for (int i = 0; i < b->devices && rc == 0; i++)
        for (int e = 0; e < t->endpoints && b->device[i].gpu; e++) {
            struct endpoint *p = &t->endpoint[e];
            if (p->place.at[LEVEL_HOST] != host || p->gpu < 0 ||
                t->gpu[p->gpu].index != b->device[i].number)
                continue;
            p->numa = p->numa < 0 ? b->numa[i] : p->numa;
            p->nic = p->nic < 0 ? nearest(t, host, b, i, nic) : p->nic;
        }
    return rc;
}

int smi_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err)
{
    struct smi_table *b = mem_calloc(1, sizeof(*b));
    int rc = smi_table_parse(b, text, len, path, err);

    if (rc == 0)
        rc = fill(t, host, b, path, err);
    free(b);
    return rc;
}
