/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/host/self_report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/sources/host/nvml.h"
#include "topo/topo.h"

enum { RANK_MAX = 1 << 30, NODES_MAX = 1 << 17 };

static const struct {
    const char *name;
    size_t at;
} fields[] = {
    {"addr", offsetof(struct self_report, addr)},
    {"pattern", offsetof(struct self_report, pattern)},
    {"nvlink", offsetof(struct self_report, nvlink)},
    {"label", offsetof(struct self_report, label)},
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static char **field(const struct self_report *t, int i)
{
    void *at = (char *)t + fields[i].at;

    return at;
}

void self_report_free(struct self_report *t)
{
    for (int i = 0; i < FIELDS; i++)
        free(*field(t, i));
    free(t->node);
    *t = (struct self_report){.rank = -1};
}

void self_report_list_free(struct self_report *list, int count)
{
    for (int i = 0; i < count; i++)
        self_report_free(&list[i]);
    free(list);
}

/* --- this node --- */

/* Environment variable as one word: blanks and control characters would end the line. */
static char *word(const char *text)
{
    char *w = text && *text ? mem_strdup(text) : NULL;

    for (char *p = w; p && *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            *p = '?';
    return w;
}

static long rank_here(void)
{
    static const char *const names[] = {"SLURM_NODEID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK", "JOB_COMPLETION_INDEX"};
    int rank;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i]) && units_int(&rank, getenv(names[i]), 0, RANK_MAX, NULL) == 0)
            return rank;
    return -1;
}

/* Domains of this host's GPUs; if there are several, which is odd, all are listed. */
static char *nvlink_here(void)
{
    struct nvml *n;
    char *told = NULL;

    if (nvml_open(&n, NULL) < 0)
        return NULL;
    for (int i = 0; i < nvml_count(n); i++) {
        struct gpu g;
        char one[80];
        if (nvml_read(n, i, &g, NULL) < 0 || !mnnvl_registered(&g))
            continue;
        snprintf(one, sizeof(one), "%s.%lld", g.cluster, g.clique);
        if (told && strstr(told, one))
            continue;
        told = mem_append(told, "%s%s", told ? "+" : "", one);
    }
    nvml_close(n);
    return told;
}

void self_report_here(struct self_report *t, const char *label_variable)
{
    char name[256];

    *t = (struct self_report){
        .node = word(getenv("SLURMD_NODENAME")),
        .rank = rank_here(),
        .addr = word(getenv("SLURM_TOPOLOGY_ADDR")),
        .pattern = word(getenv("SLURM_TOPOLOGY_ADDR_PATTERN")),
        .nvlink = nvlink_here(),
        .label = label_variable ? word(getenv(label_variable)) : NULL,
    };
    if (!t->node)
        t->node = word(host_self(name, sizeof(name)));
}

char *self_report_line(const struct self_report *t)
{
    char *line = t->rank < 0 ? mem_strdup(t->node) : mem_printf("%s rank=%ld", t->node, t->rank);

    for (int i = 0; i < FIELDS; i++) {
        if (!*field(t, i))
            continue;
        line = mem_append(line, " %s=%s", fields[i].name, *field(t, i));
    }
    return line;
}

/* --- lines --- */

static int take_word(struct self_report *t, const char *where, char *text, bool *more,
                     struct err *err)
{
    char *value = strchr(text, '=');
    struct err why;
    int n;

    if (!value || !value[1])
        return err_data(err, "%s: \"%.60s\" is not KEY=VALUE", where, text);
    *value++ = '\0';
    if (!strcmp(text, "slots") || !strcmp(text, "max_slots"))
        return 0;
    *more = true;
    if (!strcmp(text, "rank")) {
        if (units_int(&n, value, 0, RANK_MAX, &why) < 0)
            return err_data(err, "%s: rank: %s", where, why.text);
        t->rank = n;
        return 0;
    }
    for (int i = 0; i < FIELDS; i++)
        if (!strcmp(text, fields[i].name)) {
            if (*field(t, i))
                return err_data(err, "%s: %s is there twice", where, text);
            *field(t, i) = mem_strdup(value);
            return 0;
        }
    return err_data(err, "%s: unknown key \"%.60s\"", where, text);
}

/* Add the nodes of a line; the name may be a list if nothing else follows. */
static int take_nodes(struct self_report **list, int *count, struct self_report *t,
                      const char *where, const char *names, bool more, struct err *err)
{
    char **name;
    int n;

    if (hostlist_expand_max(&name, &n, names, NODES_MAX, err) < 0)
        return err_wrap(err, "%s", where);
    int rc = more && n > 1
                 ? err_data(err, "%s: %d nodes cannot all be there: \"%.60s\"", where, n, names)
             : *count + n > NODES_MAX ? err_data(err, "%s: more than %d nodes", where, NODES_MAX)
                                      : 0;
    for (int i = 0; i < n && rc == 0; i++) {
        t->node = mem_strdup(name[i]);
        MEM_PUSH(*list, *count) = *t;
        *t = (struct self_report){.rank = -1};
    }
    hostlist_free(name, n);
    return rc;
}

static int take_line(struct self_report **list, int *count, const char *where, char *line,
                     struct err *err)
{
    struct self_report t = {.rank = -1};
    char *rest = line, *names = NULL, *w;
    bool more = false;
    int rc = 0;

    while (rc == 0 && (w = strsep(&rest, " \t\r"))) {
        if (!*w)
            continue;
        if (names)
            rc = take_word(&t, where, w, &more, err);
        else
            names = w;
    }
    if (rc == 0 && names) {
        char *colon = strrchr(names, ':'); /* "node01:8", as in mpirun */
        if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1))
            *colon = '\0';
        rc = take_nodes(list, count, &t, where, names, more, err);
    }
    self_report_free(&t);
    return rc;
}

static int by_rank(const void *x, const void *y)
{
    const struct self_report *a = x, *b = y;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Sort by rank (several tasks of a node: by the first) and keep each node once. */
static void arrange(struct self_report *list, int *count)
{
    struct names names = {0}; /* node names */
    int kept = 0;
    bool ranked = true;

    for (int i = 0; i < *count; i++)
        ranked = ranked && list[i].rank >= 0;
    if (ranked)
        qsort(list, (size_t)*count, sizeof(*list), by_rank);
    for (int i = 0; i < *count; i++)
        if (names_add(&names, list[i].node) == kept)
            list[kept++] = list[i];
        else
            self_report_free(&list[i]);
    *count = kept;
    names_free(&names);
}

int self_report_parse(struct self_report **list, int *count, char *text, const char *path,
                      struct err *err)
{
    char *rest = text, *line, where[320];
    int rc = 0;

    *list = NULL;
    *count = 0;
    for (int n = 1; rc == 0 && (line = strsep(&rest, "\n")); n++) {
        snprintf(where, sizeof(where), "%.300s:%d", path, n);
        line[strcspn(line, "#")] = '\0';
        line[strcspn(line, "\r")] = '\0';
        rc = tsv_clean(path, n, line, strlen(line), err);
        if (rc == 0)
            rc = take_line(list, count, where, line, err);
    }
    if (rc == 0 && !*count)
        rc = err_data(err, "%s: no node in it", path);
    if (rc == 0 && *count)
        arrange(*list, count);
    if (rc < 0) {
        self_report_list_free(*list, *count);
        *list = NULL;
        *count = 0;
    }
    return rc;
}
