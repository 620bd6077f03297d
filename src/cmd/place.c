/* place.c - railgauge place: which nodes, and which rank where. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/hosts.h"
#include "cmd/place_args.h"
#include "cmd/place_text.h"

enum { NODES_MAX = 16 << 20 };

/* A question whole, and what came out. */
struct placing {
    struct place_args args;
    struct job job;
    struct demand demand;
    char *listed; /* what --nodes-file holds, as one list */
    int *host, hosts;
    struct placed placed;
    struct prediction now, before;
    bool compares; /* before is there */
};

/* "n1\nn[2-3] # rack 7\n" becomes "n1,n[2-3]". */
static int read_nodes(char **list, const char *path, struct err *err)
{
    char *text, *rest, *line;
    size_t len;

    if (file_read(&text, &len, path, NODES_MAX, err) < 0)
        return -1;
    rest = text;
    *list = mem_strdup("");
    while ((line = strsep(&rest, "\n")) != NULL) {
        line[strcspn(line, "#")] = '\0';
        for (char *word; (word = strsep(&line, " \t\r")) != NULL;) {
            if (!*word)
                continue;
            char *more = mem_printf("%s%s%s", *list, **list ? "," : "", word);
            free(*list);
            *list = more;
        }
    }
    free(text);
    return **list ? 0 : err_data(err, "%s: no node is named", path);
}

static int open_job(struct placing *p, struct err *err)
{
    struct place_args *a = &p->args;
    int ranks;

    if (a->nodes_file && read_nodes(&p->listed, a->nodes_file, err) < 0)
        return -1;
    if (p->listed)
        a->job.place.nodes = p->listed;
    if (!a->traffic)
        return job_open(&p->job, &a->job, err);
    if (demand_load(&p->demand, a->traffic, err) < 0)
        return -1;
    if (a->job.gpus && a->job.gpus < p->demand.ranks)
        return err_usage(err, "--gpus %d is less than the %d ranks of %s", a->job.gpus,
                         p->demand.ranks, a->traffic);
    if (a->job.gpus)
        p->demand.ranks = a->job.gpus;
    a->job.gpus = p->demand.ranks;
    return job_open_ranks(&p->job, &a->job, &ranks, err);
}

/* The free hosts in the order given, without those that are excluded. */
static int free_hosts(struct placing *p, struct err *err)
{
    const struct topo *t = &p->job.matrix.topo;
    const char *exclude = p->args.exclude;
    int *out = NULL, outs = 0, n = 0;
    int rc = hosts_read(&p->host, &p->hosts, t, "--nodes", p->args.job.place.nodes, err);

    if (rc == 0 && exclude)
        rc = hosts_read(&out, &outs, t, "--exclude", exclude, err);
    for (int i = 0; rc == 0 && i < p->hosts; i++) {
        int k = 0;
        while (k < outs && out[k] != p->host[i])
            k++;
        if (k == outs)
            p->host[n++] = p->host[i];
    }
    p->hosts = n;
    free(out);
    return rc;
}

static int run(struct placing *p, struct err *err)
{
    struct place_ask ask = {.matrix = &p->job.matrix,
                            .host = p->host,
                            .hosts = p->hosts,
                            .per_host = p->args.per_node,
                            .limit = p->args.limit,
                            .seed = (unsigned)p->args.seed,
                            .scotch = !p->args.no_scotch,
                            .progress = true};
    struct question q = job_question(&p->job, &p->args.job);

    if (p->args.traffic)
        ask.demand = &p->demand;
    else
        ask.question = &q;
    if (place_run(&p->placed, &ask, err) < 0 || p->args.traffic)
        return p->placed.order ? 0 : -1;
    q.order = p->placed.order;
    if (predict_step(&p->now, &q, err) < 0)
        return -1;
    if (isinf(p->placed.in_order)) /* it needs a part that is of no use: nothing to compare with */
        return 0;
    q.order = p->placed.given;
    p->compares = true;
    return predict_step(&p->before, &q, err);
}

static int write_form(const struct written *w, const struct seating *s, FILE *words,
                      struct err *err)
{
    struct file_out f;

    if (!strcmp(w->path, "-"))
        return rank_file_write(w->form, stdout, s, err);
    if (file_begin(&f, w->path, err) < 0)
        return -1;
    int rc = rank_file_write(w->form, f.stream, s, err);
    if (rc == 0)
        rc = file_commit(&f, err);
    file_abort(&f);
    char *use = rank_file_use(w->form, w->path, s->ranks);
    if (rc == 0 && words)
        fprintf(words, "wrote %s: %s\n", w->path, use);
    free(use);
    return rc;
}

static int show(const struct placing *p, struct err *err)
{
    const struct place_args *a = &p->args;
    struct place_answer answer = {.placed = &p->placed,
                                  .matrix = &p->job.matrix,
                                  .now = a->traffic ? NULL : &p->now,
                                  .before = p->compares ? &p->before : NULL,
                                  .traffic = a->traffic,
                                  .free_hosts = p->hosts};
    struct seating seating = {&p->job.matrix.topo, p->placed.order, p->placed.ranks};
    json_t *json = place_json(&answer);
    FILE *words = a->json ? NULL : stdout; /* prices go beside a form that standard output has */
    int rc = a->output ? json_save(json, a->output, err) : 0;

    for (int i = 0; i < a->writes; i++)
        words = strcmp(a->write[i].path, "-") != 0 ? words : stderr;
    if (a->json && rc == 0) {
        json_print(stdout, json);
    } else if (rc == 0) {
        place_text(words, &answer);
    }
    json_decref(json);
    for (int i = 0; rc == 0 && i < a->writes; i++)
        rc = write_form(&a->write[i], &seating, words, err);
    return rc;
}

int cmd_place(int argc, char **argv)
{
    struct placing p = {.hosts = 0};
    struct err err = {0, ""};

    place_args(&p.args, argc, argv);
    int rc = open_job(&p, &err);
    if (rc == 0)
        rc = free_hosts(&p, &err);
    if (rc == 0)
        rc = run(&p, &err);
    if (rc == 0)
        rc = show(&p, &err);
    bool fits = memory_fits(&p.now.memory); /* traffic: nothing is known, so it does */
    prediction_free(&p.now);
    prediction_free(&p.before);
    placed_free(&p.placed);
    demand_free(&p.demand);
    job_free(&p.job);
    free(p.host);
    free(p.listed);
    free(p.args.write);
    return rc < 0 ? cmd_fail("place", &err) : fits ? EXIT_GOOD : EXIT_BELOW;
}
