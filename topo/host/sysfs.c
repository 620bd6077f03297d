/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/host/sysfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

bool sysfs_line(char *line, int size, const char *root, const char *path)
{
    char *full = mem_printf("%s%s", root, path);
    FILE *f = fopen(full, "re");

    free(full);
    line[0] = '\0';
    if (!f)
        return false;
    if (!fgets(line, size, f))
        line[0] = '\0'; /* a port that is down answers EINVAL */
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return line[0] != '\0';
}

bool sysfs_exists(const char *root, const char *path, const char *more)
{
    char *full = mem_printf("%s%s%s", root, path, more);
    bool yes = access(full, F_OK) == 0;

    free(full);
    return yes;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

bool sysfs_list(char ***names, int *count, const char *root, const char *path)
{
    char *full = mem_printf("%s%s", root, path);
    DIR *dir = opendir(full);

    free(full);
    *names = NULL;
    *count = 0;
    if (!dir)
        return false;
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            MEM_PUSH(*names, *count) = mem_strdup(e->d_name);
    closedir(dir);
    if (*count)
        qsort(*names, (size_t)*count, sizeof(**names), by_name);
    return true;
}
