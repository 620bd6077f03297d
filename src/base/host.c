/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"

char *host_self(char *out, size_t size)
{
    char name[256] = ""; /* Linux: 64 characters; POSIX: up to 255 */

    if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
        snprintf(out, size, "localhost");
    else
        snprintf(out, size, "%s", name);
    return out;
}

/* --- lists --- */

enum { NAME_MAX_LEN = 255, ITEM_MAX_LEN = NAME_MAX_LEN + 1000, DIGITS_MAX = 9 };

struct names {
    char **name;
    int count, max;
};

static int push(struct names *out, const char *name, struct err *err)
{
    if (*name == '-')
        return err_data(err, "host list: \"%.100s\" begins with a dash, as options do", name);
    size_t len = strlen(name);

    if (!len || len > NAME_MAX_LEN)
        return err_data(err, "host list: a name of %zu characters (1..%d are allowed)", len,
                        NAME_MAX_LEN);
    if (out->count >= out->max)
        return err_data(err, "host list: more than %d hosts", out->max);
    MEM_PUSH(out->name, out->count) = mem_strdup(name);
    return 0;
}

/* Parse a number of at most DIGITS_MAX digits; returns its width, 0 if there is none. */
static int digits(const char *s, long *value)
{
    int n = 0;

    for (*value = 0; n <= DIGITS_MAX && isdigit((unsigned char)s[n]); n++)
        *value = *value * 10 + (s[n] - '0');
    return n > DIGITS_MAX ? 0 : n;
}

static int expand_item(struct names *out, const char *item, struct err *err);

/* Expand lo to hi, with at least `width` digits, between the texts before and after the bracket. */
static int expand_range(struct names *out, const char *item, size_t before, const char *behind,
                        long lo, long hi, int width, struct err *err)
{
    size_t after = strlen(behind);
    bool more = strchr(behind, '[') || strchr(behind, ']');
    char number[UNITS_TEXT];
    int rc = 0;

    if (before + after > ITEM_MAX_LEN)
        return err_data(err, "host list: name too long");
    char *one = mem_calloc(before + sizeof(number) + after, 1);
    memcpy(one, item, before);
    for (long i = lo; i <= hi && rc == 0; i++) {
        size_t n = units_whole(number, (uint64_t)i), wide = n > (size_t)width ? n : (size_t)width;
        memset(one + before, '0', wide - n);
        memcpy(one + before + wide - n, number, n);
        memcpy(one + before + wide, behind, after + 1);
        rc = (more ? expand_item : push)(out, one, err);
    }
    free(one);
    return rc;
}

/* Expand one entry without commas outside brackets: the first bracket, then recursively. */
static int expand_item(struct names *out, const char *item, struct err *err)
{
    const char *open = strchr(item, '['), *close = open ? strchr(open, ']') : NULL;
    int rc = 0;

    if (!open)
        return strchr(item, ']') ? err_data(err, "host list: \"]\" without \"[\" in \"%s\"", item)
                                 : push(out, item, err);
    if (!close || close == open + 1)
        return err_data(err, "host list: \"%s\" has an empty or unclosed bracket", item);
    for (const char *p = open + 1; p < close && rc == 0; p++) {
        long lo, hi;
        int width = digits(p, &lo), more;
        p += width;
        hi = lo;
        if (width && *p == '-') {
            more = digits(p + 1, &hi);
            if (!more || hi < lo)
                return err_data(err, "host list: bad range in \"%s\"", item);
            p += 1 + more;
        }
        if (!width || (*p == ',' ? p + 1 == close : p != close))
            return err_data(err, "host list: bad range in \"%s\"", item);
        if (hi - lo >= out->max - out->count) /* refused before names are created */
            return err_data(err, "host list: more than %d hosts", out->max);
        rc = expand_range(out, item, (size_t)(open - item), close + 1, lo, hi, width, err);
    }
    return rc;
}

int hostlist_expand(char ***names, int *count, const char *text, struct err *err)
{
    return hostlist_expand_max(names, count, text, HOSTLIST_MAX, err);
}

int hostlist_expand_max(char ***names, int *count, const char *text, int max, struct err *err)
{
    struct names out = {NULL, 0, max};
    int rc = 0, depth = 0;
    const char *start = text;

    for (const char *p = text; rc == 0; p++) {
        if (iscntrl((unsigned char)*p) && *p)
            rc = err_data(err, "host list: control character 0x%02x", (unsigned char)*p);
        depth += (*p == '[') - (*p == ']');
        if (depth < 0 || depth > 1 || (!*p && depth))
            rc = err_data(err, "host list: unbalanced brackets in \"%s\"", text);
        if (rc == 0 && ((*p == ',' && !depth) || !*p)) {
            char *item = mem_strndup(start, (size_t)(p - start));
            rc = expand_item(&out, item, err);
            free(item);
            start = p + 1;
        }
        if (!*p)
            break;
    }
    if (rc < 0) {
        hostlist_free(out.name, out.count);
        return -1;
    }
    *names = out.name;
    *count = out.count;
    return 0;
}

void hostlist_free(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* Split "gb300-007" into prefix "gb300-" and number 7 of width 3; width 0: no number at the end. */
static size_t stem(const char *name, long *number, int *width)
{
    size_t len = strlen(name), at = len;

    while (at > 0 && len - at < DIGITS_MAX && isdigit((unsigned char)name[at - 1]))
        at--;
    *width = (int)(len - at);
    *number = *width ? strtol(name + at, NULL, 10) : -1;
    return at;
}

/* Write the numbers at the end of names[0 .. count-1], equal otherwise: "[01-08,12]". */
static void put_numbers(FILE *out, char *const *names, int count)
{
    long lo, hi, next;
    int width;

    stem(names[0], &lo, &width);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%c%0*ld", i ? ',' : '[', width, lo);
        for (hi = next = lo; i + 1 < count; i++, hi = next) {
            stem(names[i + 1], &next, &width);
            if (next != hi + 1)
                break;
        }
        if (hi > lo)
            fprintf(out, "-%0*ld", width, hi);
        lo = next;
    }
    fputc(']', out);
}

char *hostlist_fold(char *const *names, int count)
{
    char *text;
    size_t size;
    FILE *out = mem_stream(&text, &size);

    for (int i = 0, j; i < count; i = j) {
        long n;
        int width, w;
        size_t len = stem(names[i], &n, &width);
        for (j = i + 1; width && j < count; j++)
            if (stem(names[j], &n, &w) != len || w != width || strncmp(names[i], names[j], len))
                break;
        fprintf(out, "%s%.*s", i ? "," : "", j > i + 1 ? (int)len : INT_MAX, names[i]);
        if (j > i + 1)
            put_numbers(out, names + i, j - i);
    }
    mem_stream_end(out);
    return text;
}
