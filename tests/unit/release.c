/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct constant list[] = {
    {"release.default", 0.9, 0.05, ""},
    {"release.stack-26.04", 0.8, 0.05, ""},
    {"release.stack-26", 0.7, 0.05, ""},
    {"release.stack-26.04.experts", 1.3, 0.05, ""},
};
static const struct constants constants = {list, 4, .path = NULL};
static struct layer plain = {.count = 1}, routed = {.count = 1, .mlp = {.experts = 8}};
static const struct model dense = {.layer = &plain, .kinds = 1};
static const struct model experts = {.layer = &routed, .kinds = 1};

static const struct {
    const char *name;
    const struct model *model;
    double factor;
} asked[] = {
    {"stack 26.04", &dense, 0.8},
    {"stack-26.04", &dense, 0.8},
    {"stack 26.04.01", &dense, 0.8}, /* of the version it belongs to */
    {"stack 26.06", &dense, 0.7},
    {"stack 27.01", &dense, 0.9}, /* not known */
    {NULL, &dense, 0.9},
    {"", &dense, 0.9},
    {"stack 26.04.02", &experts, 1.3},
    {"stack 26.06", &experts, 1},
    {NULL, &experts, 1},
};

static void a_release_is_found_by_its_name_or_its_version(void **state)
{
    const struct rate fitted = {.basis = BASIS_FITTED};

    (void)state;
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        double got = rate_release(&fitted, &constants, asked[i].name, asked[i].model);
        if (got != asked[i].factor)
            fail_msg("case %zu, \"%s\": %g, not %g", i, asked[i].name ? asked[i].name : "(none)",
                     got, asked[i].factor);
    }
}

static void a_measured_rate_has_its_software_in_it(void **state)
{
    const struct rate measured = {.basis = BASIS_MEASURED};

    (void)state;
    assert_float_equal(rate_release(&measured, &constants, "stack 26.04", &dense), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_is_found_by_its_name_or_its_version),
        cmocka_unit_test(a_measured_rate_has_its_software_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
