/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mem.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

TEST(memory_is_zeroed_and_nothing_is_still_something)
{
    int *v = mem_calloc(100, sizeof(*v));

    for (int i = 0; i < 100; i++)
        assert_int_equal(v[i], 0);
    free(v);
    void *p = mem_calloc(0, 8);
    assert_non_null(p);
    p = mem_realloc(p, 0, 8);
    assert_non_null(p);
    free(p);
}

TEST(a_pushed_array_keeps_every_item)
{
    int *v = NULL, n = 0;

    for (int i = 0; i < 1000; i++)
        MEM_PUSH(v, n) = i;
    assert_int_equal(n, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    free(v);
}

TEST(texts_are_printed_to_their_length)
{
    char *s = mem_printf("%0600d", 7);

    assert_int_equal(s[599], '7');
    free(s);
}

TEST(an_overflowing_request_ends_the_program_with_io)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        free(mem_realloc(NULL, SIZE_MAX / 2, 4));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_IO);
}

static int write_more_than_there_is(void *arg)
{
    struct rlimit limit;
    char *text, piece[1 << 10];
    size_t len;
    FILE *out = mem_stream(&text, &len);

    memset(piece, 'x', sizeof(piece));
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 256u << 20;
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < 512 << 10; i++)
        fwrite(piece, 1, sizeof(piece), out); /* as most writers do: the end tells */
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    *(int *)arg = 1; /* all was said to be written */
    mem_stream_end(out);
    free(text);
    return 0;
}

TEST(text_that_found_no_memory_is_not_said_to_be_whole)
{
    struct err err = {0};
    int written = 0;

    if (getenv("RG_SAN") && *getenv("RG_SAN"))
        skip(); /* sanitizers take more addresses than the limit */
    assert_int_equal(mem_guarded(write_more_than_there_is, &written, &err), -1);
    assert_int_equal(written, 1);
    assert_string_equal(err.text, "out of memory");
}

TEST(a_text_is_whole_at_every_length)
{
    for (size_t n = 0; n < 9000; n += 1 + n / 7) {
        char *text;
        size_t len;
        FILE *out = mem_stream(&text, &len);
        for (size_t i = 0; i < n; i++)
            fputc('a' + (int)(i % 26), out);
        mem_stream_end(out);
        assert_int_equal(len, n);
        assert_int_equal(strlen(text), n);
        assert_true(n == 0 || text[n - 1] == 'a' + (char)((n - 1) % 26));
        free(text);
    }
}
