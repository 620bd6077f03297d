/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaign.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define FORMAT "railgauge-campaign"
enum { VERSION = 1 };

/* What may differ from start to start: where it runs and what is shown, not what is measured. */
static const char *const free_now[] = {
    "output", "resume",        "dry-run",    "no-plots", "format", "no-verdict", "model",
    "launch", "watch-address", "hang-after", "max-run",  "budget", NULL};
/* ... and is not remembered. */
enum { FORGOTTEN = 6 };

static bool is_among(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count && names[i]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* {"noise": ["4%"], "fault": ["...", "..."], "blind": [null]} */
static void collect(void *options, const char *name, const char *value)
{
    json_t *values = json_object_get(options, name);

    if (!values) {
        values = json_array();
        json_object_set_new(options, name, values);
    }
    json_t *text = value ? json_string(value) : NULL;
    json_array_append_new(values, text ? text : json_null());
}

int campaign_save(const struct command *c, int argc, char **argv, const char *dir, struct err *err)
{
    json_t *options = json_object(), *value;
    char *path = file_join(dir, "campaign.json");
    const char *name;
    void *next;

    command_given(c, argc, argv, collect, options);
    json_object_foreach_safe(options, next, name, value) if (is_among(name, free_now, FORGOTTEN))
        json_object_del(options, name);
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "format", FORMAT, "version", VERSION,
                             "provenance", json_provenance(), "options", options);
    int rc = json_save(root, path, err);
    json_decref(root);
    free(path);
    return rc;
}

/* "4%", "a, b", or "given" of a flag; "not given" of NULL. */
static char *values_text(const json_t *values)
{
    char *text = mem_strdup(values ? "" : "not given");
    json_t *v;
    size_t k;

    json_array_foreach(values, k, v)
    {
        char *more = mem_printf("%s%s%s", text, k ? ", " : "",
                                json_is_string(v) ? json_string_value(v) : "given");
        free(text);
        text = more;
    }
    return text;
}

static int differs(const char *dir, const char *name, json_t *now, json_t *then, struct err *err)
{
    char *is = values_text(now), *was = values_text(then);

    err_usage(err, "--%s is %s and was %s when %s was begun; --resume needs no options but -o",
              name, is, was, dir);
    free(is);
    free(was);
    return -1;
}

static int check(json_t *now, json_t *then, const char *dir, struct err *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(now, name, value)
    {
        json_t *was = json_object_get(then, name);
        if (!is_among(name, free_now, 100) && !json_equal(value, was))
            return differs(dir, name, value, was, err);
    }
    return 0;
}

/* Those that are not given now go between the program's name and its words. */
static void put_before(int *argc, char ***argv, json_t *then, json_t *now)
{
    char **all = NULL;
    int n = 0;
    size_t k;
    const char *name;
    json_t *values, *v;

    MEM_PUSH(all, n) = (*argv)[0];
    json_object_foreach(then, name, values) if (!json_object_get(now, name))
        json_array_foreach(values, k, v) MEM_PUSH(all, n) =
            json_is_string(v) ? mem_printf("--%s=%s", name, json_string_value(v))
                              : mem_printf("--%s", name);
    for (int i = 1; i < *argc; i++)
        MEM_PUSH(all, n) = (*argv)[i];
    *argc = n;
    MEM_PUSH(all, n) = NULL;
    *argv = all;
}

static int check_options(json_t *options, const char *path, struct err *err)
{
    const char *name;
    json_t *values, *v;
    size_t k;

    if (!json_is_object(options))
        return err_data(err, "%s: \"options\" is not an object", path);
    json_object_foreach(options, name, values)
    {
        if (!json_array_size(values))
            return err_data(err, "%s: options.%s is not a list", path, name);
        json_array_foreach(
            values, k,
            v) if (!json_is_string(v) &&
                   !json_is_null(v)) return err_data(err,
                                                     "%s: options.%s[%zu] is neither text nor null",
                                                     path, name, k);
    }
    return 0;
}

int campaign_recall(const struct command *c, int *argc, char ***argv, const char *dir,
                    struct err *err)
{
    char *path = file_join(dir, "campaign.json");
    json_t *root = NULL, *now = json_object(), *then, *unused;
    int rc = 0;

    if (access(path, F_OK) != 0)
        goto out;
    rc = json_open(&root, path, FORMAT, VERSION, err);
    if (rc == 0)
        rc = json_take(root, path, err, "{s:o, s:o, s:o, s:o}", "format", &unused, "version",
                       &unused, "provenance", &unused, "options", &then);
    if (rc == 0)
        rc = check_options(then, path, err);
    command_given(c, *argc, *argv, collect, now);
    if (rc == 0)
        rc = check(now, then, dir, err);
    if (rc == 0)
        put_before(argc, argv, then, now);
out:
    json_decref(root);
    json_decref(now);
    free(path);
    return rc;
}
