/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/placement_text.h"

static json_t *texts(char *const *text, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(text[i]));
    return list;
}

json_t *placement_json(const struct segments *s, const struct segment_verdict *v)
{
    json_t *who = json_array();

    for (int i = 0; i < s->opinions; i++)
        json_array_append_new(
            who, json_pack("{s:s, s:i}", "name", s->opinion[i].who, "nodes", s->opinion[i].told));
    return json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:s?}", "format",
                     "railgauge-placement", "version", 1, "verdict",
                     v->split     ? "split"
                     : v->unknown ? "unknown"
                                  : "good",
                     "nodes", s->nodes, "segment", s->size, "segments", v->segments, "together",
                     v->together, "split", v->split, "unknown", v->unknown, "sources", who,
                     "findings", texts(v->word, v->words), "disagreements",
                     texts(v->differ, v->differs), "better_order", v->order);
}

void placement_text(FILE *out, const struct segments *s, const struct segment_verdict *v)
{
    fprintf(out, "placement  %d node%s, %d segment%s of %d%s\n", s->nodes, s->nodes == 1 ? "" : "s",
            v->segments, v->segments == 1 ? "" : "s", s->size,
            s->nodes % s->size ? ", the last one shorter" : "");
    for (int i = 0; i < s->opinions; i++)
        fprintf(out, "%-10s %s, %d node%s\n", i ? "" : "sources", s->opinion[i].who,
                s->opinion[i].told, s->opinion[i].told == 1 ? "" : "s");
    fprintf(out, "%-10s %d of %d together\n", "segments", v->together, v->segments);
    for (int i = 0; i < v->words; i++)
        fprintf(out, "  %s\n", v->word[i]);
    for (int i = 0; i < v->differs; i++)
        fprintf(out, "  %s\n", v->differ[i]);
    if (v->order)
        fprintf(out, "  in another order the same nodes make whole segments: %s\n", v->order);
}
