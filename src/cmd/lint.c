/* SPDX-License-Identifier: BSD-3-Clause */
/* lint.c - railgauge lint: find anomalies of machines before anything is measured. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "topo/lint/lint.h"

struct args {
    const char **file;
    int files;
    struct input_args in;
};

static int need_topology(void *args, struct err *err)
{
    const struct args *a = args;

    return a->files || a->in.sources.count
               ? 0
               : err_usage(err, "give topology files, or files of others");
}

static const struct opt options[] = {
    INPUT_JSON(struct args, in.json),
    INPUT_QUIET(struct args, in.quiet),
    {0},
};

static const struct opt words[] = {{"topology", OPT_LIST(struct args, file, files)}, {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = need_topology,
    .set = {INPUT_SOURCES(struct args, in)},
    .usage = "[TOPOLOGY...]",
    .doc = "Name the host or part that differs from others of its kind, before any "
           "measurement: GPUs, NVLinks, PCIe, drivers, NICs, memory, cores, switches and "
           "cables.\vGive one topology.json of all hosts, or one file per host.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Look at all hosts of a topology", "railgauge lint topology.json"),
            OPT_ELSEWHERE("Look at one file per host", "railgauge lint node*/topology.json --json"),
            OPT_ELSEWHERE("Add the cables of an InfiniBand subnet",
                          "railgauge lint topology.json --ibnet ibnetdiscover.txt"),
            {0}},
    .exits =
        EXIT_CODES("1 something differs, 2 there is nothing to compare, ", ", 78 configuration"),
};

static const struct input_ask ask = {INPUT_TOPO | INPUT_MATRIX, INPUT_TOPO, 0};

static int load(struct topo *all, const struct args *a, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < a->files && rc == 0; i++) {
        const struct input_args one = {.file = a->file[i]};
        struct input in;
        input_init(&in);
        rc = input_open(&in, &one, &ask, err);
        if (rc == 0 && topo_append(all, &in.t, err) < 0)
            rc = err_wrap(err, "%s", a->file[i]);
        input_free(&in);
    }
    if (rc == 0)
        rc = input_sources_read(&a->in.sources, all, err);
    if (rc == 0)
        sources_done(all);
    return rc;
}

static json_t *lint_json(const struct lint *l)
{
    json_t *list = json_array();

    for (int i = 0; i < l->findings; i++) {
        const struct lint_finding *f = &l->finding[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "kind", f->kind, "what",
                                              f->what, "text", f->text, "bad", f->bad));
    }
    return json_pack("{s:s, s:i, s:i, s:o}", "format", "railgauge-lint", "version", 1, "bad",
                     lint_bad(l), "findings", list);
}

/* Number of GPUs, from the driver or from their names only. */
static int gpus(const struct topo *t)
{
    int n = 0;

    for (int i = 0; i < t->endpoints; i++)
        n += t->endpoint[i].kind == ENDPOINT_GPU;
    return t->gpus > n ? t->gpus : n;
}

static void print_text(const struct lint *l, const struct topo *t)
{
    int n = gpus(t);

    for (int i = 0; i < l->findings; i++) {
        log_mark(stdout, l->finding[i].bad ? "BAD" : "note");
        printf("%s  %-9s %s\n", l->finding[i].bad ? " " : "", l->finding[i].kind,
               l->finding[i].text);
    }
    printf("%d host%s, %d GPU%s, %d NIC%s%s: %d bad, %d worth knowing\n", t->hosts,
           t->hosts == 1 ? "" : "s", n, n == 1 ? "" : "s", t->nics, t->nics == 1 ? "" : "s",
           t->net ? ", a network" : "", lint_bad(l), l->findings - lint_bad(l));
}

/* A single host has no peers, but its GPUs, or a network, do. */
static bool comparable(const struct topo *t)
{
    return t->hosts > 1 || t->gpus > 1 || t->net;
}

static int cmd_lint(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct lint l = {0};
    struct topo t;

    topo_init(&t);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = load(&t, &a, err), code = EXIT_GOOD;
    if (rc == 0) {
        lint_hosts(&l, &t);
        lint_net(&l, &t);
        lint_pcie(&l, &t);
        lint_kinds(&l, &t);
        code = lint_bad(&l) ? EXIT_BELOW : comparable(&t) ? EXIT_GOOD : EXIT_UNJUDGED;
        if (a.in.json && !a.in.quiet)
            json_answer(lint_json(&l), NULL, true, err);
        else if (!a.in.quiet)
            print_text(&l, &t);
    }
    lint_free(&l);
    topo_free(&t);
    free(a.file);
    input_args_free(&a.in);
    return rc < 0 ? -1 : code;
}

const struct command lint_command = {&command, cmd_lint};
