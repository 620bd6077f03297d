/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/sources.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"

enum { FILE_BYTES = 64 << 20, SLOTS_MAX = 1 << 20 };

static int add(struct hostfile *s, char *name, int slots, struct err *err)
{
    char *colon = strrchr(name, ':');
    int n = s->hosts;
    struct err why;

    if (colon && units_int(&slots, colon + 1, 1, SLOTS_MAX, &why) < 0)
        return err_data(err, "host list: ranks of \"%s\": %s", name, why.text);
    if (colon)
        *colon = '\0';
    if (!*name)
        return err_data(err, "host list: \":%d\" has no name", slots);
    MEM_PUSH(s->slot, n) = slots;
    MEM_PUSH(s->host, s->hosts) = mem_strdup(name);
    return 0;
}

static int add_list(struct hostfile *s, const char *list, int slots, struct err *err)
{
    char **name;
    int count, rc = 0;

    if (hostlist_expand(&name, &count, list, err) < 0)
        return -1;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = add(s, name[i], slots, err);
    hostlist_free(name, count);
    return rc;
}

/* Parse mpirun's words after a host: slots=N; max_slots=N is only a limit and does not count. */
static int add_line(struct hostfile *s, char *line, struct err *err)
{
    char *rest = NULL, *host, *word;
    int slots = 0, most;

    line[strcspn(line, "#\r\n")] = '\0';
    host = strtok_r(line, " \t", &rest);
    while (host && (word = strtok_r(NULL, " \t", &rest))) {
        bool counts = !strncmp(word, "slots=", 6);
        struct err why = {0, "only slots=N may follow a host"};
        if ((!counts && strncmp(word, "max_slots=", 10) != 0) ||
            units_int(counts ? &slots : &most, strchr(word, '=') + 1, 1, SLOTS_MAX, &why) < 0)
            return err_data(err, "\"%s\": %s", word, why.text);
    }
    return host ? add_list(s, host, slots, err) : 0;
}

static int add_file(struct hostfile *s, const char *path, struct err *err)
{
    char *text, *at, *line;
    int rc = 0, number = 0;
    struct err why;
    size_t len;

    if (file_read(&text, &len, path, FILE_BYTES, err) < 0)
        return -1;
    at = text;
    while (rc == 0 && (line = strsep(&at, "\n"))) {
        number++;
        if (add_line(s, line, &why) < 0)
            rc = err_data(err, "%s:%d: %s", path, number, why.text);
    }
    free(text);
    return rc || s->hosts ? rc : err_data(err, "%s: no host in it", path);
}

int hostfile_read(struct hostfile *s, const char *hosts, struct err *err)
{
    struct stat st;
    bool file = strchr(hosts, '/') || (stat(hosts, &st) == 0 && S_ISREG(st.st_mode));

    *s = (struct hostfile){NULL, NULL, 0};
    int rc = file ? add_file(s, hosts, err) : add_list(s, hosts, 0, err);
    if (rc < 0)
        hostfile_free(s);
    return rc;
}

void hostfile_free(struct hostfile *s)
{
    hostlist_free(s->host, s->hosts);
    free(s->slot);
    *s = (struct hostfile){NULL, NULL, 0};
}

int hostfile_deal(struct hostfile *s, int *ranks, struct err *err)
{
    long fit = 0;
    bool said = false;

    for (int i = 0; i < s->hosts; i++)
        said = said || s->slot[i];
    if (!*ranks && !said)
        *ranks = s->hosts;
    for (int i = 0; i < s->hosts; i++) {
        if (!said)
            s->slot[i] = (*ranks + s->hosts - 1) / s->hosts;
        else if (!s->slot[i])
            s->slot[i] = 1;
        fit += s->slot[i];
    }
    if (fit > SLOTS_MAX || *ranks > fit)
        return err_usage(err, "%ld ranks fit on the %d hosts of --hosts, not %d", fit, s->hosts,
                         *ranks ? *ranks : SLOTS_MAX);
    if (!*ranks)
        *ranks = (int)fit;
    return 0;
}
