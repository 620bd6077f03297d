/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_load.c - files of presets: the shipped ones, and presets derived from a base. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/fabrics/fabric.h"

enum { VERSION = 1 };

/* --- presets derived from a base --- */

/* Collectives and kernels kept from the base: those inside a domain, those between domains. */
struct keep {
    const char *word;
    bool inside, between;
};
static const struct keep keeps[] = {{"all", true, true},
                                    {"inside", true, false},
                                    {"between", false, true},
                                    {"none", false, false},
                                    {NULL, false, false}};

/* Append the kept entries of the base's list to that of `root`. */
static void keep_list(json_t *root, json_t *base, const char *key, const struct keep *k)
{
    json_t *list = json_object_get(root, key), *one;
    size_t i;

    if (!json_object_get(base, key))
        return;
    if (!list)
        json_object_set_new(root, key, list = json_array());
    json_array_foreach(json_object_get(base, key), i, one)
    {
        bool inside = json_integer_value(json_object_get(one, "domains")) == 1;
        if (inside ? k->inside : k->between)
            json_array_append(list, one);
    }
}

static int take_over(json_t *root, json_t *base, const char *where, const struct keep *k,
                     struct err *err)
{
    json_t *sources = json_object_get(root, "sources");

    if (json_object_get(base, "base"))
        return err_data(err, "%s: that preset is itself made from another", where);
    keep_list(root, base, "collectives", k);
    keep_list(root, base, "ep_kernels", k);
    if (sources)
        json_object_update_missing(sources, json_object_get(base, "sources"));
    json_object_update_missing(root, base);
    json_object_del(root, "base");
    return 0;
}

/* Apply {"preset": "hgx-h100", "collectives": "inside"}: its members complete `root`. */
static int derive(json_t *root, const char *path, struct err *err)
{
    json_t *name = json_object_get(root, "base"), *base = NULL;
    const char *preset, *word = "all";
    const struct keep *k = keeps;
    int rc = 0;

    if (!name)
        return 0;
    char *where = mem_printf("%s: base", path), *file = NULL;
    rc = json_take(name, where, err, "{s:s, s?s}", "preset", &preset, "collectives", &word);
    while (k->word && strcmp(k->word, word) != 0)
        k++;
    if (rc == 0 && !k->word)
        rc = err_data(err, "%s: collectives \"%s\" is not all, inside, between or none", where,
                      word);
    if (rc == 0 && !(file = file_data_named("topo/fabrics", preset)))
        rc = err_data(err, "%s: preset \"%s\" is not a file of topo/fabrics", where, preset);
    if (rc == 0)
        rc = json_open(&base, file, "railgauge-fabric", VERSION, err);
    if (rc == 0)
        rc = take_over(root, base, where, k, err);
    json_decref(base);
    free(where);
    free(file);
    return rc;
}

/* --- files --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int fabric_list(char ***names, int *count, struct err *err)
{
    char *path = file_data("topo/fabrics");
    DIR *dir = path ? opendir(path) : NULL;
    int rc = 0;

    *names = NULL;
    *count = 0;
    if (!dir)
        rc = err_noinput(err,
                         "no folder topo/fabrics with the shipped fabrics (%s); "
                         "RAILGAUGE_DATA can name its parent",
                         path ? strerror(errno) : "neither beside this program nor installed");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len > 5 && !strcmp(e->d_name + len - 5, ".json"))
            MEM_PUSH(*names, *count) = mem_strndup(e->d_name, len - 5);
    }
    if (*count)
        qsort(*names, (size_t)*count, sizeof(**names), by_name);
    if (dir)
        closedir(dir);
    free(path);
    return rc;
}

/* "no fabric "x"; known: a, b, c" */
static int unknown(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char **names, *all = mem_strdup("");
    int count;

    if (fabric_list(&names, &count, err) < 0) {
        free(all);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        all = mem_append(all, "%s%s", i ? ", " : "", names[i]);
        near_try(&near, names[i]);
    }
    err_usage(err,
              "no fabric \"%s\"%s; known: %s; or give a file with a \"/\" or \".json\" in its name",
              name, near_text(&near), all);
    free(all);
    hostlist_free(names, count);
    return -1;
}

int fabric_load(struct fabric *f, const char *name, struct err *err)
{
    char *path = file_data_named("topo/fabrics", name);
    json_t *root = NULL;

    memset(f, 0, sizeof(*f));
    int rc = path ? json_open(&root, path, "railgauge-fabric", VERSION, err) : unknown(name, err);
    if (rc == 0)
        rc = derive(root, path, err);
    if (rc == 0)
        rc = fabric_read(f, root, path, err);
    if (rc < 0)
        fabric_free(f);
    json_decref(root);
    free(path);
    return rc;
}

/* True if both names state different memory sizes: "A100-SXM4-40GB", "A100 SXM 80 GB". */
static bool other_memory(const char *device, const char *gpu)
{
    const char *gb = strstr(gpu, " GB"), *digits = gb;

    if (!gb || !strstr(device, "GB"))
        return false;
    while (digits > gpu && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    char *joined = mem_printf("%.*sGB", (int)(gb - digits), digits);
    bool other = !strstr(device, joined);
    free(joined);
    return other;
}

/* Length of the part of a device name that matches this preset's GPU; 0: another GPU.  " SXM" and
 * all after it are the preset's words, not the driver's. */
static size_t same_gpu(const char *device, const char *gpu)
{
    const char *form = strstr(gpu, " SXM");
    size_t len = form ? (size_t)(form - gpu) : strlen(gpu);

    if (strncmp(device, gpu, len) || (device[len] && device[len] != ' ' && device[len] != '-'))
        return 0;
    if (other_memory(device, gpu))
        return 0;
    if (form && (strcasestr(device + len, "PCIe") || strcasestr(device + len, "NVL")))
        return 0;
    return len;
}

char *fabric_of_gpu(const char *device)
{
    char **name = NULL, *found = NULL;
    size_t best = 0;
    int count = 0;

    if (fabric_list(&name, &count, NULL) < 0)
        return NULL;
    for (int i = 0; i < count; i++) {
        struct fabric f = {.name = NULL};
        size_t len = fabric_load(&f, name[i], NULL) == 0 ? same_gpu(device, f.gpu.name) : 0;
        fabric_free(&f);
        if (len > best) {
            free(found);
            found = mem_strdup(name[i]);
            best = len;
        }
    }
    hostlist_free(name, count);
    return found;
}
