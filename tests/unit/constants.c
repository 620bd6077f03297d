/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/constants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "topo/fabrics/fabric.h"

static void the_shipped_file_gives_each_constant_a_source_and_an_error(void **state)
{
    struct constants c;

    (void)state;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    for (int i = 0; i < c.count; i++) {
        assert_true(strlen(c.constant[i].source) >= 7);
        assert_true(c.constant[i].error > 0 || !strncmp(c.constant[i].name, "error.", 6));
    }
    assert_true(constants_find(&c, "efficiency.default")->value > 0);
    assert_null(constants_find(&c, "efficiency.abacus.bf16"));
    constants_free(&c);
}

/* The shipped file with one thing changed must be refused with that reason. */
static void load_changed(json_t *root, const char *says)
{
    char path[] = "/tmp/constants-XXXXXX.json";
    struct constants c;
    struct err err;
    int fd = mkstemps(path, 5);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    assert_int_equal(constants_load(&c, path, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, says) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    constants_free(&c);
    unlink(path);
}

static void a_changed_file_is_refused_with_place_and_reason(void **state)
{
    static const struct {
        const char *key, *json, *says;
    } change[] = {
        {"name", "\"exposed.everything\"",
         "constants[0]: no constant is called \"exposed.everything\""},
        {"name", "\"fixed.seconds\"", "\"fixed.seconds\" is given twice"},
        {"name", "3", "constants[0]: "},
        {"value", "1.5", "constants[0]: \"value\" is 1.5, outside 0.01..1"},
        {"value", "\"0.5\"", "\"value\" is not a number"},
        {"value", "-1", "\"value\" is -1, outside"},
        {"error", "9", "\"error\" is 9, outside 0..2"},
        {"source", "null", "constants[0]: "},
        {"extra", "1", "extra"},
    };
    struct constants c;

    (void)state;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
        json_t *root = json_load_file(c.path, 0, NULL);
        json_object_set_new(json_array_get(json_object_get(root, "constants"), 0), change[i].key,
                            json_loads(change[i].json, JSON_DECODE_ANY, NULL));
        load_changed(root, change[i].says);
        json_decref(root);
    }
    constants_free(&c);
}

static void a_missing_constant_is_named(void **state)
{
    struct constants c;

    (void)state;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    json_t *root = json_load_file(c.path, 0, NULL), *list = json_object_get(root, "constants");
    for (int i = c.count - 1; i >= 0; i--)
        if (!strcmp(c.constant[i].name, "overlap.dp"))
            json_array_remove(list, (size_t)i);
    load_changed(root, "constant \"overlap.dp\" is missing");
    json_object_set_new(root, "constants", json_integer(1));
    load_changed(root, "\"constants\" is not a list");
    json_decref(root);
    constants_free(&c);
}

static void presets_say_the_generation_of_their_gpu(void **state)
{
    static const char *const want[][2] = {{"gb300-nvl72", "blackwell-ultra"},
                                          {"gb200-nvl72", "blackwell"},
                                          {"hgx-h200", "hopper"},
                                          {"hgx-a100", "ampere"}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct fabric f;
        assert_int_equal(fabric_load(&f, want[i][0], NULL), 0);
        assert_string_equal(f.gpu.generation, want[i][1]);
        fabric_free(&f);
    }
}

static void what_is_saved_loads_as_it_was(void **state)
{
    char path[] = "/tmp/constants-XXXXXX.json";
    struct constants c, back;
    int fd = mkstemps(path, 5);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    c.constant[0].value = 0.12345678;
    assert_int_equal(constants_save(&c, path, NULL), 0);
    assert_int_equal(constants_load(&back, path, NULL), 0);
    assert_int_equal(back.count, c.count);
    assert_float_equal(back.constant[0].value, 0.1235, 1e-12); /* four digits */
    for (int i = 0; i < c.count; i++) {
        assert_string_equal(back.constant[i].name, c.constant[i].name);
        assert_string_equal(back.constant[i].source, c.constant[i].source);
        assert_float_equal(back.constant[i].error, c.constant[i].error, 1e-12);
    }
    constants_free(&c);
    constants_free(&back);
    unlink(path);
}

static void rates_and_exposures_are_fitted_and_errors_are_not(void **state)
{
    double min, max;

    (void)state;
    assert_true(constants_fitted("efficiency.hopper.bf16", &min, &max));
    assert_float_equal(min, 0.01, 0);
    assert_float_equal(max, 1, 0);
    assert_true(constants_fitted("exposed.tp", &min, &max));
    assert_float_equal(min, 0, 0);
    assert_false(constants_fitted("efficiency.default", &min, &max));
    assert_false(constants_fitted("error.preset", &min, &max));
    assert_false(constants_fitted("optimizer.bytes_per_param", &min, &max));
    assert_false(constants_fitted("no.such", &min, &max));
}

/* As by name: of a generation and dtype, else the default. */
static void open_names_are_found_by_what_they_are_of(void **state)
{
    struct constants c;

    (void)state;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        static const char *const generations[] = {"hopper", "blackwell", "ampere", "abacus"};
        char name[64];
        for (int g = 0; g < 4; g++) {
            snprintf(name, sizeof(name), "efficiency.%s.%s", generations[g], recipe_name.dtype[d]);
            const struct constant *want = constants_find(&c, name);
            assert_ptr_equal(constants_efficiency(&c, generations[g], d),
                             want ? want : constants_get(&c, CONSTANT_EFFICIENCY_DEFAULT));
            snprintf(name, sizeof(name), "attention.%s", generations[g]);
            want = constants_find(&c, name);
            assert_ptr_equal(constants_attention(&c, generations[g]),
                             want ? want : constants_get(&c, CONSTANT_ATTENTION_DEFAULT));
        }
        snprintf(name, sizeof(name), "experts.%s", recipe_name.dtype[d]);
        const struct constant *want = constants_find(&c, name);
        assert_ptr_equal(constants_experts(&c, d),
                         want ? want : constants_get(&c, CONSTANT_EXPERTS_DEFAULT));
    }
    assert_ptr_equal(constants_efficiency(&c, NULL, DTYPE_BF16),
                     constants_get(&c, CONSTANT_EFFICIENCY_DEFAULT));
    constants_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_names_are_found_by_what_they_are_of),
        cmocka_unit_test(what_is_saved_loads_as_it_was),
        cmocka_unit_test(rates_and_exposures_are_fitted_and_errors_are_not),
        cmocka_unit_test(the_shipped_file_gives_each_constant_a_source_and_an_error),
        cmocka_unit_test(a_changed_file_is_refused_with_place_and_reason),
        cmocka_unit_test(a_missing_constant_is_named),
        cmocka_unit_test(presets_say_the_generation_of_their_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
