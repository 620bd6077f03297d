/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static char dir[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/railgauge-file-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

/* Remove what the test left and count it. */
static int empty_folder(void)
{
    int n = 0;
    DIR *d = opendir(dir);

    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char *path = file_join(dir, e->d_name);
        n += e->d_name[0] != '.' && remove(path) == 0;
        free(path);
    }
    closedir(d);
    return n;
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(dir);
}

static void write_text(const char *path, const char *text)
{
    struct file_out f;

    assert_int_equal(file_begin(&f, path, NULL), 0);
    fputs(text, f.stream);
    assert_int_equal(file_commit(&f, NULL), 0);
}

TEST_WITH(a_committed_file_is_whole_and_alone, make_folder, remove_folder)
{
    char *path = file_join(dir, "a"), *text;
    size_t len;

    write_text(path, "one\n");
    write_text(path, "two\n");
    assert_int_equal(file_read(&text, &len, path, 100, NULL), 0);
    assert_string_equal(text, "two\n");
    assert_int_equal(len, 4);
    free(text);
    free(path);
    assert_int_equal(empty_folder(), 1);
}

TEST_WITH(an_aborted_file_leaves_the_old_one, make_folder, remove_folder)
{
    char *path = file_join(dir, "a"), *text;
    struct file_out f;

    write_text(path, "old");
    assert_int_equal(file_begin(&f, path, NULL), 0);
    fputs("new", f.stream);
    file_abort(&f);
    file_abort(&f);
    assert_int_equal(file_read(&text, NULL, path, 100, NULL), 0);
    assert_string_equal(text, "old");
    free(text);
    free(path);
    assert_int_equal(empty_folder(), 1);
}

/* The next writer clears what killed ones have left, not what a living one writes, nor other names.
 */
TEST_WITH(a_killed_writer_leaves_nothing_for_long, make_folder, remove_folder)
{
    char *path = file_join(dir, "a"), *other = file_join(dir, "a.tmp.x");
    struct file_out f;
    int ready[2], status;

    assert_int_equal(pipe(ready), 0);
    write_text(other, "");
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            int rc = file_begin(&f, path, NULL);
            (void)!write(ready[1], "", 1);
            if (rc < 0 || i == 0)
                _exit(1); /* as killed */
            for (;;)
                pause();
        }
        char *temp = mem_printf("%s.tmp.%ld", path, (long)pid), c;
        assert_int_equal(read(ready[0], &c, 1), 1);
        if (i == 0)
            waitpid(pid, &status, 0);
        assert_int_equal(access(temp, F_OK), 0);
        write_text(path, "new");
        assert_int_equal(access(temp, F_OK), i == 0 ? -1 : 0);
        if (i) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        free(temp);
    }
    write_text(path, "newer");
    free(path);
    free(other);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(empty_folder(), 2);
}

/* A pipe is written to and stays one; so is /dev/null. */
TEST_WITH(what_is_no_file_is_not_replaced, make_folder, remove_folder)
{
    char *path = file_join(dir, "pipe"), text[8] = "";
    struct stat st;

    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    write_text(path, "one\n");
    assert_int_equal(read(fd, text, sizeof(text) - 1), 4);
    assert_string_equal(text, "one\n");
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    close(fd);
    free(path);
    assert_int_equal(empty_folder(), 1);
}

TEST_WITH(a_full_disk_is_an_io_error_and_leaves_nothing, make_folder, remove_folder)
{
    struct file_out f;
    struct err e;
    char *path = file_join(dir, "a"), *expect;

    assert_int_equal(file_begin(&f, path, NULL), 0);
    fclose(f.stream);
    f.stream = fopen("/dev/full", "w");
    fputs("x", f.stream);
    assert_int_equal(file_commit(&f, &e), -1);
    assert_true(asprintf(&expect, "%s: cannot write: No space left on device", path) > 0);
    assert_string_equal(e.text, expect);
    assert_int_equal(e.code, EXIT_IO);
    free(expect);
    free(path);
    assert_int_equal(empty_folder(), 0);
}

TEST_WITH(unreadable_files_say_why, make_folder, remove_folder)
{
    char *text = NULL, *path = file_join(dir, "big"), *expect;
    struct err e;

    assert_int_equal(file_read(&text, NULL, "/nonexistent/x", 10, &e), -1);
    assert_string_equal(e.text, "/nonexistent/x: No such file or directory");
    assert_int_equal(e.code, EXIT_NOINPUT);
    assert_int_equal(file_read(&text, NULL, "/tmp", 10, &e), -1);
    assert_string_equal(e.text, "/tmp: not a regular file");
    assert_int_equal(e.code, EXIT_NOINPUT);
    write_text(path, "12345678901");
    assert_int_equal(file_read(&text, NULL, path, 10, &e), -1);
    assert_true(
        asprintf(&expect, "%s: 11 bytes is more than the 10 that this format may have", path) > 0);
    assert_string_equal(e.text, expect);
    assert_int_equal(e.code, EXIT_DATA);
    assert_null(text);
    free(expect);
    free(path);
}

TEST_WITH(folders_are_made_with_their_parents, make_folder, remove_folder)
{
    char *deep = file_join(dir, "x/y//z"), *plain = file_join(dir, "plain"), *under;
    const mode_t mask = 022, old = umask(mask);
    struct stat st;
    struct err e;

    assert_int_equal(file_mkdir(deep, &e), 0);
    umask(old);
    assert_int_equal(file_mkdir(deep, &e), 0);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0770 & ~mask); /* the umask rules; others see nothing */
    write_text(plain, "");
    under = file_join(plain, "sub");
    assert_int_equal(file_mkdir(under, &e), -1);
    assert_non_null(strstr(e.text, "/plain/sub: cannot make the folder: Not a directory"));
    assert_int_equal(file_mkdir(plain, &e), -1);
    assert_non_null(strstr(e.text, "/plain: cannot make the folder: File exists"));
    assert_int_equal(e.code, EXIT_IO);
    for (int i = 0; i < 3; i++) {
        rmdir(deep);
        *strrchr(deep, '/') = '\0';
        if (i == 0)
            *strrchr(deep, '/') = '\0';
    }
    free(deep);
    free(plain);
    free(under);
}

TEST(crc32c_matches_rfc_3720)
{
    unsigned char data[32];

    memset(data, 0, 32);
    assert_true(file_crc32c(0, data, 32) == 0x8a9136aau);
    memset(data, 0xff, 32);
    assert_true(file_crc32c(0, data, 32) == 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        data[i] = (unsigned char)i;
    assert_true(file_crc32c(0, data, 32) == 0x46dd794eu);
    assert_true(file_crc32c(file_crc32c(0, data, 10), data + 10, 22) == 0x46dd794eu);
    for (size_t n = 0; n <= sizeof(data); n++) { /* bit after bit, wherever the eights begin */
        uint32_t crc = ~0u;
        for (size_t i = 0; i < n; i++) {
            crc ^= data[sizeof(data) - n + i];
            for (int k = 0; k < 8; k++)
                crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        }
        assert_true(file_crc32c(0, data + sizeof(data) - n, n) == ~crc);
    }
}

TEST_WITH(data_files_are_found_by_environment_or_beside_the_program, make_folder, remove_folder)
{
    char *path = file_join(dir, "x.json"), *found;

    write_text(path, "{}");
    setenv("RAILGAUGE_DATA", dir, 1);
    found = file_data("x.json");
    assert_string_equal(found, path);
    free(found);
    assert_null(file_data("y.json"));
    unsetenv("RAILGAUGE_DATA");
    found = file_data("topo/fabrics/gb200-nvl72.json"); /* this test runs from the source tree */
    assert_non_null(found);
    free(found);
    free(path);
}
