/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"

#define JSON_MAX_BYTES ((size_t)256 << 20)

extern char **environ;
static json_t *typed; /* argv as typed; set once before threads exist */
static json_t *asked; /* environment at that time */
static json_t *facts; /* from json_provenance_add(), or NULL */

/* Place of a value in the file, for messages: path from the root, newest last. */
struct way {
    const struct way *up;
    const char *key; /* NULL: element of an array */
    size_t index;
};

static void write_way(char *buf, size_t room, const struct way *w)
{
    size_t used;

    if (!w->up)
        return;
    write_way(buf, room, w->up);
    used = strlen(buf);
    if (w->key)
        snprintf(buf + used, room - used, "%s%s", used ? "." : "", w->key);
    else
        snprintf(buf + used, room - used, "[%zu]", w->index);
}

/* First control character (C0, DEL, or C1 as UTF-8), which could steer terminals; or NULL. */
static const char *control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            return (const char *)c;
    return NULL;
}

/* Refuse control characters in texts, except in the recorded command line (provenance). */
static int check_texts(json_t *value, const struct way *way, const char *path, struct err *err)
{
    const char *key, *text = json_string_value(value), *bad = text ? control(text) : NULL;
    char where[160] = "";
    json_t *item;
    size_t i;

    if (bad) {
        write_way(where, sizeof(where), way);
        return err_data(err, "%s: %s: a control character (0x%02x) at position %d", path, where,
                        (unsigned char)*bad, (int)(bad - text));
    }
    json_array_foreach(value, i, item) if (check_texts(item, &(struct way){way, NULL, i}, path,
                                                       err) < 0) return -1;
    json_object_foreach(value, key, item)
    {
        if (control(key))
            return err_data(err, "%s: a key with a control character", path);
        if ((way->up || strcmp(key, "provenance")) &&
            check_texts(item, &(struct way){way, key, 0}, path, err) < 0)
            return -1;
    }
    return 0;
}

static void (*tell_unsealed)(const char *path);

void json_on_unsealed(void (*tell)(const char *path))
{
    tell_unsealed = tell;
}

int json_unsealed(const json_t *provenance, const char *path, struct err *err)
{
    if (json_object_get(provenance, "tool_version"))
        return err_data(
            err,
            "%s: its checksum was removed; if you changed the file, \"railgauge seal %s\" "
            "makes it valid",
            path, path);
    if (tell_unsealed)
        tell_unsealed(path);
    return 0;
}

/* Check that a file with a checksum is unchanged. */
static int check_seal(const json_t *root, const char *text, size_t len, const char *path,
                      struct err *err)
{
    json_t *seal = json_object_get(root, SEAL_KEY);
    uint32_t crc;

    if (!seal)
        return 0;
    const char *digits = seal_find(text, len, &crc);
    if (!digits)
        return err_data(err, "%s: its checksum is not 8 hexadecimal digits", path);
    if (strtoul(digits, NULL, 16) == crc)
        return 0;
    return err_data(err,
                    "%s: its checksum is %.8s and its content's %08x: it has changed since it was "
                    "written; if you changed it, \"railgauge seal %s\" makes it valid",
                    path, digits, crc, path);
}

/* The text need not end with a NUL. */
static int word_length(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && n < 60 && text[n] && !strchr(" \n", text[n]))
        n++;
    return (int)n;
}

int json_parse(json_t **out, const char *text, size_t len, const char *path, const char *format,
               int version, struct err *err)
{
    json_error_t e;

    errno = 0; /* jansson reports a syntax error if memory is exhausted */
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!root && errno == ENOMEM)
        mem_ended();
    if (!root && len > 12 && !strncmp(text, "# railgauge-", 12))
        return err_data(err, "%s: this is %.*s where \"%s\" is needed", path,
                        word_length(text + 2, len - 2), text + 2, format);
    if (!root)
        return err_data(err, "%s:%d: %s", path, e.line, e.text);
    const char *f = json_string_value(json_object_get(root, "format"));
    json_t *v = json_object_get(root, "version");
    if (!f || strcmp(f, format)) {
        err_data(err, "%s: format is \"%s\" where \"%s\" is needed", path, f ? f : "(none)",
                 format);
    } else if (!json_is_integer(v) || json_integer_value(v) < 1 ||
               json_integer_value(v) > version) {
        char *is = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        err_data(err, "%s: version %.40s of %s is not one of 1..%d that this program reads", path,
                 is ? is : "(none)", format, version);
        free(is);
    } else if (check_texts(root, &(struct way){NULL, NULL, 0}, path, err) == 0 &&
               check_seal(root, text, len, path, err) == 0) {
        *out = root;
        return 0;
    }
    json_decref(root);
    return -1;
}

int json_open(json_t **out, const char *path, const char *format, int version, struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, JSON_MAX_BYTES, err) < 0)
        return -1;
    int rc = json_parse(out, text, len, path, format, version, err);
    free(text);
    return rc;
}

static void *take(size_t size)
{
    return mem_realloc(NULL, 1, size);
}

void json_memory(void)
{
    json_set_alloc_funcs(take, free);
}

json_t *json_finite(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *json_bytes(double x)
{
    return fabs(x) < 9e15 ? json_integer((json_int_t)round(x)) : json_finite(x);
}

json_t *json_texts(char *const *text, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(text[i]));
    return list;
}

/* Integer equal to a number, or to its nine digits; else NULL.  NULL beyond 9e15, where not every
 * whole number is a double. */
static json_t *whole(const json_t *v)
{
    double x = json_is_real(v) ? json_real_value(v) : NAN;
    char text[32];

    if (!(fabs(x) < 9e15))
        return NULL;
    snprintf(text, sizeof(text), "%.9g", x);
    bool digits = !text[strspn(text, "-0123456789")];
    return digits || x == floor(x) ? json_integer((json_int_t)round(x)) : NULL;
}

/* True for names of numbers in bytes, which are rounded where they are computed. */
static bool counts_bytes(const char *key)
{
    size_t len = strlen(key);

    return !strcmp(key, "bytes") || (len > 6 && !strcmp(key + len - 6, "_bytes"));
}

static void make_whole(json_t *value)
{
    json_t *item, *as;
    const char *key;
    size_t i;

    json_array_foreach(value, i, item)
    {
        make_whole(item);
        if ((as = whole(item)))
            json_array_set_new(value, i, as);
    }
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        key = json_object_iter_key(at);
        item = json_object_iter_value(at);
        make_whole(item);
        bool bytes = json_is_real(item) && counts_bytes(key);
        if ((as = bytes ? json_bytes(json_real_value(item)) : whole(item)))
            json_object_iter_set_new(value, at, as);
    }
}

int json_print(FILE *out, json_t *root)
{
    make_whole(root);
    int rc = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    return rc == 0 && fputc('\n', out) != EOF ? 0 : -1;
}

int json_save(json_t *root, const char *path, struct err *err)
{
    char *text;
    size_t len;
    FILE *out = mem_stream(&text, &len);
    int rc = json_print(out, root);

    mem_stream_end(out);
    if (rc < 0)
        err_data(err, "%s: cannot be written as JSON", path);
    else
        rc = json_save_text(text, len, path, err);
    free(text);
    return rc;
}

int json_answer(json_t *root, const char *output, bool print, struct err *err)
{
    int rc = output ? json_save(root, output, err) : 0;

    if (rc == 0 && print)
        json_print(stdout, root);
    json_decref(root);
    return rc;
}

int json_save_text(char *text, size_t len, const char *path, struct err *err)
{
    struct file_out f;

    seal_set(text, len);
    if (file_begin(&f, path, err) < 0)
        return -1;
    fwrite(text, 1, len, f.stream); /* file_commit() reports an error */
    return file_commit(&f, err);
}

static const char *type_name(const json_t *v)
{
    static const char *const name[] = {"an object", "a list", "text",  "a whole number",
                                       "a number",  "true",   "false", "null"};

    return name[json_typeof(v)];
}

static bool type_fits(const json_t *v, char type)
{
    switch (type) {
    case 's':
        return json_is_string(v);
    case 'b':
        return json_is_boolean(v);
    case 'i':
    case 'I':
        return json_is_integer(v);
    default:
        return true;
    }
}

/* Check a key: present unless optional, with a value of its type. */
static int check_key(const json_t *v, const char *where, const char *key, bool optional, char type,
                     struct err *err)
{
    if (!v && !optional)
        return err_data(err, "%s: key \"%s\" is missing", where, key);
    if (v && !type_fits(v, type))
        return err_data(err, "%s: \"%s\" is %s where %s is needed", where, key, type_name(v),
                        type == 's'   ? "text"
                        : type == 'b' ? "true or false"
                                      : "a whole number");
    return 0;
}

/* Find the first key in a flat format such as "{s:s, s?i}" that is missing or has another type.
 * jansson reports the error, but not always the place. */
static int bad_key(json_t *object, const char *where, const char *fmt, va_list ap, struct err *err)
{
    for (const char *f = strchr(fmt, 's'); f; f = strchr(f + 1, 's')) {
        const char *key = va_arg(ap, const char *);
        json_t *v = json_object_get(object, key);
        bool optional = f[1] == '?';
        (void)va_arg(ap, void *); /* address for the value */
        f += 2;
        if (check_key(v, where, key, optional, *f, err) < 0)
            return -1;
    }
    return 0;
}

/* True if a flat format contains this key.  near, unless NULL, receives all its keys. */
static bool asks(const char *name, const char *fmt, va_list ap, struct near *near)
{
    bool found = false;

    for (const char *f = strchr(fmt, 's'); f && !found; f = strchr(f + 3, 's')) {
        const char *key = va_arg(ap, const char *);
        found = !strcmp(key, name);
        if (near)
            near_try(near, key);
        (void)va_arg(ap, void *);
    }
    return found;
}

int json_take(json_t *value, const char *where, struct err *err, const char *fmt, ...)
{
    json_error_t e;
    json_t *item;
    const char *key;
    va_list ap;

    if (!json_is_object(value))
        return err_data(err, "%s: %s where an object is needed", where,
                        value ? type_name(value) : "nothing");
    /* Not JSON_STRICT, which reports an unknown key if memory is exhausted. */
    va_start(ap, fmt);
    int rc = json_vunpack_ex(value, &e, 0, fmt, ap);
    va_end(ap);
    if (rc < 0) {
        va_start(ap, fmt);
        rc = bad_key(value, where, fmt, ap, err);
        va_end(ap);
        if (rc == 0 && json_error_code(&e) == json_error_out_of_memory)
            mem_ended();
        return rc < 0 ? -1 : err_data(err, "%s: %s", where, e.text);
    }
    json_object_foreach(value, key, item)
    {
        va_start(ap, fmt);
        bool known = asks(key, fmt, ap, NULL);
        va_end(ap);
        if (known)
            continue;
        struct near near = {.word = key};
        va_start(ap, fmt);
        asks(key, fmt, ap, &near);
        va_end(ap);
        return err_data(err, "%s: unknown key: %s%s", where, key, near_text(&near));
    }
    return 0;
}

int json_take_keys(json_t *value, const char *where, const struct json_key *key, int keys,
                   json_t **out, struct err *err)
{
    json_t *item;
    const char *name;

    if (!json_is_object(value))
        return err_data(err, "%s: %s where an object is needed", where,
                        value ? type_name(value) : "nothing");
    for (int i = 0; i < keys; i++) {
        out[i] = json_object_get(value, key[i].name);
        if (check_key(out[i], where, key[i].name, key[i].optional, key[i].type, err) < 0)
            return -1;
    }
    json_object_foreach(value, name, item)
    {
        int i = 0;
        while (i < keys && strcmp(key[i].name, name) != 0)
            i++;
        if (i < keys)
            continue;
        struct near near = {.word = name};
        for (i = 0; i < keys; i++)
            near_try(&near, key[i].name);
        return err_data(err, "%s: unknown key: %s%s", where, name, near_text(&near));
    }
    return 0;
}

int json_number(json_t *object, const char *where, const char *key, double min, double max,
                int optional, double *out, struct err *err)
{
    json_t *v = json_object_get(object, key);

    if (!v && optional)
        return 0;
    if (!json_is_number(v))
        return err_data(err, "%s: \"%s\" is %s", where, key, v ? "not a number" : "missing");
    double x = json_number_value(v);
    if (!(x >= min && x <= max))
        return err_data(err, "%s: \"%s\" is %.10g, outside %.10g..%.10g", where, key, x, min, max);
    *out = x;
    return 0;
}

void json_provenance_add(const char *key, const char *value)
{
    json_t *s = json_string(value);

    if (!facts)
        facts = json_object();
    json_object_set_new(facts, key, s ? s : json_string("(not UTF-8)"));
}

static bool starts(const char *text, const char *const *prefixes)
{
    for (int i = 0; prefixes[i]; i++)
        if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

/* Environment variables that change how fabrics are used. */
static json_t *environment(void)
{
    static const char *const kept[] = {"NCCL_", "UCX_", "OMPI_MCA_", "CUDA_VISIBLE_DEVICES", NULL};
    /* Variables that mpirun sets for itself: addresses, keys and folders of a single start. */
    static const char *const dropped[] = {"OMPI_MCA_orte_",  "OMPI_MCA_ess",
                                          "OMPI_MCA_pmix",   "OMPI_MCA_initial_wdir",
                                          "OMPI_MCA_shmem_", NULL};
    json_t *env = json_object();

    for (char **e = environ; *e; e++) {
        char *eq = strchr(*e, '=');
        if (!eq || !starts(*e, kept) || starts(*e, dropped))
            continue;
        char *key = mem_strndup(*e, (size_t)(eq - *e));
        json_t *value = json_string(eq + 1);
        json_object_set_new(env, key, value ? value : json_string("(not UTF-8)"));
        free(key);
    }
    return env;
}

void json_provenance_argv(int argc, char **argv)
{
    json_decref(typed);
    json_decref(asked);
    typed = json_array();
    asked = environment();
    for (int i = 0; i < argc; i++) {
        json_t *s = json_string(argv[i]);
        json_array_append_new(typed, s ? s : json_string("(not UTF-8)"));
    }
}

/* Variables that were set or changed since the program started. */
static json_t *set_since(void)
{
    json_t *now = environment(), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(now, next, key,
                             value) if (strncmp(key, "NCCL_", 5) != 0 ||
                                        json_equal(json_object_get(asked, key), value))
        json_object_del(now, key);
    return now;
}

json_t *json_provenance(void)
{
    char host[256], utc[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    json_t *made =
        json_pack("{s:s, s:s, s:O?, s:s, s:s, s:o}", "tool", "railgauge", "tool_version",
                  RG_VERSION, "command", typed, "host", host_self(host, sizeof(host)), "time_utc",
                  utc, "environment", asked ? json_incref(asked) : environment());
    json_t *set = set_since();
    if (asked && json_object_size(set))
        json_object_set(made, "environment_set", set);
    json_decref(set);
    if (facts)
        json_object_update(made, facts);
    return made;
}
