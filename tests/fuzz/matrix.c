/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.json: a matrix that was taken answers every question without falling over. */
#include "matrix/matrix.h"
#include "fuzz.h"

/* Times are positive, infinite (a dead part) or unknown. */
static void sane(const struct cost *c)
{
    if (c->sec < 0 || c->lo < 0 || c->hi < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct matrix m;
    struct cost c;
    struct err e = {0};
    int ids[64], n = 0;

    if (matrix_load(&m, fuzz_file(data, size), MATRIX_WHOLE, &e) < 0) {
        fuzz_refused(e.code, e.text);
        return 0;
    }
    for (; n < m.topo.endpoints && n < 64; n++)
        ids[n] = n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j += 7) {
            matrix_pair(&m, ids[i], ids[j], (double)(1u << (i & 31)), &c);
            sane(&c);
        }
    for (int op = 0; op < OP_COUNT && n > 1; op++) {
        if (op_is_pair((enum op)op))
            continue;
        matrix_collective(&m, (enum op)op, ids, n, 1 << 20, &c);
        sane(&c);
        matrix_collective_at(&m, (enum op)op, ids, n, 1, 1 << 20, true, &c);
        sane(&c);
    }
    matrix_free(&m);
    return 0;
}
