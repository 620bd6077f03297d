/* SPDX-License-Identifier: BSD-3-Clause */
/* Private folders of file.h, and files of other users. */
#include "base/file.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STRANGER = 65534 };

static int lock; /* of the last folder */
static char here[] = "/tmp/file_own-XXXXXX";

static int make_here(void **state)
{
    (void)state;
    return mkdtemp(here) ? 0 : -1;
}

static int remove_here(void **state)
{
    (void)state;
    file_remove_dir(here);
    return access(here, F_OK) == 0;
}

static void touch(const char *dir, const char *name)
{
    char *path = file_join(dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
    free(path);
}

static bool is_there(const char *dir, const char *name)
{
    char *path = file_join(dir, name);
    bool yes = access(path, F_OK) == 0;

    free(path);
    return yes;
}

static char *folder(const char *name, mode_t mode)
{
    char *path = file_join(here, name);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

TEST(a_private_folder_is_new_and_ours)
{
    char *base = folder("sticky", 01777);
    const char *const bases[] = {NULL, "", base};
    struct stat st;
    struct err err;

    char *dir = file_private_dir(bases, 3, "x", &lock, &err);
    assert_non_null(dir);
    assert_int_equal(strncmp(dir, base, strlen(base)), 0);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    file_remove_dir(dir);
    assert_false(access(dir, F_OK) == 0);
    close(lock);
    free(dir);
    free(base);
}

TEST(a_folder_where_others_rename_is_left_out)
{
    char *open_to_all = folder("open", 0777), *below = folder("open/below", 0700);
    char *group = folder("group", 0770), *fine = folder("fine", 0755);
    const char *const bad[] = {open_to_all, below, group, "/nowhere"};
    struct err err;

    for (int i = 0; i < 3; i++) {
        assert_null(file_private_dir(&bad[i], 1, "x", &lock, &err));
        assert_int_equal(err.code, EXIT_CONFIG);
        assert_non_null(strstr(err.text, "other users may rename what is in it"));
    }
    assert_null(file_private_dir(&bad[3], 1, "x", &lock, &err));
    assert_non_null(strstr(err.text, "/nowhere: No such file or directory"));
    const char *const mixed[] = {open_to_all, fine};
    char *dir = file_private_dir(mixed, 2, "x", &lock, &err);
    assert_int_equal(strncmp(dir, fine, strlen(fine)), 0);
    close(lock);
    free(dir);
    free(open_to_all);
    free(below);
    free(group);
    free(fine);
}

/* A minute is what its maker has to lock it. */
TEST(what_a_killed_process_left_is_removed_by_the_next)
{
    static const struct {
        int age;
        bool used, stays;
    } kind[] = {{55, false, true}, {65, false, false}, {65, true, true}};
    char *base = folder("left", 0700);
    const char *const bases[] = {base};
    struct err err;

    for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
        char *left = file_private_dir(bases, 1, "x", &lock, &err);
        struct timespec old[2] = {{.tv_sec = time(NULL) - kind[i].age}};
        int held = lock;
        if (!kind[i].used)
            close(held);
        old[1] = old[0];
        touch(left, "file");
        assert_int_equal(utimensat(AT_FDCWD, left, old, 0), 0);
        char *next = file_private_dir(bases, 1, "x", &lock, &err);
        close(lock);
        assert_int_equal(access(left, F_OK) == 0, kind[i].stays);
        file_remove_dir(next);
        file_remove_dir(left);
        if (kind[i].used)
            close(held);
        free(next);
        free(left);
    }
    free(base);
}

TEST(removing_follows_no_link)
{
    char *victim = folder("victim", 0700), *dir = folder("dir", 0700);
    char *below = folder("dir/below", 0700);
    char *link = file_join(below, "link"), *alone = file_join(here, "alone");

    touch(victim, "kept");
    touch(below, "gone");
    assert_int_equal(symlink(victim, link), 0);
    file_remove_dir(dir);
    assert_false(is_there(here, "dir"));
    assert_int_equal(symlink(victim, alone), 0);
    file_remove_dir(alone);
    file_remove_dir(NULL);
    assert_true(is_there(victim, "kept"));
    free(victim);
    free(dir);
    free(below);
    free(link);
    free(alone);
}

static void refused(const char *path, const char *named)
{
    struct err err;

    assert_int_equal(file_check_owner(path, &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_non_null(strstr(err.text, named));
    assert_non_null(strstr(err.text, " belongs to user 65534, not to user 0"));
}

TEST(what_belongs_to_another_user_is_refused)
{
    struct err err;

    if (geteuid() != 0)
        skip(); /* giving files away needs root */
    char *dir = folder("campaign", 0700), *file = file_join(dir, "campaign.json");
    char *last = file_join(here, "last");
    touch(dir, "campaign.json");
    assert_int_equal(symlink(dir, last), 0);
    assert_int_equal(file_check_owner("/nowhere", &err), 0);
    assert_int_equal(file_check_owner(last, &err), 0);
    assert_int_equal(file_check_owner(file, &err), 0);
    assert_int_equal(lchown(file, STRANGER, STRANGER), 0);
    refused(dir, "campaign/campaign.json");
    refused(last, "last/campaign.json");
    refused(file, "campaign.json");
    assert_int_equal(lchown(file, 0, 0), 0);
    assert_int_equal(lchown(dir, STRANGER, STRANGER), 0);
    refused(dir, "campaign");
    refused(last, "last");
    assert_int_equal(lchown(dir, 0, 0), 0);
    assert_int_equal(lchown(last, STRANGER, STRANGER), 0);
    refused(last, "last");
    assert_int_equal(file_check_owner(dir, &err), 0);
    free(dir);
    free(file);
    free(last);
}

TEST_GROUP(make_here, remove_here)
