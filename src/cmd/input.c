/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/input_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"

/* --- options --- */

enum { OPTIONS_MAX = 32, SOURCES_MAX = 4096, HEAD = 4096 };

const struct opt input_preset_options[] = {
    {"fabric", 0, "NAME", "preset, or file of a preset, instead of a file",
     OPT_INTO(struct input_args, fabric), .values = fabric_each},
    {"racks", 0, "N", "racks of the preset (default: as in the preset)",
     OPT_INT(struct input_args, racks, 1, 1 << 20)},
    {0},
};
int input_preset_check(void *into, struct err *err)
{
    const struct input_args *a = into;

    if (a->racks && !a->fabric)
        return err_usage(err, "--racks needs --fabric");
    if (a->file && a->fabric)
        return err_usage(err, "choose one of \"%s\" and --fabric", a->file);
    return 0;
}

static int take_source(void *into, const char *name, const char *value, struct err *err)
{
    struct input_args *a = into;
    const struct source_file *file = source_file;

    if (a->sources.count == SOURCES_MAX)
        return err_usage(err, "more than %d files", SOURCES_MAX);
    while (strcmp(file->name, name) != 0)
        file++;
    MEM_PUSH(a->sources.given, a->sources.count) = (struct given_source){file, value};
    return 0;
}

const struct opt *input_source_options(void)
{
    static struct opt rows[OPTIONS_MAX + 2];

    rows[0] = (struct opt){.help = "files that describe the machine, of other programs",
                           .group = "sources"};
    for (int i = 0; source_file[i].name; i++) {
        assert(i < OPTIONS_MAX);
        rows[i + 1] = (struct opt){source_file[i].name,    0,
                                   source_file[i].arg,     source_file[i].help,
                                   OPT_NAMED(take_source), .group = "sources"};
    }
    return rows;
}

int input_sources_read(const struct input_sources *a, struct topo *t, struct err *err)
{
    bool seen[OPTIONS_MAX] = {false};

    for (int i = 0; i < a->count; i++) {
        const struct given_source *g = &a->given[i];
        bool *before = &seen[g->file - source_file];
        if (sources_read(t, g->file, g->text, *before, err) < 0)
            return -1;
        *before = true;
    }
    return 0;
}

void input_args_free(struct input_args *a)
{
    free(a->sources.given);
}

/* --- input --- */

void input_init(struct input *in)
{
    memset(in, 0, sizeof(*in));
    matrix_init(&in->m);
    topo_init(&in->t);
}

void input_free(struct input *in)
{
    points_free(&in->p);
    topo_free(&in->t);
    matrix_free(&in->m);
}

static bool says_matrix(const char *path)
{
    char head[HEAD + 1];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(head, 1, HEAD, f) : 0;

    if (f)
        fclose(f);
    head[n] = '\0';
    return strstr(head, "\"railgauge-matrix\"") != NULL;
}

static int load(struct input *in, unsigned kind, const char *path, struct err *err)
{
    int rc = kind == INPUT_TOPO     ? topo_load(&in->t, path, err)
             : kind == INPUT_MATRIX ? matrix_load(&in->m, path, MATRIX_WHOLE, err)
                                    : points_load(&in->p, path, err);

    in->has |= rc == 0 ? kind : 0;
    return rc;
}

static int open_file(struct input *in, const char *path, unsigned kinds, struct err *err)
{
    bool matrix = kinds == INPUT_MATRIX || ((kinds & INPUT_MATRIX) && says_matrix(path));

    return load(in, matrix ? INPUT_MATRIX : INPUT_TOPO, path, err);
}

/* Matrix, topology and points must be of one campaign. */
static int check_dir(const struct input *in, const char *dir, struct err *err)
{
    const struct {
        unsigned kind;
        const char *name;
        int endpoints;
    } part[] = {{INPUT_TOPO, "topology.json", in->t.endpoints},
                {INPUT_MATRIX, "matrix.json", in->m.topo.endpoints},
                {INPUT_POINTS, "points.tsv", in->p.endpoints}};
    int first = -1;

    for (int i = 0; i < 3; i++) {
        if (!(in->has & part[i].kind))
            continue;
        if (first >= 0 && part[i].endpoints != part[first].endpoints)
            return err_data(err, "%s: %s is of %d endpoints, %s of %d", dir, part[first].name,
                            part[first].endpoints, part[i].name, part[i].endpoints);
        first = first < 0 ? i : first;
    }
    return 0;
}

static int open_dir(struct input *in, const char *dir, const struct input_ask *ask, struct err *err)
{
    static const struct {
        unsigned kind;
        const char *name;
    } part[] = {
        {INPUT_MATRIX, "matrix.json"}, {INPUT_TOPO, "topology.json"}, {INPUT_POINTS, "points.tsv"}};
    int rc = 0;

    in->dir = true;
    for (int i = 0; i < 3 && rc == 0; i++) {
        char *path = file_join(dir, part[i].name);
        if ((ask->need & part[i].kind) || ((ask->may & part[i].kind) && access(path, R_OK) == 0))
            rc = load(in, part[i].kind, path, err);
        free(path);
    }
    return rc == 0 ? check_dir(in, dir, err) : -1;
}

static int open_preset(struct input *in, const struct input_args *a, bool matrix, struct err *err)
{
    struct fabric f;

    if (fabric_load(&f, a->fabric, err) < 0)
        return -1;
    int rc = matrix ? matrix_from_fabric(&in->m, &f, a->racks, err)
                    : fabric_topo(&f, a->racks, a->blind, &in->t, err);
    fabric_free(&f);
    in->has = rc < 0 ? 0 : matrix ? INPUT_MATRIX : INPUT_TOPO;
    return rc;
}

int input_open(struct input *in, const struct input_args *a, const struct input_ask *ask,
               struct err *err)
{
    struct stat st;
    int rc = 0;

    if (a->fabric)
        rc = open_preset(in, a, ask->need & INPUT_MATRIX, err);
    else if (a->file && stat(a->file, &st) == 0 && S_ISDIR(st.st_mode))
        rc = open_dir(in, a->file, ask, err);
    else if (a->file)
        rc = open_file(in, a->file, ask->file, err);
    if (rc == 0 && (in->has & INPUT_MATRIX) && !(in->has & INPUT_TOPO)) {
        topo_free(&in->t);
        topo_copy(&in->t, &in->m.topo);
    }
    return rc;
}

/* --- lower-layer campaign --- */

void input_below_init(struct input_below *b)
{
    memset(b, 0, sizeof(*b));
    input_init(&b->in);
}

/* Directory of the campaign of a points.tsv, because ids need the topology beside the file. */
static char *dir_of_points(const char *path)
{
    size_t len = strlen(path), name = strlen("points.tsv");
    bool is = len >= name && !strcmp(path + len - name, "points.tsv") &&
              (len == name || path[len - name - 1] == '/');

    return !is           ? mem_strdup(path)
           : len == name ? mem_strdup(".")
                         : mem_printf("%.*s", (int)(len - name - 1), path);
}

/* DIR/below is used if it has a matrix. */
static char *own_below(const struct input_args *a, const struct input *in)
{
    char *matrix = in->dir ? file_join(a->file, "below/matrix.json") : NULL;
    char *dir = matrix && access(matrix, R_OK) == 0 ? file_join(a->file, "below") : NULL;

    free(matrix);
    return dir;
}

static struct below_layer layer_of(const struct input *in)
{
    return (struct below_layer){&in->m, &in->t, in->has & INPUT_POINTS ? &in->p : NULL};
}

int input_below_open(struct input_below *b, const struct input_args *a, const struct input *in,
                     struct err *err)
{
    static const struct input_ask ask = {INPUT_MATRIX, INPUT_MATRIX, INPUT_POINTS | INPUT_TOPO};
    char *path = a->below ? dir_of_points(a->below) : own_below(a, in);
    const struct input_args of = {.file = path};
    struct below_layer above, below;
    int rc = 0;

    if (path)
        rc = input_open(&b->in, &of, &ask, err);
    if (path && rc == 0) {
        above = layer_of(in);
        below = layer_of(&b->in);
        rc = below_match(&b->b, &above, &below, path, err);
        b->is = &b->b;
    }
    free(path);
    return rc;
}

void input_below_free(struct input_below *b)
{
    below_free(&b->b);
    input_free(&b->in);
}

/* --- names --- */

static void near_host(struct near *near, const struct topo *t)
{
    for (int h = 0; h < t->hosts; h++)
        near_try(near, t->host[h].name);
}

static int no_host(const struct topo *t, const char *name, struct err *err)
{
    struct near near = {.word = name};

    near_host(&near, t);
    op_each(near_try, &near); /* for commands that accept either */
    return err_usage(err, "\"%s\" is no endpoint and no host here%s", name, near_text(&near));
}

int input_endpoint(const struct topo *t, const char *text, int *id, struct err *err)
{
    const char *colon = strrchr(text, ':');
    int local = 0, host = topo_find_host(t, text);

    if (host < 0 && !colon && strspn(text, "-0123456789") < strlen(text))
        return no_host(t, text, err);
    if (host < 0 && !colon)
        return units_int(id, text, 0, t->endpoints - 1, err);
    if (host < 0 && units_int(&local, colon + 1, 0, t->endpoints, err) < 0)
        return -1;
    for (int i = 0; i < t->endpoints; i++) {
        const char *name = t->host[t->endpoint[i].place.at[LEVEL_HOST]].name;
        size_t len = host >= 0 ? strlen(text) : (size_t)(colon - text);
        if (t->endpoint[i].local == local && strlen(name) == len && !strncmp(name, text, len)) {
            *id = i;
            return 0;
        }
    }
    return err_usage(err, "no endpoint %s here", text);
}

int input_hosts(int **host, int *hosts, const struct topo *t, const char *option, const char *list,
                struct err *err)
{
    struct err why;
    char **name;
    int count, rc = 0;

    *host = NULL;
    *hosts = 0;
    for (int h = 0; !list && h < t->hosts; h++)
        MEM_PUSH(*host, *hosts) = h;
    if (!list)
        return 0;
    if (hostlist_expand(&name, &count, list, &why) < 0)
        return err_usage(err, "%s: %s", option, why.text);
    for (int i = 0; rc == 0 && i < count; i++) {
        int h = topo_find_host(t, name[i]);
        struct near near = {.word = name[i]};
        if (h < 0) {
            near_host(&near, t);
            rc = err_usage(err, "%s: node \"%.80s\" is not among the %d of the matrix%s", option,
                           name[i], t->hosts, near_text(&near));
        } else
            MEM_PUSH(*host, *hosts) = h;
    }
    hostlist_free(name, count);
    return rc;
}
