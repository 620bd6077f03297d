/* SPDX-License-Identifier: BSD-3-Clause */
/* Architecture of a model: what was read has finite numbers that hold together. */
#include "step/model.h"

#include <math.h>

#include "fuzz.h"

static void demand(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model m;
    struct params p;
    struct flops f, full, mtp;
    struct err e = {0};

    if (model_load(&m, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
        model_free(&m);
        return 0;
    }
    model_params(&m, &p);
    model_flops(&m, 8192, true, &f);
    model_flops(&m, 8192, false, &full);
    mtp_flops(&m, 8192, true, &mtp);
    demand(isfinite(p.total) && p.total > 0 && p.active > 0 && p.matmul > 0);
    demand(p.active <= p.total * (1 + 1e-9) && p.expert <= p.total);
    demand(isfinite(flops_total(&full)) && flops_total(&f) <= flops_total(&full));
    demand(f.expert <= f.linear * (1 + 1e-9) && isfinite(flops_total(&mtp)));
    demand(model_lora_params(&m, 8, false) <= model_lora_params(&m, 8, true));
    demand(mtp_params(&m) >= 0 && m.layers >= m.kinds);
    model_free(&m);
    return 0;
}
