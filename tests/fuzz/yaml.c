/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML or JSON text: refused with a message, or values whose place can be told. */
#include "base/yaml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml y;
    struct err err = {0};

    if (yaml_parse(&y, (const char *)data, size, "m.yaml", &err) < 0)
        fuzz_refused(err.code, err.text);
    else if (!yaml_where(&y, y.root)[0])
        abort();
    else
        free(yaml_text(y.root));
    yaml_done(&y);
    return 0;
}
