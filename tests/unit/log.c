/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[4096];
static int saved, pipes[2];

static void listen_start(void)
{
    fflush(stderr);
    saved = dup(2);
    assert_int_equal(pipe(pipes), 0);
    dup2(pipes[1], 2);
    close(pipes[1]);
}

static const char *listen_end(void)
{
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    ssize_t n = read(pipes[0], said, sizeof(said) - 1);
    said[n > 0 ? n : 0] = '\0';
    close(pipes[0]);
    return said;
}

TEST(messages_name_the_program_and_hide_what_is_below_the_level)
{
    log_setup("railgauge fit", LOG_INFO);
    listen_start();
    log_error("no \"%s\"", "x");
    log_warn("slow");
    log_info("done");
    log_debug("hidden");
    assert_string_equal(
        listen_end(),
        "railgauge fit: no \"x\"\nrailgauge fit: warning: slow\nrailgauge fit: done\n");
}

TEST(control_characters_from_elsewhere_are_not_passed_on)
{
    log_setup("railgauge", LOG_INFO);
    listen_start();
    log_info("host %s", "\033[31mred\a");
    assert_string_equal(listen_end(), "railgauge: host ?[31mred?\n");
}

TEST(progress_shows_share_eta_and_note_and_is_wiped)
{
    struct progress p;
    const char *text;

    setenv("RAILGAUGE_PROGRESS", "1", 1);
    log_setup("railgauge", LOG_INFO);
    listen_start();
    progress_start(&p, 4);
    p.started -= 10010; /* ETA 30030 s: whatever the machine does meanwhile, in the same minute */
    progress_show(&p, 1, "all_gather 8 MiB");
    p.shown += 3600;
    progress_show(&p, 2, "too soon to be drawn");
    log_info("a message");
    p.shown -= 3600.2;
    progress_show(&p, 4, "the last");
    progress_end(&p);
    text = listen_end();
    assert_string_equal(text, "\r\033[K 25%  ETA 8 h 20 m  all_gather 8 MiB"
                              "\r\033[Krailgauge: a message\n"
                              "\r\033[K100%  ETA 0.00 ns  the last\r\033[K");
}

TEST(progress_is_silent_when_nobody_watches)
{
    struct progress p;

    unsetenv("RAILGAUGE_PROGRESS");
    listen_start();
    progress_start(&p, 4);
    progress_show(&p, 1, "x");
    progress_end(&p);
    assert_string_equal(listen_end(), "");
}
