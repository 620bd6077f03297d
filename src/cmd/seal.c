/* SPDX-License-Identifier: BSD-3-Clause */
/* seal.c - railgauge seal: correct the checksum of files that were edited by hand. */
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "matrix/matrix.h"
#include "topo/topo.h"

static const size_t bytes_max = (size_t)256 << 20;

struct args {
    const char **file;
    int files;
    bool json;
};

static const struct opt options[] = {INPUT_JSON(struct args, json), {0}};

static const struct opt words[] = {
    {"file", .help = "which topology.json or matrix.json?", OPT_LIST(struct args, file, files)},
    {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "FILE...",
    .doc = "Write the checksum of a topology.json or matrix.json that was changed by "
           "hand.\vBoth files carry a checksum of their text, and are refused if it does "
           "not match. A file that is correct otherwise gets the checksum of its present "
           "text; nothing else changes.",
    .examples = (const struct opt_example[]){OPT_EXAMPLE("Seal a topology after a change",
                                                         "railgauge seal campaign/topology.json"),
                                             {0}},
    .exits = EXIT_CODES("", ""),
};

/* Check that the file can be read in either format. */
static int parse_sealed(const char *text, size_t len, const char *path, struct err *err)
{
    json_t *root;
    struct matrix m;
    struct topo t;

    if (json_parse(&root, text, len, path, TOPO_FORMAT, TOPO_VERSION, NULL) == 0) {
        json_decref(root);
        int rc = topo_parse(&t, text, len, path, err);
        if (rc == 0)
            topo_free(&t);
        return rc;
    }
    int rc = matrix_parse(&m, text, len, path, err);
    if (rc == 0)
        matrix_free(&m);
    return rc;
}

/* Add the file and its checksum to the list; NULL: print both. */
static int seal(json_t *list, const char *path, struct err *err)
{
    char *text, *sealed;
    size_t len;

    if (file_read(&text, &len, path, bytes_max, err) < 0)
        return -1;
    sealed = seal_text(text, len, &len);
    int rc = parse_sealed(sealed, len, path, err);
    if (rc == 0)
        rc = json_save_text(sealed, len, path, err);
    const char *digits = rc == 0 ? seal_find(sealed, len, NULL) : NULL;
    if (rc == 0 && list)
        json_array_append_new(
            list, json_pack("{s:s, s:s%}", "file", path, "checksum", digits, (size_t)8));
    else if (rc == 0)
        printf("%s: checksum %.8s\n", path, digits);
    free(sealed);
    free(text);
    return rc;
}

static int cmd_seal(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    int rc = 0;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    json_t *list = a.json ? json_array() : NULL;
    for (int i = 0; i < a.files && rc == 0; i++)
        rc = seal(list, a.file[i], err);
    free(a.file);
    list = json_framed("railgauge-seal", "files", list);
    return json_answer(list, NULL, rc == 0 && a.json, err) < 0 ? -1 : rc;
}

const struct command seal_command = {&command, cmd_seal};
