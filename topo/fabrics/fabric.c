/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/fabrics/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/json.h"
#include "base/mem.h"

enum { VERSION = 1 };

const char *const kind_name[KIND_COUNT] = {"measured", "stated", "spec", "inferred"};

int kind_find(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (!strcmp(kind_name[i], name))
            return i;
    return -1;
}

static void free_number(struct number *n)
{
    free(n->source);
}

void fabric_free(struct fabric *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->gpu.peaks; i++)
        free_number(&f->gpu.peak[i].flops);
    for (int i = 0; i < f->tiers; i++) {
        free_number(&f->tier[i].alpha);
        free_number(&f->tier[i].Bps);
        free_number(&f->tier[i].bi_Bps);
        free_number(&f->tier[i].peak);
    }
    for (int i = 0; i < f->collectives; i++) {
        free_number(&f->collective[i].alpha);
        free_number(&f->collective[i].busbw);
        free(f->collective[i].point);
        free(f->collective[i].points_source);
    }
    for (int i = 0; i < f->eps; i++) {
        free(f->ep[i].kernel);
        free_number(&f->ep[i].alpha);
        free_number(&f->ep[i].Bps[0]);
        free_number(&f->ep[i].Bps[1]);
    }
    free(f->ep);
    free_number(&f->gpu.memory_bytes);
    free_number(&f->gpu.hbm_Bps);
    free_number(&f->nic.Bps);
    free(f->gpu.peak);
    free(f->gpu.name);
    free(f->gpu.generation);
    free(f->nic.name);
    free(f->tier);
    free(f->collective);
    free(f->name);
    free(f->title);
    memset(f, 0, sizeof(*f));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int fabric_list(char ***names, int *count, struct err *err)
{
    char *path = file_data("topo/fabrics");
    DIR *dir = path ? opendir(path) : NULL;
    int rc = 0;

    *names = NULL;
    *count = 0;
    if (!dir)
        rc = err_noinput(err,
                         "no folder topo/fabrics with the shipped fabrics (%s); "
                         "RAILGAUGE_DATA can name its parent",
                         path ? strerror(errno) : "neither beside this program nor installed");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len > 5 && !strcmp(e->d_name + len - 5, ".json"))
            MEM_PUSH(*names, *count) = mem_strndup(e->d_name, len - 5);
    }
    if (*count)
        qsort(*names, (size_t)*count, sizeof(**names), by_name);
    if (dir)
        closedir(dir);
    free(path);
    return rc;
}

/* "no fabric "x"; known: a, b, c" */
static int unknown(const char *name, struct err *err)
{
    char **names, *all = mem_strdup("");
    int count;

    if (fabric_list(&names, &count, err) < 0) {
        free(all);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        char *more = mem_printf("%s%s%s", all, i ? ", " : "", names[i]);
        free(all);
        all = more;
    }
    err_usage(err,
              "no fabric \"%s\"; known: %s; or give a file with a \"/\" or \".json\" in its name",
              name, all);
    free(all);
    hostlist_free(names, count);
    return -1;
}

/* The file behind a name; NULL with a message. */
static char *locate(const char *name, struct err *err)
{
    size_t len = strlen(name);

    if (strchr(name, '/') || (len > 5 && !strcmp(name + len - 5, ".json")))
        return mem_strdup(name);
    char *relative = mem_printf("topo/fabrics/%s.json", name), *path = file_data(relative);
    free(relative);
    if (!path)
        unknown(name, err);
    return path;
}

bool fabric_shipped(const char *name)
{
    char *relative = mem_printf("topo/fabrics/%s.json", name), *path = file_data(relative);
    bool found = path && !strchr(name, '/') && access(path, R_OK) == 0;

    free(relative);
    free(path);
    return found;
}

int fabric_load(struct fabric *f, const char *name, struct err *err)
{
    char *path = locate(name, err);
    json_t *root = NULL;

    memset(f, 0, sizeof(*f));
    int rc = path ? json_open(&root, path, "railgauge-fabric", VERSION, err) : -1;
    if (rc == 0)
        rc = fabric_read(f, root, path, err);
    if (rc < 0)
        fabric_free(f);
    json_decref(root);
    free(path);
    return rc;
}

double fabric_collective_time(const struct fabric_collective *c, double bytes)
{
    if (!c->points)
        return c->alpha.value + bytes * op_bus_factor(c->op, c->ranks) / c->busbw.value;
    const struct fabric_point *p = c->point, *last = p + c->points - 1;
    if (bytes <= p->bytes)
        return p->sec;
    while (p < last && p[1].bytes < bytes)
        p++;
    const struct fabric_point *a = p < last ? p : last - 1;
    double slope = (a[1].sec - a->sec) / (a[1].bytes - a->bytes);
    if (p < last)
        return a->sec + (bytes - a->bytes) * slope;
    return last->sec + (bytes - last->bytes) * fmax(slope, last->sec / last->bytes);
}
