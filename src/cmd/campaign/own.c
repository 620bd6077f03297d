/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaign/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

static bool trusts(const struct stat *st)
{
    struct stat root;

    return st->st_uid == geteuid() || st->st_uid == 0 ||
           (stat("/", &root) == 0 && st->st_uid == root.st_uid);
}

/* --- folders --- */

/* True if nobody else can replace a name in this folder.  In a sticky one only owners rename. */
static int keeps_names(const char *dir, struct err *err)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return err_config(err, "%s: %s", dir, strerror(errno));
    if (!trusts(&st))
        return err_config(err, "%s belongs to user %u", dir, st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
        return err_config(err, "%s: other users may rename what is in it", dir);
    return 0;
}

/* The resolved folder and each above it. */
static int is_safe(char *dir, struct err *err)
{
    int rc = keeps_names("/", err);

    for (char *s = dir + 1; rc == 0 && *s; s++)
        if (*s == '/') {
            *s = '\0';
            rc = keeps_names(dir, err);
            *s = '/';
        }
    return rc < 0 ? rc : keeps_names(dir, err);
}

static char *dir_in(const char *base, const char *stem, struct err *err)
{
    char *real = realpath(base, NULL), *dir = NULL;

    if (!real)
        err_config(err, "%s: %s", base, strerror(errno));
    else if (is_safe(real, err) == 0) {
        dir = mem_printf("%s/%s-XXXXXX", strcmp(real, "/") ? real : "", stem);
        if (!mkdtemp(dir)) {
            err_config(err, "%s: %s", dir, strerror(errno));
            free(dir);
            dir = NULL;
        }
    }
    free(real);
    return dir;
}

char *own_dir(const char *const *base, int count, const char *stem, struct err *err)
{
    char *dir = NULL;
    struct err why = {0, "TMPDIR is empty"};

    for (int i = 0; i < count && !dir; i++)
        if (base[i] && *base[i])
            dir = dir_in(base[i], stem, &why);
    if (!dir)
        err_config(err, "no place for a private folder: %s (TMPDIR names one)", why.text);
    return dir;
}

/* Depth first.  What cannot be removed stays. */
static void empty(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0) {
            empty(fd, e->d_name);
            unlinkat(fd, e->d_name, AT_REMOVEDIR);
        }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

void own_remove(const char *dir)
{
    if (!dir)
        return;
    empty(AT_FDCWD, dir);
    rmdir(dir);
}

/* --- owners --- */

static int refuse(const char *path, const struct stat *st, struct err *err)
{
    return err_config(err, "%s belongs to user %u, not to user %u, who runs this", path, st->st_uid,
                      geteuid());
}

static int check_names(DIR *d, const char *dir, struct err *err)
{
    struct stat st;
    int rc = 0;

    for (struct dirent *e; rc == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0 &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !trusts(&st)) {
            char *path = file_join(dir, e->d_name);
            rc = refuse(path, &st, err);
            free(path);
        }
    return rc;
}

int own_check(const char *path, struct err *err)
{
    struct stat st;
    int rc = 0;

    if (lstat(path, &st) < 0)
        return 0;
    if (!trusts(&st) || (stat(path, &st) == 0 && !trusts(&st)))
        return refuse(path, &st, err);
    DIR *d = opendir(path);
    if (d) {
        rc = check_names(d, path, err);
        closedir(d);
    }
    return rc;
}
