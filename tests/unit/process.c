/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - what programs print, and how they fail. */
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "test.h"

static void ends_with(const char *script, size_t max, double seconds, const char *why)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct err err = {0};
    char *text;
    size_t len;

    assert_int_equal(process_output(&text, &len, argv, max, seconds, &err), -1);
    assert_null(text);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_string_equal(err.text, why);
}

TEST(what_is_printed_is_kept)
{
    static const char *const argv[] = {"sh", "-c", "cat; printf 'one\\ntwo'; echo no >&2", NULL};
    struct err err;
    char *text;
    size_t len;

    assert_int_equal(process_output(&text, &len, argv, 7, 60, &err), 0);
    assert_int_equal(len, 7);
    assert_string_equal(text, "one\ntwo");
    free(text);
}

TEST(failures_are_told_in_the_program_s_words)
{
    static const char *const none[] = {"railgauge-has-no-such-program", NULL};
    struct err err;
    char *text;
    size_t len;

    ends_with("echo 'no daemon' >&2; exit 3", 100, 60, "sh ends with 3: no daemon");
    ends_with("kill -9 $$", 100, 60, "sh was ended by signal 9");
    ends_with("printf 12345678", 7, 60, "sh prints more than 7 bytes");
    ends_with("exec cat /dev/zero", 1 << 20, 60, "sh prints more than 1048576 bytes");
    ends_with("exec sleep 60", 100, 0.2, "sh is not done after 0.2 s");
    setenv("PATH", "/usr/bin:/bin", 1); /* one that may not be searched would be another reason */
    assert_int_equal(process_output(&text, &len, none, 100, 60, &err), -1);
    assert_string_equal(err.text,
                        "railgauge-has-no-such-program cannot be started: No such file or "
                        "directory");
}
