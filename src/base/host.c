/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"

char *host_kernel(char *out, size_t size)
{
    char name[256] = ""; /* Linux: 64 characters; POSIX: up to 255 */

    if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
        snprintf(out, size, "localhost");
    else
        snprintf(out, size, "%s", name);
    return out;
}

/* --- node of a pod --- */

/* Rows of --node-map; a few for each node. */
struct seen {
    char *as, *node;
};
static struct {
    struct seen *row;
    int rows;
} map;

static bool is_node(const char *name)
{
    size_t len = strlen(name);

    return len && len < 254 && *name != '-' && strspn(name, HOST_PLAIN) == len;
}

/* Provider ids are paths, "aws:///us-west-2a/i-0123456789abcdef0". */
static const char *behind_slash(const char *id)
{
    const char *slash = strrchr(id, '/');

    return slash ? slash + 1 : id;
}

static const char *node_of(const char *seen)
{
    for (int i = 0; i < map.rows; i++)
        if (!strcasecmp(map.row[i].as, seen))
            return map.row[i].node;
    return NULL;
}

static int map_line(char *text, const char *path, int line, struct err *err)
{
    char *save = NULL, *seen = strtok_r(text, " \t\r", &save);
    char *node = seen ? strtok_r(NULL, " \t\r", &save) : NULL;

    if (!seen || *seen == '#')
        return 0;
    if (!node || strtok_r(NULL, " \t\r", &save))
        return err_data(err, "%s:%d: a line is \"SEEN NODE\", two words", path, line);
    if (!is_node(node))
        return err_data(err, "%s:%d: \"%.100s\" cannot be the name of a node", path, line, node);
    const char *was = node_of(behind_slash(seen));
    if (was && strcmp(was, node))
        return err_data(err, "%s:%d: %.100s is on node %.100s and on node %.100s", path, line, seen,
                        was, node);
    MEM_PUSH(map.row, map.rows) = (struct seen){mem_strdup(behind_slash(seen)), mem_strdup(node)};
    return 0;
}

int host_map(void *unused, char *path, struct err *err)
{
    enum { BYTES_MAX = 64 << 20 };
    char *text = NULL, *next;
    int rc = file_read(&text, NULL, path, BYTES_MAX, err), line = 0;

    (void)unused;
    for (char *at = text; rc == 0 && at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        rc = map_line(at, path, ++line, err);
    }
    free(text);
    return rc;
}

/* First word of a file of the firmware's tables; "": not readable (most are root's). */
static void firmware_says(const char *name, char out[64])
{
    char path[4200];

    snprintf(path, sizeof(path), "%.4000s/class/dmi/id/%s", host_sys(), name);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%63s", out) != 1)
        *out = '\0';
    if (f)
        fclose(f);
}

/* EC2's asset tag is the instance.  Other clouds have the same tag on all machines, and boards
 * without a number of their own share a few UUIDs. */
static bool machine_id(char out[64])
{
    static const char *const shared[] = {"00000000-0000-0000-0000-000000000000",
                                         "ffffffff-ffff-ffff-ffff-ffffffffffff",
                                         "03000200-0400-0500-0006-000700080009"};
    enum { UUID = 36 };

    firmware_says("board_asset_tag", out);
    if (!strncmp(out, "i-", 2) && strlen(out) > 9 &&
        strspn(out + 2, "0123456789abcdef") == strlen(out + 2))
        return true;
    firmware_says("product_uuid", out);
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
        if (!strcmp(out, shared[i]))
            return false;
    return strlen(out) == UUID && strspn(out, "0123456789abcdef-") == UUID;
}

/* The kubelet mounts .../pods/UID/etc-hosts over /etc/hosts of each container. */
static bool in_pod(void)
{
    const char *given = getenv("KUBERNETES_SERVICE_HOST");
    char line[4096];
    bool found = given && *given;
    FILE *f = found ? NULL : fopen("/proc/self/mountinfo", "re");

    while (f && !found && fgets(line, sizeof(line), f)) {
        const char *pods = strstr(line, "/pods/");
        found = pods && strstr(pods, "/etc-hosts /etc/hosts ");
    }
    if (f)
        fclose(f);
    return found;
}

char *host_self(char *out, size_t size)
{
    const char *given = getenv("NODE_NAME"), *node;
    char kernel[256], id[64] = "";
    bool known = (map.rows || in_pod()) && machine_id(id);

    if (given && !is_node(given))
        given = NULL;
    node = node_of(host_kernel(kernel, sizeof(kernel)));
    if (!node && known)
        node = node_of(id);
    if (!node)
        node = given && node_of(given) ? node_of(given) : given;
    if (!node)
        node = known && in_pod() ? id : kernel;
    snprintf(out, size, "%s", node);
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
