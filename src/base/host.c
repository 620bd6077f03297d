/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"

#include <stdio.h>
#include <unistd.h>

char *host_self(char *out, size_t size)
{
    char name[256] = ""; /* Linux: 64 characters; POSIX: up to 255 */

    if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
        snprintf(out, size, "localhost");
    else
        snprintf(out, size, "%s", name);
    return out;
}
