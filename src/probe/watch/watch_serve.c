/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/watch/watch_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "probe/watch/watch_listen.h"

extern char **environ;

enum { SOCKET = 3 }; /* the descriptor that the listener finds its socket on */

/* Ours with RAILGAUGE_WATCH: a token does not belong on a command line, where everybody reads it.
 */
static char **make_environment(const char *where)
{
    char **env = NULL;
    int n = 0;

    for (char **e = environ; *e; e++)
        if (strncmp(*e, "RAILGAUGE_WATCH=", 16))
            MEM_PUSH(env, n) = *e;
    MEM_PUSH(env, n) = mem_printf("RAILGAUGE_WATCH=%s", where);
    MEM_PUSH(env, n) = NULL;
    return env;
}

static int spawn(int fd, char **argv, char **env)
{
    char exe[PATH_MAX] = "";
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    pid_t pid;

    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
        return errno;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fd, SOCKET);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    int why = posix_spawn(&pid, exe, &files, &how, argv, env);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return why;
}

int serve_spawn(const char *address, char *const *hosts, int n, double hang_after, const char *dir,
                char where[WATCH_WHERE], struct err *err)
{
    char chosen[64], *patience = mem_printf("%.3f", hang_after);
    char *argv[] = {(char *)"railgauge-probe", (char *)"watch", patience, (char *)dir, NULL};

    listen_address(hosts, n, chosen);
    int fd = net_bind(address ? address : chosen, where, err), rc = fd < 0 ? -1 : 0;
    if (rc == 0) {
        char **env = make_environment(where);
        int count = 0, why = spawn(fd, argv, env);
        while (env[count + 1])
            count++;
        free(env[count]);
        free(env);
        close(fd);
        if (why) {
            where[0] = '\0';
            rc = err_config(err, "cannot start the watch: %s", strerror(why));
        }
    }
    free(patience);
    return rc;
}

/* What rank 0 has open is not ours: its MPI's sockets would stay open when it dies. */
static void close_others(void)
{
    long max = sysconf(_SC_OPEN_MAX);

    for (int fd = SOCKET + 1; fd < (max < 65536 ? max : 65536); fd++)
        close(fd);
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    fcntl(SOCKET, F_SETFL, O_NONBLOCK);
}

/* Until everybody has come and gone.  Those that died together with the last one still have their
 * verdict. */
static void serve(struct listener *l)
{
    double begun = log_now(), alone = 0;

    while (!listen_verdict(l)) {
        double now = log_now();
        alone = listen_turn(l, 50) ? 0 : alone > 0 ? alone : now;
        if (listen_over(l))
            return;
        if (listen_met(l) ? alone > 0 && now - alone > 0.5 : now - begun > 60)
            return;
    }
    listen_drain(l, 5);
}

int serve_main(int argc, char **argv)
{
    static const int deaf[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1};
    const char *where = getenv("RAILGAUGE_WATCH");
    struct err err = {0, ""};
    double hang_after;
    int listens = 0;
    socklen_t len = sizeof(listens);

    if (argc < 2 || argc > 3 || !where ||
        getsockopt(SOCKET, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || !listens) {
        log_error("watch is for rank 0, which starts it");
        return EXIT_USAGE;
    }
    if (units_seconds(&hang_after, argv[1], &err) < 0) {
        log_error("%s", err.text);
        return err.code;
    }
    for (size_t i = 0; i < sizeof(deaf) / sizeof(*deaf); i++)
        signal(deaf[i], SIG_IGN);
    close_others();
    struct listener *l = listen_adopt(SOCKET, where, hang_after, argc > 2 ? argv[2] : NULL);
    serve(l);
    listen_close(l);
    return EXIT_GOOD;
}
