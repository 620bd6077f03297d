/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_json.c - verdict.json: what the listener knew of every rank when it decided. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "probe/watch/watch_judge.h"

static const char *state_name(const struct watched *r)
{
    static const char *const name[] = {"starting", "busy", "waiting"};

    return !r->known ? "unknown" : r->bye ? "left" : r->gone ? "dead" : name[r->beat.state];
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *rank_json(const struct watched *r, int rank, double now)
{
    json_t *o = json_pack("{s:i, s:s}", "rank", rank, "state", state_name(r));

    if (r->known)
        json_object_update_new(
            o, json_pack("{s:s, s:i, s:s, s:I, s:I, s:f, s:f, s:o}", "host", r->host, "pid", r->pid,
                         "what", r->beat.words, "moves", (json_int_t)r->beat.moves, "steps",
                         (json_int_t)r->beat.steps, "silent_s", round(1e3 * (now - r->heard)) / 1e3,
                         "still_s", round(1e3 * (now - r->moved)) / 1e3, "symptom",
                         text_or_null(r->symptom)));
    return o;
}

static json_t *culprit_json(const struct judge *j)
{
    const struct verdict *v = &j->verdict;
    const struct watched *r = v->rank < 0 ? NULL : &j->rank[v->rank];

    if (!r)
        return json_null();
    return json_pack("{s:i, s:i, s:s, s:i, s:s}", "rank", v->rank, "endpoint", v->rank, "host",
                     r->host, "pid", r->pid, "what", r->beat.words);
}

int judge_save(const struct judge *j, const char *dir, double now, struct err *err)
{
    const struct verdict *v = &j->verdict;
    json_t *ranks = json_array();
    char *path = file_join(dir, "verdict.json");

    for (int i = 0; i < j->ranks; i++)
        json_array_append_new(ranks, rank_json(&j->rank[i], i, now));
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:s, s:o, s:s, s:f, s:f, s:{s:i, s:i}, s:o}", "format",
                  "railgauge-verdict", "version", 1, "provenance", json_provenance(), "kind",
                  verdict_kind_name[v->kind], "culprit", culprit_json(j), "text", v->text,
                  "since_s", round(1e3 * v->since) / 1e3, "hang_after_s", j->hang_after, "points",
                  "kept", j->kept, "total", j->total, "ranks", ranks);
    int rc = root ? json_save(root, path, err) : err_io(err, "%s: no memory", path);
    json_decref(root);
    free(path);
    return rc;
}
