/* SPDX-License-Identifier: BSD-3-Clause */
/* Preset of a fabric: what was taken becomes a topology and a matrix. */
#include "topo/fabrics/fabric.h"
#include "fuzz.h"
#include "matrix/matrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fabric f;
    struct topo t;
    struct matrix m;
    struct err e = {0};

    if (fabric_load(&f, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
        return 0;
    }
    if (f.hosts_per_rack <= 64 && f.gpus_per_host <= 16) {
        if (fabric_topo(&f, 2, false, &t, &e) == 0)
            topo_free(&t);
        if (matrix_from_fabric(&m, &f, 2, &e) == 0)
            matrix_free(&m);
    }
    fabric_free(&f);
    return 0;
}
