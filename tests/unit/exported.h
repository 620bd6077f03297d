/* exported.h - what an exporter writes of a small machine, read back, for the tests of src/report. */
#ifndef RG_TESTS_EXPORTED_H
#define RG_TESTS_EXPORTED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/yaml.h"
#include "export/export.h"

static inline void put(struct topo *t, int host, enum level level, const char *name)
{
    for (int i = 0; name && i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_HOST] == host) {
            t->endpoint[i].place.at[level] = topo_add_group(t, level, name);
            t->endpoint[i].source[level] = SOURCE_USER;
        }
}

/* A host of two GPUs; NULL: not known. */
static inline int add(struct topo *t, const char *name, const char *domain, const char *rack,
                      const char *leaf, const char *spine)
{
    int h = topo_add_host(t, name);

    for (int k = 0; k < 2; k++)
        topo_add_endpoint(t, h, ENDPOINT_GPU);
    put(t, h, LEVEL_DOMAIN, domain);
    put(t, h, LEVEL_RACK, rack);
    put(t, h, LEVEL_LEAF, leaf);
    put(t, h, LEVEL_SPINE, spine);
    return h;
}

/* Eight hosts: two racks a domain, two domains a leaf, two leaves a spine; one more host of which
 * little is known.  Names of groups as people give them. */
static inline void machine(struct matrix *m, bool stray)
{
    static const char *const leaf[] = {"Leaf 1: \"front\"", "117", "Leaf_3", "true"};
    struct topo t;

    topo_init(&t);
    for (int h = 0; h < 16; h++) {
        char host[16], domain[96], rack[16], spine[16];
        snprintf(host, sizeof(host), "n%02d", h);
        snprintf(domain, sizeof(domain), "%s-%d",
                 "a-domain-whose-name-is-longer-than-the-63-characters-of-a-label-value", h / 2);
        snprintf(rack, sizeof(rack), "r%d", h / 2);
        snprintf(spine, sizeof(spine), "spine/%d", h / 8);
        add(&t, host, domain, rack, leaf[h / 4], spine);
    }
    if (stray)
        add(&t, "n16", NULL, NULL, NULL, NULL);
    export_wrap(m, &t);
}

/* Without ask: also what lacks hosts. */
static inline char *written(const char *format, const struct matrix *m,
                            const struct export_ask *ask, char **second)
{
    static const struct export_ask none = {.partial = true};
    const struct exporter *x = exporter_find(format, NULL);
    char *text = NULL;
    size_t len, len2;
    struct err err = {0, ""};
    FILE *out = open_memstream(&text, &len), *two = second ? open_memstream(second, &len2) : NULL;

    assert_non_null(x);
    int rc = x->write(
        &(struct export_run){.out = out, .second = two, .m = m, .ask = ask ? ask : &none}, &err);
    fclose(out);
    if (two)
        fclose(two);
    if (rc < 0)
        fail_msg("%s: %s", format, err.text);
    return text;
}

static inline void refused(const char *format, const struct matrix *m, const struct export_ask *ask,
                           int code, const char *why)
{
    static const struct export_ask none = {0};
    char *text = NULL;
    size_t len;
    struct err err = {0, ""};
    FILE *out = open_memstream(&text, &len);

    const struct export_run e = {.out = out, .m = m, .ask = ask ? ask : &none};
    assert_int_equal(exporter_find(format, NULL)->write(&e, &err), -1);
    fclose(out);
    assert_string_equal(err.text, why);
    assert_int_equal(err.code, code);
    assert_int_equal(len, 0);
    free(text);
}

/* The documents of a file; *count of them. */
static inline struct yaml *documents(const char *text, int *count)
{
    struct yaml *y = NULL;
    const char *at = text, *end;

    *count = 0;
    do {
        struct err err = {0, ""};
        end = strstr(at, "---\n");
        struct yaml one;
        int rc = yaml_parse(&one, at, end ? (size_t)(end - at) : strlen(at), "out", &err);
        if (rc < 0)
            fail_msg("%s in:\n%s", err.text, at);
        if (json_is_null(one.root))
            yaml_done(&one);
        else
            MEM_PUSH(y, *count) = one;
        at = end ? end + 4 : NULL;
    } while (at);
    return y;
}

static inline void documents_done(struct yaml *y, int count)
{
    for (int i = 0; i < count; i++)
        yaml_done(&y[i]);
    free(y);
}

/* "spec.levels.0.nodeLabel" */
static inline json_t *at(const json_t *v, const char *path)
{
    char part[80];

    while (v && *path) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        v = json_is_array(v) ? json_array_get(v, (size_t)atol(part)) : json_object_get(v, part);
        path += n + (path[n] == '.');
    }
    return (json_t *)(uintptr_t)v;
}

static inline const char *text_at(const json_t *v, const char *path)
{
    const char *text = json_string_value(at(v, path));

    if (!text)
        fail_msg("no text at %s", path);
    return text;
}

#endif
