/* SPDX-License-Identifier: BSD-3-Clause */
/* explain.c - railgauge explain: a pair in words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "verdict/explain.h"

struct args {
    const char *word[3];
    struct input_args in;
};

/* Without --fabric the first word is the input, and `word` keeps the two others. */
static int take_pair(void *args, struct err *err)
{
    struct args *a = args;
    bool preset = a->in.fabric != NULL;

    if (preset ? !a->word[1] || a->word[2] : !a->word[2])
        return err_usage(err, "give %s two endpoints",
                         preset ? "with --fabric" : "a matrix or a campaign directory, and");
    if (preset)
        return 0;
    a->in.file = a->word[0];
    a->word[0] = a->word[1];
    a->word[1] = a->word[2];
    return 0;
}

static const struct opt options[] = {
    INPUT_BELOW(struct args, in.below),
    INPUT_JSON(struct args, in.json),
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct args, word[0])},
                                   {"endpoint", OPT_INTO(struct args, word[1])},
                                   {"endpoint", OPT_INTO(struct args, word[2])},
                                   {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = take_pair,
    .set = {INPUT_PRESET(struct args, in), INPUT_SOURCES(struct args, in)},
    .usage = "MATRIX|DIR A B\n--fabric NAME [--racks N] A B",
    .doc = "Explain the path of one pair: each hop and its data sheet, the measurements, "
           "the narrowest hop, oddities, and what is not visible.\vA and B are "
           "HOST:INDEX, HOST (its first endpoint) or endpoint ids. A campaign directory "
           "shows more than its matrix: devices in detail and the measurements of this "
           "pair.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Explain a pair of a campaign",
                        "railgauge explain campaign r00n00:0 r00n01:3"),
            OPT_EXAMPLE("Explain a pair by endpoint ids, as JSON",
                        "railgauge explain matrix.json 0 9 --json"),
            OPT_EXAMPLE("Explain a pair of a preset",
                        "railgauge explain --fabric gb200-nvl72 --racks 2 r00n00:0 r01n00:0"),
            OPT_ELSEWHERE("Add the switches of an InfiniBand subnet",
                          "railgauge explain campaign node01:0 node07:3 --ibnet ibnetdiscover.txt"),
            {0}},
    .exits = EXIT_CODES("", ", 78 configuration"),
};

static void print_measured(const struct explain *e)
{
    char size[UNITS_TEXT], value[UNITS_TEXT];

    for (int i = 0; i < e->count; i++) {
        const struct measured *x = &e->measured[i];
        bool latency = x->op == OP_PAIR_LATENCY;
        printf("  %-12s %9s  %10s  ", op_name(x->op), units_bytes_text(size, x->bytes),
               latency ? units_seconds_text(value, x->sec)
                       : units_rate_text(value, x->bytes / x->sec));
        if (x->tier)
            printf(x->n ? "of the tier, %d pairs\n" : "of the tier\n", x->n);
        else
            printf("%s, %d samples in %d epoch%s, %s\n", x->src == e->src ? "there" : "back", x->n,
                   x->epochs, x->epochs == 1 ? "" : "s", x->alone ? "alone" : "under load");
    }
}

/* Curves of tiers without a measured pair come from a preset. */
static bool told_only(const struct explain *e)
{
    for (int i = 0; i < e->count; i++)
        if (e->measured[i].n)
            return false;
    return true;
}

static void print_texts(const char *head, const struct texts *t)
{
    if (t->count)
        printf("\n%s\n", head);
    for (int i = 0; i < t->count; i++)
        table_wrap(stdout, 4, "  %s", t->text[i]);
}

static void print_text(const struct explain *e)
{
    char rate[UNITS_TEXT], other[UNITS_TEXT];

    if (isfinite(e->share))
        table_wrap(stdout, 4, "%s%s of the %s that the narrowest hop should give: %.0f %%",
                   units_rate_text(rate, e->Bps),
                   e->inferred ? " (its tier's rate, less what slow parts take)" : "",
                   units_rate_text(other, e->hop[e->narrowest].Bps), 100 * e->share);
    printf("tier %s\n\npath\n", e->tier ? e->tier : "unknown");
    for (int i = 0; i < e->hops; i++) {
        const struct hop *h = &e->hop[i];
        char *line = mem_printf("  %s", h->text);
        if (h->Bps > 0)
            line = mem_append(line, ": %s (%s)%s", units_rate_text(rate, h->Bps), h->basis,
                              i == e->narrowest ? "  <- the narrowest" : "");
        table_wrap(stdout, 4, "%s", line);
        free(line);
    }
    if (e->nccl > 0)
        printf("  NCCL assumes %s between them\n", units_rate_text(rate, e->nccl));
    if (e->count)
        printf("\n%s\n", told_only(e) ? "published" : "measured");
    print_measured(e);
    if (e->has_below) {
        puts("\nlower layer");
        table_wrap(stdout, 4, "  %s", e->below.text);
    }
    print_texts("unusual", &e->odd);
    print_texts("not visible", &e->unseen);
}

static const struct input_ask ask = {INPUT_MATRIX, INPUT_MATRIX, INPUT_TOPO | INPUT_POINTS};

static int explain(struct input *in, struct input_below *below, const struct args *a,
                   struct err *err)
{
    const char *const *word = a->word;
    struct obs *obs = NULL;
    struct explain e;
    int src, dst;

    if (input_open(in, &a->in, &ask, err) < 0 ||
        input_sources_read(&a->in.sources, &in->t, err) < 0)
        return -1;
    if (a->in.sources.count)
        sources_done(&in->t);
    if (in->t.endpoints != in->m.topo.endpoints)
        return err_data(err, "the files tell of %d endpoints where the matrix has %d",
                        in->t.endpoints, in->m.topo.endpoints);
    if (input_endpoint(&in->t, word[0], &src, err) < 0 ||
        input_endpoint(&in->t, word[1], &dst, err) < 0)
        return -1;
    if (src == dst)
        return err_usage(err, "%s and %s are the same endpoint", word[0], word[1]);
    if (input_below_open(below, &a->in, in, err) < 0)
        return -1;
    int count = in->has & INPUT_POINTS ? observe(&obs, &in->p, true) : 0;
    explain_pair(&e, &in->m, &in->t, obs, count, src, dst);
    if (below->is)
        explain_below(&e, below->is);
    if (a->in.json)
        json_answer(explain_json(&e, &in->t, below->is), NULL, true, err);
    else
        print_text(&e);
    explain_free(&e);
    free(obs);
    return 0;
}

static int cmd_explain(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct input in;
    struct input_below below;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    input_init(&in);
    input_below_init(&below);
    int rc = explain(&in, &below, &a, err);
    input_below_free(&below);
    input_free(&in);
    input_args_free(&a.in);
    return rc;
}

const struct command explain_command = {&command, cmd_explain};
