/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a check, as root reads it from an unprivileged user: refused with a reason, or a verdict whose words a
 * scheduler can take. */
#include "verdict/health.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char dir[64], path[80];

static void leave(void)
{
    unlink(path);
    rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct health h;
    struct err e = {0};

    if (!*dir) {
        snprintf(dir, sizeof(dir), "/tmp/fuzz-health-XXXXXX");
        if (!mkdtemp(dir))
            abort();
        snprintf(path, sizeof(path), "%s/n1.json", dir);
        atexit(leave);
    }
    FILE *f = fopen(path, "w");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
    if (health_load(&h, dir, "n1", &e) < 0)
        fuzz_refused(e.code, e.text);
    else if (strlen(h.reason) > HEALTH_REASON || strpbrk(h.reason, "\"$`\\\n"))
        abort();
    health_free(&h);
    return 0;
}
