/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/yaml.h"

/* Words that YAML 1.1 readers take for something else (y and n too). */
static bool special(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcasecmp(text, words[i]))
            return true;
    return false;
}

void yaml_put(FILE *f, const char *text)
{
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._/-");

    if (!text[plain] && isalpha((unsigned char)*text) && !special(text)) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            fprintf(f, "\\x%02x", (unsigned char)*text);
        else
            fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}
