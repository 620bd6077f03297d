/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/effects.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct effect list[] = {
    {EFFECT_RELEASE, (char *)"stack 26.04", -0.2, 0.03, 9},
    {EFFECT_RELEASE, (char *)"stack 26.04.01", 0.05, 0.02, 4},
    {EFFECT_PUBLISHER, (char *)"stack", 0.1, 0.04, 20},
    {EFFECT_MODEL, (char *)"m", 0.3, 0.01, 5},
    {EFFECT_GPU, (char *)"g", 0, 0.01, 5},
    {EFFECT_MODEL_RELEASE, (char *)"m | stack 26.04", 0.01, 0.01, 3},
    {EFFECT_MODEL_PUBLISHER, (char *)"m | lab", 0.02, 0.01, 3},
    {EFFECT_PUBLISHER, (char *)"lab", 0.06, 0.04, 20},
    {EFFECT_RECIPE, (char *)"m | stack 26.04 | g | bf16", 0.001, 0.01, 3},
};
static const struct effects effects = {
    .effect = list, .count = sizeof(list) / sizeof(*list), .spread = {[EFFECT_RELEASE] = 0.5}};

static const struct {
    const char *publisher, *release, *model, *gpu, *dtype;
    double value; /* without the rest of the factors */
    enum known known;
} asked[] = {
    {NULL, "stack 26.04", "m", "g", NULL, -0.2 + 0.1 + 0.3 + 0.01, KNOWN_MODEL},
    {NULL, "stack 26.04", "m", "g", "bf16", -0.2 + 0.1 + 0.3 + 0.01 + 0.001, KNOWN_RECIPE},
    {NULL, "stack 26.04.01", "m", "g", NULL, 0.05 - 0.2 + 0.1 + 0.3 + 0.01, KNOWN_MODEL},
    {NULL, "stack 26.04.02", "m", "g", NULL, -0.2 + 0.1 + 0.3 + 0.01, KNOWN_MODEL}, /* of 26.04 */
    {NULL, "stack 26.04", "other", "g", NULL, -0.2 + 0.1, KNOWN_RELEASE},
    {NULL, "stack 26.06", "m", "g", NULL, 0.1 + 0.3, KNOWN_GPU},
    {NULL, "stack 26.06", "m", "new", NULL, 0.1 + 0.3, KNOWN_NOTHING},
    {NULL, NULL, "m", "g", NULL, 0.3, KNOWN_GPU},
    {"lab", NULL, "m", "g", NULL, 0.06 + 0.3 + 0.02, KNOWN_MODEL},
    {"lab", NULL, "other", "g", NULL, 0.06, KNOWN_RELEASE},
};

TEST(levels_that_are_known_enter_and_what_is_not_widens)
{
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        const struct effect_key key = {.model = asked[i].model,
                                       .publisher = asked[i].publisher,
                                       .release = asked[i].release,
                                       .gpu = asked[i].gpu,
                                       .dtype = asked[i].dtype};
        struct effect_level level[EFFECT_LEVELS];
        struct effect_sum sum;
        effect_sum_of(&sum, level, effect_levels(level, &effects, &key));
        if (fabs(sum.value - asked[i].value) > 1e-12 || sum.known != asked[i].known)
            fail_msg("case %zu: %g, not %g; %s, not %s", i, sum.value, asked[i].value,
                     known_name[sum.known], known_name[asked[i].known]);
        bool known = level[EFFECT_RELEASE].known;
        assert_true(known ? sum.variance < 0.25 + 0.01 : sum.variance >= 0.25);
    }
}

TEST(a_file_gives_back_what_was_written)
{
    struct effects back;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    effects_write(out, &effects);
    assert_int_equal(fclose(out), 0);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    effects_none(&back);
    assert_int_equal(effects_read(&back, root, "x", NULL), 0);
    assert_int_equal(back.count, effects.count);
    for (int i = 0; i < back.count; i++) {
        assert_string_equal(back.effect[i].level, list[i].level);
        assert_float_equal(back.effect[i].value, list[i].value, 0);
        assert_int_equal(back.effect[i].n, list[i].n);
    }
    assert_float_equal(back.spread[EFFECT_RELEASE], 0.5, 0);
    effects_free(&back);
    json_decref(root);
    free(text);
}

/* What is wrong in it, and what is said of it. */
static const struct {
    const char *text, *why;
} wrong[] = {
    {"{\"rest\": 0.1, \"factors\": [], \"levels\": []}", "intervals"},
    {"{\"rest\": 0.1, \"factors\": [{\"factor\": \"moon\", \"spread\": 1}], \"levels\": [], "
     "\"intervals\": []}",
     "x: factors[0]: factor \"moon\" is not known (known: model, publisher, "},
    {"{\"rest\": 0.1, \"factors\": [], \"levels\": [{\"factor\": \"gpu\", \"level\": \"g\", "
     "\"value\": 9, \"error\": 0, \"n\": 1}], \"intervals\": []}",
     "value"},
    {"{\"rest\": 0.1, \"factors\": [], \"levels\": [{\"factor\": \"gpu\", \"level\": \"\", "
     "\"value\": 0, \"error\": 0, \"n\": 1}], \"intervals\": []}",
     "x: levels[0]: level \"\" is empty"},
    {"{\"rest\": 0.1, \"factors\": [], \"levels\": [], \"intervals\": [{\"known\": \"gpu\", "
     "\"experts\": true, \"lo\": 1, \"hi\": 2, \"n\": 1}]}",
     "lo"},
};

TEST(what_is_wrong_is_refused)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        json_t *root = json_loads(wrong[i].text, 0, NULL);
        struct effects e;
        struct err err = {0, ""};
        effects_none(&e);
        assert_int_equal(effects_read(&e, root, "x", &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, wrong[i].why))
            fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i].why);
        effects_free(&e);
        json_decref(root);
    }
}
