/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/err.h"
#include "test.h"

#include <string.h>

TEST(each_class_of_error_has_its_exit_code)
{
    struct err e;

    assert_int_equal(err_set(&e, "x"), -1);
    assert_int_equal(e.code, 2);
    err_usage(&e, "x");
    assert_int_equal(e.code, 64);
    err_data(&e, "x");
    assert_int_equal(e.code, 65);
    err_noinput(&e, "x");
    assert_int_equal(e.code, 66);
    err_io(&e, "x");
    assert_int_equal(e.code, 74);
    err_config(&e, "x");
    assert_int_equal(e.code, 78);
    err_code(&e, EXIT_CUT, "%s:%d", "a", 7);
    assert_int_equal(e.code, 75);
    assert_string_equal(e.text, "a:7");
}

TEST(wrapping_puts_the_context_first_and_keeps_the_code)
{
    struct err e;

    err_noinput(&e, "no such file");
    assert_int_equal(err_wrap(&e, "group %d", 3), -1);
    assert_string_equal(e.text, "group 3: no such file");
    assert_int_equal(e.code, EXIT_NOINPUT);
}

TEST(a_long_text_is_cut_and_stays_terminated)
{
    struct err e;
    char text[2000];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_data(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static const char *meant(const char *word)
{
    static const char *const known[] = {"show",        "predict",     "slurm-block", "slurm-tree",
                                        "llama2-7b",   "llama3.1-8b", "gb200-nvl72", "all_gather",
                                        "gb300-nvl72", "tp",          "op"};
    static struct near near;

    near = (struct near){.word = word};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        near_try(&near, known[i]);
    return near_text(&near);
}

TEST(the_word_that_was_meant_is_the_nearest_one)
{
    char letters[100];

    assert_string_equal(meant("shwo"), " (did you mean \"show\"?)");
    assert_string_equal(meant("perdict"), " (did you mean \"predict\"?)");
    assert_string_equal(meant("slurm_blok"), " (did you mean \"slurm-block\"?)");
    assert_string_equal(meant("slurm"), " (did you mean \"slurm-block\"?)");
    assert_string_equal(meant("llama3-8b"), " (did you mean \"llama3.1-8b\"?)");
    assert_string_equal(meant("GB300-NVL72"), " (did you mean \"gb300-nvl72\"?)");
    assert_string_equal(meant("gb300"), " (did you mean \"gb300-nvl72\"?)");
    assert_string_equal(meant("allgather"), " (did you mean \"all_gather\"?)");
    assert_string_equal(meant("tpp"), " (did you mean \"tp\"?)");
    assert_string_equal(meant("mesure"), "");
    assert_string_equal(meant("xy"), "");
    assert_string_equal(meant("x"), "");
    assert_string_equal(meant(""), "");
    memset(letters, 's', sizeof(letters) - 1);
    letters[sizeof(letters) - 1] = '\0';
    assert_string_equal(meant(letters), "");
}

TEST(an_error_nobody_wants_to_read_is_still_an_error)
{
    assert_int_equal(err_data(NULL, "x %d", 1), -1);
    assert_int_equal(err_code(NULL, 1, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}
