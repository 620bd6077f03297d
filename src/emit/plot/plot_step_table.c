/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of predict --batch, as a table or as JSON. */
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "emit/plot/plot_data.h"
#include "emit/plot/plot_step.h"

static const char *const json_column[] = {"id",         "status",      "model",      "hardware",
                                          "release",    "family",      "layout",     "split",
                                          "measured_s", "predicted_s", "anchored_s", "anchor"};
enum { JSON_COLUMNS = sizeof(json_column) / sizeof(*json_column) };

static void print_cell(FILE *out, json_t *v)
{
    char text[PLOT_TEXT];

    if (json_is_number(v))
        fprintf(out, "%.9g", json_number_value(v));
    else if (json_is_string(v))
        fputs(plot_text(text, json_string_value(v), 110), out);
}

/* The rows of the JSON as the table that `predict --batch` prints without --json. */
static int from_json(struct tsv *t, const char *path, struct err *err)
{
    json_t *root, *list, *row;
    char *text = NULL;
    size_t i, size;
    int rc = -1;

    if (json_open(&root, path, "railgauge-batch", 1, err) < 0)
        return -1;
    list = json_object_get(root, "rows");
    if (!json_is_array(list)) {
        err_data(err, "%s: \"rows\" is no list", path);
        goto out;
    }
    FILE *out = mem_stream(&text, &size);
    for (int c = 0; c < JSON_COLUMNS; c++)
        fprintf(out, "%s%s", c ? "\t" : "", json_column[c]);
    json_array_foreach(list, i, row)
    {
        fputc('\n', out);
        for (int c = 0; c < JSON_COLUMNS; c++) {
            fputs(c ? "\t" : "", out);
            print_cell(out, json_object_get(row, json_column[c]));
        }
    }
    fputc('\n', out);
    mem_stream_end(out);
    rc = tsv_parse(t, path, text, err);
out:
    json_decref(root);
    return rc;
}

int score_table_load(struct tsv *t, const char *path, struct err *err)
{
    return step_is_json(path) ? from_json(t, path, err) : tsv_load(t, path, err);
}
