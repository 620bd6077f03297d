/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/seal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum { DIGITS = sizeof(SEAL_EMPTY) - 1 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* Behind the string that begins at p, or end. */
static const char *string_end(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : end;
}

/* The digits behind the key at p, or NULL. */
static const char *digits_at(const char *p, const char *end)
{
    static const char key[] = "\"" SEAL_KEY "\"";

    if ((size_t)(end - p) < sizeof(key) || memcmp(p, key, sizeof(key) - 1) != 0)
        return NULL;
    p = skip_space(p + sizeof(key) - 1, end);
    if (p >= end || *p != ':')
        return NULL;
    p = skip_space(p + 1, end);
    if (end - p < DIGITS + 2 || *p != '"' || p[DIGITS + 1] != '"')
        return NULL;
    for (int i = 1; i <= DIGITS; i++)
        if (!strchr("0123456789abcdef", p[i]) || !p[i])
            return NULL;
    return p + 1;
}

const char *seal_find(const char *text, size_t len, uint32_t *crc)
{
    const char *end = text + len, *found = NULL, *from = text;
    uint32_t sum = 0;
    int depth = 0;

    for (const char *p = text; p < end;) {
        if (is_space(*p)) {
            sum = file_crc32c(sum, from, (size_t)(p - from));
            from = p = skip_space(p, end);
        } else if (*p == '"') {
            const char *digits = depth == 1 && !found ? digits_at(p, end) : NULL;
            if (digits) {
                sum = file_crc32c(sum, from, (size_t)(p - from));
                sum = file_crc32c(sum, "\"" SEAL_KEY "\":\"" SEAL_EMPTY "\"",
                                  sizeof("\"" SEAL_KEY "\":\"" SEAL_EMPTY "\"") - 1);
                found = digits;
                from = p = digits + DIGITS + 1;
            } else {
                p = string_end(p, end);
            }
        } else {
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
            p++;
        }
    }
    if (crc)
        *crc = file_crc32c(sum, from, (size_t)(end - from));
    return found;
}

void seal_set(char *text, size_t len)
{
    uint32_t crc;
    const char *digits = seal_find(text, len, &crc);
    char word[DIGITS + 1];

    snprintf(word, sizeof(word), "%08x", crc);
    if (digits)
        memcpy(text + (digits - text), word, DIGITS);
}

char *seal_text(const char *text, size_t len, size_t *sealed_len)
{
    const char *open = memchr(text, '{', len);
    size_t at = open ? (size_t)(open - text) + 1 : 0;
    char *sealed = seal_find(text, len, NULL) || !at
                       ? mem_strndup(text, len)
                       : mem_printf("%.*s\"" SEAL_KEY "\": \"" SEAL_EMPTY "\",%s%.*s", (int)at,
                                    text, text[at] == '\n' ? "" : " ", (int)(len - at), text + at);

    *sealed_len = strlen(sealed);
    seal_set(sealed, *sealed_len);
    return sealed;
}
