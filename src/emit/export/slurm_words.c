/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_words.c - names and comments of the files for Slurm. */
#include "emit/export/slurm_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/claim.h"

bool slurm_folds(const char *name)
{
    size_t len = strlen(name);

    return isalpha((unsigned char)*name) && len <= SLURM_NAME_LONG &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

/* The numbered name that no name of the list is. */
static char *numbered(char *const *name, int count, const char *word, int i)
{
    char *made = mem_printf("%s%0*d", word, count > 999 ? 4 : count > 99 ? 3 : 2, i + 1);

    for (int k = 0; k < count; k++)
        if (!strcmp(name[k], made)) {
            free(made);
            made = mem_printf("%sx%d", word, i + 1);
            k = -1;
            word = "railgauge"; /* nobody's name twice */
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

/* NodeName's characters; brackets and commas would fold, '=' and blanks end a word. */
int slurm_check_hosts(const struct topo *t, struct err *err)
{
    for (int h = 0; h < t->hosts; h++)
        for (const char *p = t->host[h].name; *p; p++)
            if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
                return err_data(err,
                                "host \"%.80s\": a node's name in Slurm has letters, digits, '-', "
                                "'_' and '.' only",
                                t->host[h].name);
    return 0;
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

/* --- what a file is made from --- */

/* A sentence in comments; texts from outside lose what would end the line. */
void slurm_comment(FILE *f, const char *text)
{
    fputs("# ", f);
    for (; *text; text++)
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, f);
    fputc('\n', f);
}

void slurm_head(FILE *f, const struct matrix *m, const char *what, const struct slurm_release *r)
{
    const char *preset = m->fabric ? m->fabric : "";
    char *from = !strcmp(m->transport, "preset") ? mem_printf("the preset %.60s", preset)
                 : !strcmp(m->transport, "none")
                     ? mem_strdup("a topology that nobody measured")
                     : mem_printf("a matrix measured over %.20s%s%.60s", m->transport,
                                  *preset ? " of the preset " : "", preset);
    char *text = mem_printf("%s of Slurm %s, by railgauge %s from %s: %d host%s", what, r->name,
                            RG_VERSION, from, m->topo.hosts, units_s(m->topo.hosts));

    slurm_comment(f, text);
    free(text);
    free(from);
}

void slurm_groups_from(FILE *f, const struct blocks *b, const char *unit)
{
    char *text = mem_printf("a %s is a %s (%s); neighbours in this file are near each other", unit,
                            level_name[b->level], source_name[b->source]);

    slurm_comment(f, text);
    free(text);
}

void slurm_renamed(FILE *f, const char *now, const char *was)
{
    if (strcmp(now, was) != 0) {
        char *text = mem_printf("%s: %s", now, was);
        slurm_comment(f, text);
        free(text);
    }
}

int slurm_complete(const struct export_ask *ask, const struct matrix *m, const struct blocks *b,
                   struct err *err)
{
    char why[64];

    snprintf(why, sizeof(why), "their %s is not known", level_name[b->level]);
    return export_complete(ask, &m->topo, b->of, why, err);
}

void slurm_left_over(FILE *f, const struct matrix *m, const struct blocks *b)
{
    int *host = mem_calloc((size_t)m->topo.hosts + 1, sizeof(*host)), hosts = 0;

    for (int h = 0; h < m->topo.hosts; h++)
        if (b->of[h] < 0)
            host[hosts++] = h;
    if (hosts) {
        char *list = slurm_fold(&m->topo, host, hosts);
        char *text = mem_printf("not in this file, because their %s is not known: %s",
                                level_name[b->level], list);
        slurm_comment(f, text);
        free(text);
        free(list);
    }
    free(host);
}

/* Names of blocks for the file. */
char **slurm_block_names(const struct blocks *b, const char *word)
{
    char **was = mem_calloc((size_t)b->count + 1, sizeof(*was));

    for (int i = 0; i < b->count; i++)
        was[i] = b->block[i].name;
    char **now = slurm_names_make(was, b->count, word);
    free(was);
    return now;
}
