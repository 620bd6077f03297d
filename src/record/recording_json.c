/* SPDX-License-Identifier: BSD-3-Clause */
/* recording_json.c - file that nccl-tests writes with -J (versions 1 to 3 of it, nccl-tests 2.17.5
 * to 2.19.6): one run.  Booleans and the root are strings, "nan" is a string, a number that was not
 * measured is null.  "env", the environment of the run, is ignored. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "record/recording.h"

enum { ITEMS_MAX = 1 << 20 };

struct recording_json {
    struct recording *r;
    struct recording_table *t;
    const char *where; /* "results" or "devices" */
    int item;
};

static int bad(const struct recording_json *in, const char *key, const char *why, struct err *err)
{
    return err_data(err, "%s: %s[%d].%s %s", in->r->path, in->where, in->item, key, why);
}

static int whole(const struct recording_json *in, const json_t *o, const char *key, json_int_t max,
                 json_int_t *out, struct err *err)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_integer(v))
        return bad(in, key, v ? "is not a whole number" : "is missing", err);
    *out = json_integer_value(v);
    return *out < 0 || *out > max ? bad(in, key, "is out of range", err) : 0;
}

static int real(const struct recording_json *in, const json_t *o, const char *key, double *out,
                struct err *err)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_number(v))
        return bad(in, key, v ? "is not a number" : "is missing", err);
    *out = json_number_value(v);
    return *out >= 0 && *out < 1e15 ? 0 : bad(in, key, "is out of range", err);
}

static int word(const struct recording_json *in, const json_t *o, const char *key, char *out,
                size_t size, struct err *err)
{
    const char *text = json_string_value(json_object_get(o, key));
    struct err why;

    if (!text)
        return bad(in, key, "is no text", err);
    if (recording_plain(in->r, in->item, key, text, size - 1, &why) < 0)
        return bad(in, key, "is no short text of printable characters", err);
    snprintf(out, size, "%s", text);
    return 0;
}

/* Use "times_us" of every iteration, else the statistics; -I 1 writes both. */
static int read_iterations(const struct recording_json *in, const json_t *o,
                           struct recording_half *h, struct err *err)
{
    const json_t *times = json_object_get(o, "times_us");
    int n = (int)json_array_size(times), rc = 0;
    json_int_t skip = 0;

    if (json_object_get(o, "skipped_iterations") &&
        whole(in, o, "skipped_iterations", ITEMS_MAX, &skip, err) < 0)
        return -1;
    if (n <= skip || n > ITEMS_MAX)
        return bad(in, "times_us", "has no iteration that counts", err);
    double *sec = mem_calloc((size_t)n, sizeof(*sec));
    for (int i = 0; i < n && rc == 0; i++) {
        sec[i] = json_number_value(json_array_get(times, (size_t)i)) / 1e6;
        if (!(sec[i] > 0))
            rc = bad(in, "times_us", "has a time that is not positive", err);
    }
    if (rc == 0)
        stats_summary(&h->sec, sec + skip, n - (int)skip);
    h->mean = false;
    free(sec);
    return rc;
}

static int read_half(const struct recording_json *in, const json_t *row, struct recording_row *out,
                     int half, struct err *err)
{
    static const char *const name[] = {"out_of_place", "in_place"};
    static const char *const more[] = {"out_of_place_per_iter", "in_place_per_iter"};
    struct recording_half *h = &out->half[half];
    const json_t *o = json_object_get(row, name[half]);
    const json_t *each = json_object_get(row, more[half]);
    double us, rate[2], wrong;

    h->wrong = -1;
    if (!o || json_is_null(o))
        return 0;
    if (json_object_get(o, "cpu_time"))
        return bad(in, "cpu_time", "is of the calling CPU (-C 1), not of the collective", err);
    if (!out->bytes)
        return 0;
    if (real(in, o, "time", &us, err) < 0 || real(in, o, "alg_bw", &rate[0], err) < 0 ||
        real(in, o, "bus_bw", &rate[1], err) < 0)
        return -1;
    if (us <= 0)
        return bad(in, "time", "is not positive", err);
    if (json_is_number(json_object_get(o, "nwrong"))) {
        if (real(in, o, "nwrong", &wrong, err) < 0)
            return -1;
        h->wrong = wrong > 1e9 ? 1000000000 : (int)wrong;
    }
    if (recording_set(in->r, out, h, us / 1e6, rate, in->t->iters, err) < 0)
        return -1;
    return each ? read_iterations(in, each, h, err) : 0;
}

static int read_row(const struct recording_json *in, const json_t *o, struct err *err)
{
    struct recording_row row = {.line = in->item, .root = -1};
    const char *root = json_string_value(json_object_get(o, "root"));
    json_int_t bytes;

    if (!json_is_object(o))
        return err_data(err, "%s: results[%d] is not an object", in->r->path, in->item);
    if (whole(in, o, "size", (json_int_t)1 << 60, &bytes, err) < 0 ||
        word(in, o, "type", row.type, sizeof(row.type), err) < 0 ||
        word(in, o, "redop", row.redop, sizeof(row.redop), err) < 0)
        return -1;
    row.bytes = (size_t)bytes;
    if (!root || units_int(&row.root, root + strspn(root, " "), -1, 1 << 24, NULL) < 0)
        return bad(in, "root", "is not a rank or -1 as text", err);
    for (int half = 0; half < 2; half++)
        if (read_half(in, o, &row, half, err) < 0)
            return -1;
    MEM_PUSH(in->t->row, in->t->rows) = row;
    return 0;
}

/* The file names the first GPU of each process; the others follow it, like ranks. */
static int read_device(struct recording_json *in, const json_t *o, int each, struct err *err)
{
    struct recording_rank k = {.line = in->item};
    const char *hex = json_string_value(json_object_get(o, "device_hex"));
    json_int_t rank, group, device;

    if (!json_is_object(o))
        return err_data(err, "%s: devices[%d] is not an object", in->r->path, in->item);
    if (whole(in, o, "rank", ITEMS_MAX, &rank, err) < 0 ||
        whole(in, o, "group", 1 << 30, &group, err) < 0 ||
        whole(in, o, "device", 1 << 20, &device, err) < 0 ||
        word(in, o, "hostname", k.host, sizeof(k.host), err) < 0 ||
        word(in, o, "device_info", k.model, sizeof(k.model), err) < 0)
        return -1;
    k.group = (int)group;
    for (int i = 0; i < each; i++) {
        k.rank = (int)rank + i;
        k.device = (int)device + i;
        recording_busid(k.busid, hex && i == 0 ? hex : "");
        if (in->t->ranks >= ITEMS_MAX)
            return err_data(err, "%s: more than %d ranks", in->r->path, ITEMS_MAX);
        MEM_PUSH(in->t->rank, in->t->ranks) = k;
    }
    return 0;
}

static int config_int(const json_t *config, const char *key, int otherwise)
{
    json_int_t v = json_integer_value(json_object_get(config, key));

    return v >= 1 && v <= 10000000 ? (int)v : otherwise;
}

static int read_config(struct recording_json *in, const json_t *config, struct err *err)
{
    const json_t *devices = json_object_get(config, "devices"), *o;
    struct recording_table *t = in->t;
    int rc = 0;
    size_t i;

    if (!json_is_object(config))
        return err_data(err, "%s: \"config\" is missing: not a file of nccl-tests' -J",
                        in->r->path);
    t->iters = config_int(config, "iterations", 1);
    t->threads = config_int(config, "nthreads", 1);
    t->gpus = config_int(config, "ngpus", 1);
    t->factor = (size_t)config_int(config, "step_factor", 0);
    if (t->threads > 1024 || t->gpus > 1024 || t->threads * t->gpus > 1024)
        return err_data(err, "%s: config: %d threads of %d GPUs", in->r->path, t->threads, t->gpus);
    in->where = "devices";
    json_array_foreach(devices, i, o)
    {
        in->item = (int)i;
        if (rc == 0)
            rc = read_device(in, o, t->threads * t->gpus, err);
    }
    return rc;
}

/* "/opt/nccl-tests/build/all_reduce_perf" */
static int read_program(struct recording_json *in, const json_t *args, struct err *err)
{
    const char *path = json_string_value(json_array_get(args, 0)), *slash;

    if (!path)
        return 0;
    slash = strrchr(path, '/');
    path = slash ? slash + 1 : path;
    if (strlen(path) >= sizeof(in->t->program) ||
        recording_plain(in->r, 0, "args", path, 256, err) < 0)
        return err_data(err, "%s: args[0] does not end in a program's name", in->r->path);
    snprintf(in->t->program, sizeof(in->t->program), "%s", path);
    return 0;
}

static int read_file(struct recording_json *in, const json_t *root, struct err *err)
{
    const json_t *results = json_object_get(root, "results"), *row;
    json_int_t library = json_integer_value(json_object_get(root, "nccl_version"));
    int rc = read_config(in, json_object_get(root, "config"), err);
    size_t i;

    in->r->library = library > 0 && library < 1 << 24 ? (int)library : 0;
    in->t->ended = json_object_get(root, "end_time") != NULL;
    if (rc == 0)
        rc = read_program(in, json_object_get(root, "args"), err);
    if (rc == 0 && !json_is_array(results))
        rc = err_data(err, "%s: \"results\" is not a list", in->r->path);
    in->where = "results";
    json_array_foreach(results, i, row)
    {
        in->item = (int)i;
        if (rc == 0)
            rc = read_row(in, row, err);
    }
    return rc;
}

int recording_parse_json(struct recording *r, const char *text, size_t len, struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    struct recording_json in = {.r = r, .t = recording_add(r, 1)};

    if (!root)
        return err_data(err, "%s:%d: %s", r->path, why.line, why.text);
    int rc = read_file(&in, root, err);
    json_decref(root);
    return rc;
}
