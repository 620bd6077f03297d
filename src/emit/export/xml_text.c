/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/xml_text.h"

#include <string.h>

void xml_text(FILE *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};

    for (; *text; text++) {
        const char *at = strchr(special, *text);
        if (at)
            fputs(entity[at - special], out);
        else
            fputc(*text, out);
    }
}
