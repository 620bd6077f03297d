/* SPDX-License-Identifier: BSD-3-Clause */
/* taint.c - the note of a point that was measured while a GPU or a port suffered, there and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/taint.h"

static const char *subject(const struct point *p)
{
    static char text[POINT_NOTE];
    const char *at;
    int len = taint_subject(p, &at);

    snprintf(text, sizeof(text), "%.*s", len, at);
    return text;
}

static void a_note_names_the_endpoint_and_is_read_again(void **state)
{
    struct point p = {.stop = STOP_CI};
    struct topo t;

    (void)state;
    topo_init(&t);
    int host = topo_add_host(&t, "a-host-with-a-name-that-is-longer-than-forty-characters");
    for (int i = 0; i < 12; i++)
        topo_add_endpoint(&t, host, ENDPOINT_GPU);
    taint_note(&p, &t, 11, "hardware thermal slowdown, 3 PCIe replays");
    assert_string_equal(p.note,
                        "tainted: endpoint 11 (a-host-with-a-name-that-is-longer-than-f:11): "
                        "hardware thermal slowdown, 3 PCIe replays");
    assert_true(taint_is(&p));
    assert_string_equal(subject(&p), "endpoint 11 (a-host-with-a-name-that-is-longer-than-f:11)");
    assert_string_equal(taint_words(&p), "hardware thermal slowdown, 3 PCIe replays");
    p.wrong = true;
    assert_false(taint_is(&p));
    p.wrong = false;
    p.stop = STOP_FAILED;
    assert_false(taint_is(&p));
    topo_free(&t);
}

static void a_note_names_the_port_and_its_host(void **state)
{
    struct point p = {.stop = STOP_CI};
    struct topo t;

    (void)state;
    topo_init(&t);
    topo_add_host(&t, "node01");
    taint_note_port(&p, &t, topo_add_host(&t, "node03"), "mlx5_2 port 1", "12 symbol errors");
    assert_string_equal(p.note, "tainted: mlx5_2 port 1 on node03: 12 symbol errors");
    assert_true(taint_is(&p));
    assert_string_equal(subject(&p), "mlx5_2 port 1 on node03");
    assert_string_equal(taint_words(&p), "12 symbol errors");
    p.wrong = true;
    assert_false(taint_is(&p));
    topo_free(&t);
}

static void other_notes_are_none(void **state)
{
    static const char *const notes[] = {"",
                                        "tainted",
                                        "tainted: ",
                                        "tainted: endpoint x (h:1): heat",
                                        "tainted: mlx5_0: 3 symbol errors",
                                        "tainted: eth0: 3 CRC errors on eth0",
                                        "offset 7: 3 where 4 was sent on time: no"};
    struct point p = {.stop = STOP_CI};

    (void)state;
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
        p.note = notes[i];
        assert_false(taint_is(&p));
        assert_string_equal(subject(&p), "");
        assert_string_equal(taint_words(&p), "");
    }
    p.note = "tainted: endpoint 3";
    assert_string_equal(taint_words(&p), "");
}

static void without_nvml_nothing_is_watched(void **state)
{
    struct world w = world_solo;
    struct point p = {.stop = STOP_CI};
    struct taint_said said = {.gpu = "x"};
    struct taint *taint;
    struct err err;
    struct topo t;
    int rank = 0;

    (void)state;
    w.solo = false;
    topo_init(&t);
    int id = topo_add_endpoint(&t, topo_add_host(&t, "node01"), ENDPOINT_GPU);
    strcpy(t.endpoint[id].busid, "0000:01:00.0");
    setenv("RAILGAUGE_NVML", "/nonexistent", 1);
    assert_int_equal(taint_open(&taint, &w, &t, &err), 0);
    taint_begin(taint, true);
    assert_int_equal(taint_end(taint, &said, &err), 0);
    assert_string_equal(said.gpu, "");
    taint_hear(taint, &said, sizeof(said));
    taint_mark(taint, &p, &rank, 1);
    assert_null(p.note);
    strcpy(said.gpu, "heat");
    taint_mark(taint, &p, &rank, 1);
    assert_string_equal(p.note, "tainted: endpoint 0 (node01:0): heat");
    taint_close(taint);
    topo_free(&t);
}

static void a_world_of_one_process_watches_nothing(void **state)
{
    struct taint_said said = {.gpu = "x"};
    struct taint *taint;
    struct err err;

    (void)state;
    assert_int_equal(taint_open(&taint, &world_solo, NULL, &err), 0);
    assert_null(taint);
    taint_begin(taint, true);
    assert_int_equal(taint_end(taint, &said, &err), 0);
    assert_string_equal(said.gpu, "");
    assert_int_equal(taint_report(taint, &err), 0);
    taint_close(taint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_names_the_endpoint_and_is_read_again),
        cmocka_unit_test(a_note_names_the_port_and_its_host),
        cmocka_unit_test(other_notes_are_none),
        cmocka_unit_test(without_nvml_nothing_is_watched),
        cmocka_unit_test(a_world_of_one_process_watches_nothing),
    };

    return cmocka_run_group_tests_name("taint", tests, NULL, NULL);
}
