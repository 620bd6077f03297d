/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/plot/gnuplot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

extern char **environ;

/* Start gnuplot with what it says going to `log`; its status, or -errno when it could not start. */
static int run(char *const argv[], int log)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status, rc;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
    rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc)
        return -rc;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return status;
}

/* The last line that gnuplot said that is no warning, one line, without control characters. */
static void last_words(char *buf, size_t size, FILE *log)
{
    char line[400];

    snprintf(buf, size, "(it said nothing)");
    rewind(log);
    while (fgets(line, sizeof(line), log)) {
        size_t n = strcspn(line, "\n");
        while (n && isspace((unsigned char)line[n - 1]))
            n--;
        line[n] = '\0';
        for (size_t i = 0; i < n; i++)
            if (iscntrl((unsigned char)line[i]))
                line[i] = '?';
        if (n > 1 && !strstr(line, "warning:") && strspn(line, " ^") != n)
            snprintf(buf, size, "%s", line);
    }
}

/* Does the file end as its format must? */
static bool whole(const char *path, const char *format)
{
    static const char png[] = "IEND\xae\x42\x60\x82";
    const char *mark = !strcmp(format, "png") ? png : !strcmp(format, "svg") ? "</svg>" : "%%EOF";
    char tail[64];
    FILE *f = fopen(path, "rb");
    bool found = false;
    size_t n = 0;

    if (!f)
        return false;
    if (fseek(f, -(long)sizeof(tail), SEEK_END) == 0)
        n = fread(tail, 1, sizeof(tail), f);
    fclose(f);
    found = n && memmem(tail, n, mark, strlen(mark)) != NULL;
    return found;
}

static int draw(const char *script, const char *data, const char *temp, const char *format,
                struct err *err)
{
    const char *const argv[] = {"gnuplot", "-d", "-c", script, data, temp, format, NULL};
    char words[400];
    FILE *log = tmpfile();
    int status;

    if (!log)
        return err_io(err, "cannot make a temporary file: %s", strerror(errno));
    status = run((char *const *)argv, fileno(log));
    last_words(words, sizeof(words), log);
    fclose(log);
    if (status == -ENOENT)
        return 1;
    if (status < 0)
        return err_io(err, "cannot start gnuplot: %s", strerror(-status));
    if (WIFSIGNALED(status))
        return err_io(err, "gnuplot died of signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return err_data(err, "gnuplot %s: exit status %d: %s", script, WEXITSTATUS(status), words);
    if (!whole(temp, format))
        return err_io(err, "gnuplot %s wrote half a picture; is the disk full?", script);
    return 0;
}

int gnuplot_draw(const char *script, const char *data, const char *picture, const char *format,
                 struct err *err)
{
    char *name = mem_printf("plots/%s.gp", script), *path = file_data(name);
    char *in = realpath(data, NULL), *temp = NULL;
    int rc = -1;

    if (!path) {
        err_config(err, "%s is not installed; $RAILGAUGE_DATA names the folder that has plots/",
                   name);
        goto out;
    }
    if (!in) {
        err_noinput(err, "%s: %s", data, strerror(errno));
        goto out;
    }
    /* Absolute, so that no file name is read as an option or a command; beside the data, whose
     * folder is ours. */
    temp = mem_printf("%s/.%s.%ld.%s", in, script, (long)getpid(), format);
    rc = draw(path, in, temp, format, err);
    if (rc == 0 && rename(temp, picture) < 0)
        rc = err_io(err, "cannot rename %s to %s: %s", temp, picture, strerror(errno));
    if (rc)
        unlink(temp);
out:
    free(name);
    free(path);
    free(in);
    free(temp);
    return rc;
}
