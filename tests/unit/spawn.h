/* spawn.h - a program that must do what it is asked to. */
#ifndef RG_TESTS_SPAWN_H
#define RG_TESTS_SPAWN_H

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static inline void spawn(const char *const *argv)
{
    int status;
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#endif
