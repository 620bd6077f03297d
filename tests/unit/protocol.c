/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/protocol.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * fabs(b)))
        fail_msg("%.15g is not %.15g", a, b);
}

static void small_messages_hop_fast_large_ones_use_the_whole_rate(void **state)
{
    (void)state;
    near(protocol_ring(62, INFINITY, 1e-6, 0), 62 * PROTOCOL_HOP_LL + 4e-6);
    near(protocol_ring(62, INFINITY, 500e-6, 0), 62 * 1.9e-6 + 500e-6 / 0.92);
    near(protocol_ring(62, INFINITY, 10e-3, 0), 62 * PROTOCOL_HOP_SIMPLE + 10e-3);
    near(protocol_ring(0, INFINITY, 1e-3, 0), 1e-3);
    /* what the curve shows is slower than any protocol's share: the fastest hops come for nothing
     */
    near(protocol_ring(62, INFINITY, 10e-6, 90e-6), 62 * PROTOCOL_HOP_LL + 90e-6);
}

static void no_hop_costs_more_than_a_message(void **state)
{
    (void)state;
    near(protocol_ring(10, 1e-6, 1e-3, 0), 10e-6 + 1e-3);
}

static void more_hops_and_more_bytes_never_take_less(void **state)
{
    double before = 0;

    (void)state;
    for (double busy = 1e-7; busy < 1; busy *= 1.1) {
        double t = protocol_ring(63, INFINITY, busy, 0);
        assert_true(t > before && t > busy);
        assert_true(protocol_ring(64, INFINITY, busy, 0) > t);
        before = t;
    }
    assert_true(isnan(protocol_ring(3, INFINITY, NAN, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_messages_hop_fast_large_ones_use_the_whole_rate),
        cmocka_unit_test(no_hop_costs_more_than_a_message),
        cmocka_unit_test(more_hops_and_more_bytes_never_take_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
