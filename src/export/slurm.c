/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - topology.conf and topology.yaml from measurements.
 *
 *   slurm-tree    topology.conf of topology/tree: leaves, the switches above them, one root
 *   slurm-block   topology.conf of topology/block
 *   slurm-yaml    topology.yaml: blocks, the tree and a flat topology for measuring, if known
 *
 * Rules of the releases (block_record.c, switch_record.c and data_parser of 24.11 to 26.05; 24.11.5
 * and 26.05.5 are run in tests/slurm):
 *   24.11   no topology.yaml; a block has at least the base size of BlockSizes ("children count
 *           lower than bblock_node_cnt"), none is empty ("lacks children")
 *   25.05+  topology.yaml; shorter and empty blocks are accepted
 *   all     sizes are the base size times a power of two, at most 16 levels ("Invalid BlockSizes
 *           value"); a block is joined with the next in the file, so the order matters; names are
 *           unique; a switch name has at most 64 characters */
#include "export/export_impl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"

/* --- releases --- */

static const struct slurm_release releases[] = {
    {"24.11", false, false},
    {"25.05", true, true},
    {"25.11", true, true},
    {"26.05", true, true},
};
enum { RELEASES = sizeof(releases) / sizeof(*releases) };

static const struct slurm_release *find(const char *name, struct err *err)
{
    if (!name)
        return &releases[RELEASES - 1];
    for (int i = 0; i < RELEASES; i++)
        if (!strcmp(releases[i].name, name))
            return &releases[i];
    err_usage(err,
              "--release: Slurm %.40s is not one of 24.11, 25.05, 25.11 and 26.05, whose "
              "rules are known",
              name);
    return NULL;
}

/* --- names --- */

bool slurm_folds(const char *name)
{
    size_t len = strlen(name);

    return isalpha((unsigned char)*name) && len <= SLURM_NAME_LONG &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

/* Numbered name that is not in the list. */
static char *numbered(char *const *name, int count, const char *word, int i)
{
    char *made = mem_printf("%s%0*d", word, count > 999 ? 4 : count > 99 ? 3 : 2, i + 1);

    for (int k = 0; k < count; k++)
        if (!strcmp(name[k], made)) {
            free(made);
            made = mem_printf("%sx%d", word, i + 1);
            k = -1;
            word = "railgauge"; /* start over with another word */
        }
    return made;
}

char **slurm_names_make(char *const *name, int count, const char *word)
{
    char **out = mem_calloc((size_t)count + 1, sizeof(*out));

    for (int i = 0; i < count; i++)
        out[i] = slurm_folds(name[i]) ? mem_strdup(name[i]) : numbered(name, count, word, i);
    return out;
}

const struct slurm_release *slurm_release_of(const struct export_run *e, bool yaml, struct err *err)
{
    const struct slurm_release *r = find(e->ask->release, err);
    const struct topo *t = &e->m->topo;

    if (r && yaml && !r->yaml) {
        err_usage(err,
                  "Slurm %s reads no topology.yaml (25.05 was the first): --format slurm-block or "
                  "slurm-tree",
                  r->name);
        return NULL;
    }
    for (int h = 0; r && h < t->hosts; h++)
        if (t->host[h].name[strspn(t->host[h].name, HOST_PLAIN)]) {
            err_data(err,
                     "host \"%.80s\": a node's name in Slurm has letters, digits, '-', '_' and '.' "
                     "only",
                     t->host[h].name);
            return NULL;
        }
    return r;
}

char *slurm_fold(const struct topo *t, const int *host, int hosts)
{
    char **name = mem_calloc((size_t)hosts + 1, sizeof(*name));

    for (int i = 0; i < hosts; i++)
        name[i] = t->host[host[i]].name;
    char *list = hostlist_fold(name, hosts);
    free(name);
    return list;
}

/* --- contents of a file --- */

/* Write a comment line; characters that would end the line are removed from external texts. */
void slurm_comment(FILE *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    fputs("# ", f);
    for (const char *c = text; *c; c++)
        fputc(iscntrl((unsigned char)*c) ? '?' : *c, f);
    fputc('\n', f);
    free(text);
}

void slurm_head(const struct export_run *e, const char *what, const struct slurm_release *r)
{
    const struct matrix *m = e->m;
    const char *preset = m->fabric ? m->fabric : "";
    char *from = !strcmp(m->transport, "preset") ? mem_printf("the preset %.60s", preset)
                 : !strcmp(m->transport, "none")
                     ? mem_strdup("a topology that nobody measured")
                     : mem_printf("a matrix measured over %.20s%s%.60s", m->transport,
                                  *preset ? " of the preset " : "", preset);
    slurm_comment(e->out, "%s of Slurm %s, by railgauge %s from %s: %d host%s", what, r->name,
                  RG_VERSION, from, m->topo.hosts, units_s(m->topo.hosts));
    free(from);
}

void slurm_groups_from(FILE *f, const struct blocks *b, const char *unit)
{
    slurm_comment(f, "a %s is a %s (%s); neighbours in this file are near each other", unit,
                  level_name[b->level], source_name[b->source]);
}

void slurm_renamed(FILE *f, const char *now, const char *was)
{
    if (strcmp(now, was) != 0)
        slurm_comment(f, "%s: %s", now, was);
}

int slurm_complete(const struct export_run *e, const struct blocks *b, struct err *err)
{
    char why[64];

    snprintf(why, sizeof(why), "their %s is not known", level_name[b->level]);
    return export_complete(e, b->of, why, err);
}

void slurm_left_over(const struct export_run *e, const struct blocks *b)
{
    const struct topo *t = &e->m->topo;
    int *host = mem_calloc((size_t)t->hosts + 1, sizeof(*host)), hosts = 0;

    for (int h = 0; h < t->hosts; h++)
        if (b->of[h] < 0)
            host[hosts++] = h;
    if (hosts) {
        char *list = slurm_fold(t, host, hosts);
        slurm_comment(e->out, "not in this file, because their %s is not known: %s",
                      level_name[b->level], list);
        free(list);
    }
    free(host);
}
