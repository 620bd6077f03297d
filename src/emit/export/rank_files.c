/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/rank_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"

static int write_order(FILE *out, const struct seating *s, struct err *err)
{
    if (seating_names(s, err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++)
        fprintf(out, "%s %d\n", s->topo->host[seating_host(s, r)].name,
                s->topo->endpoint[s->order[r]].local);
    return 0;
}

/* slot=N is a core, slot=N:* a socket with all of its cores (mpirun(1) of 4.1, "Rankfiles"). */
static int write_rankfile(FILE *out, const struct seating *s, struct err *err)
{
    if (seating_names(s, err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++) {
        const struct endpoint *e = &s->topo->endpoint[s->order[r]];
        bool sockets = e->kind == ENDPOINT_CPU && s->topo->host[seating_host(s, r)].sockets > 1;
        fprintf(out, "rank %d=%s slot=%d%s\n", r, s->topo->host[seating_host(s, r)].name, e->local,
                sockets ? ":*" : "");
    }
    return 0;
}

static int each_node(FILE *out, const struct seating *s, const char *what, const char *form,
                     struct err *err)
{
    struct stays v;

    if (seating_whole(&v, s, what, err) < 0)
        return -1;
    for (int i = 0; i < v.count; i++)
        fprintf(out, "%s%s%d\n", s->topo->host[v.stay[i].host].name, form, v.stay[i].ranks);
    free(v.stay);
    return 0;
}

static int write_hostfile(FILE *out, const struct seating *s, struct err *err)
{
    return each_node(out, s, "a hostfile", " slots=", err);
}

static int write_mpich(FILE *out, const struct seating *s, struct err *err)
{
    return each_node(out, s, "a hostfile", ":", err);
}

static int write_slurm(FILE *out, const struct seating *s, struct err *err)
{
    if (seating_names(s, err) < 0 || seating_local(s, "SLURM_HOSTFILE", err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++)
        fprintf(out, "%s\n", s->topo->host[seating_host(s, r)].name);
    return 0;
}

static int write_torchrun(FILE *out, const struct seating *s, struct err *err)
{
    struct stays v;
    int rc = seating_whole(&v, s, "torchrun", err);

    if (rc < 0)
        return -1;
    for (int i = 1; rc == 0 && i < v.count; i++)
        if (v.stay[i].ranks != v.stay[0].ranks)
            rc = err_data(err,
                          "node \"%s\" has %d ranks and \"%s\" %d: --nproc-per-node is one "
                          "number",
                          s->topo->host[v.stay[0].host].name, v.stay[0].ranks,
                          s->topo->host[v.stay[i].host].name, v.stay[i].ranks);
    if (rc == 0)
        fputs("node\tnode_rank\tnnodes\tnproc_per_node\n", out);
    for (int i = 0; rc == 0 && i < v.count; i++)
        fprintf(out, "%s\t%d\t%d\t%d\n", s->topo->host[v.stay[i].host].name, i, v.count,
                v.stay[i].ranks);
    free(v.stay);
    return rc;
}

static int write_sbatch(FILE *out, const struct seating *s, struct err *err)
{
    struct stays v;
    int segment = seating_segment(s), most = 0, nodes;

    if (seating_names(s, err) < 0)
        return -1;
    seating_stays(&v, s);
    for (int i = 0; i < v.count; i++)
        most = v.stay[i].ranks > most ? v.stay[i].ranks : most;
    free(v.stay);
    free(seating_nodes(s, &nodes));
    char *list = seating_list(s);
    fprintf(out, "sbatch --nodes=%d --ntasks=%d", nodes, s->ranks);
    if (v.back < 0)
        fprintf(out, " --ntasks-per-node=%d", most);
    if (segment > 1)
        fprintf(out, " --segment=%d", segment);
    fprintf(out, " --nodelist=%s\n", list);
    free(list);
    return 0;
}

/* Label values: letters, digits, '-', '_' and '.', 63 at most, a letter or digit at both ends
 * (kubernetes.io, "Labels and Selectors"). */
static int check_label(const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (n < 1 || n > 63 || !isalnum((unsigned char)name[0]) || !isalnum((unsigned char)name[n - 1]))
        return err_data(err, "node name \"%.80s\" is no value of a Kubernetes label", name);
    return 0;
}

static int write_kubernetes(FILE *out, const struct seating *s, struct err *err)
{
    int count, rc = seating_names(s, err);
    char **name = seating_nodes(s, &count);

    for (int i = 0; rc == 0 && i < count; i++)
        rc = check_label(name[i], err);
    if (rc == 0)
        fputs("affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
              "      nodeSelectorTerms:\n      - matchExpressions:\n"
              "        - key: kubernetes.io/hostname\n          operator: In\n"
              "          values:\n",
              out);
    for (int i = 0; rc == 0 && i < count; i++)
        fprintf(out, "          - \"%s\"\n", name[i]);
    free(name);
    return rc;
}

static int write_nodes(FILE *out, const struct seating *s, struct err *err)
{
    if (seating_names(s, err) < 0)
        return -1;
    char *list = seating_list(s);
    fprintf(out, "%s\n", list);
    free(list);
    return 0;
}

const struct rank_file rank_files[] = {
    {"order", "node and device of each rank: predict, replay and probe --order FILE", write_order,
     false, "rank i runs on line i, node and device: railgauge predict ... --order {file}"},
    {"nodes", "the nodes in rank order, as a host list", write_nodes, true,
     "railgauge place --nodes-file {file}, or srun --nodelist=$(cat {file})"},
    {"rankfile", "Open MPI: a line for each rank", write_rankfile, false,
     "Open MPI 4: mpirun -n {ranks} --rankfile {file}; Open MPI 5: mpirun -n {ranks} --hostfile "
     "{file} --map-by rankfile:file={file}; a slot is a core, so processes are bound to one each"},
    {"hostfile", "Open MPI: nodes with slots=N", write_hostfile, false,
     "mpirun -n {ranks} --hostfile {file} --map-by slot"},
    {"mpich", "MPICH and Intel MPI: nodes as NODE:N", write_mpich, false,
     "mpiexec -n {ranks} -f {file}"},
    {"slurm-hostfile", "Slurm: a node for each task", write_slurm, false,
     "SLURM_HOSTFILE={file} srun -n {ranks} -m arbitrary, without -N; not with topology/block of "
     "26.05; inside a job of these nodes (sbatch): a tree of 24.11 starts none"},
    {"sbatch", "Slurm: sbatch with --segment and --nodelist", write_sbatch, true,
     "$(cat {file}) JOB asks for these nodes; the order of ranks is slurm-hostfile's"},
    {"torchrun", "PyTorch: --node-rank of each node, as a table", write_torchrun, false,
     "torchrun --node-rank $(awk -v n=$(hostname) '$1 == n { print $2 }' {file}), static "
     "rendezvous: the dynamic one sorts nodes by name"},
    {"kubernetes", "node affinity of a pod template", write_kubernetes, false,
     "the affinity of a pod template's spec: kubectl apply"},
};
const int rank_file_count = sizeof(rank_files) / sizeof(*rank_files);

const struct rank_file *rank_file_find(const char *name, struct err *err)
{
    char known[256];
    size_t n = 0;

    for (int i = 0; i < rank_file_count; i++) {
        if (!strcmp(rank_files[i].name, name))
            return &rank_files[i];
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
                              rank_files[i].name);
    }
    err_usage(err, "no form \"%s\"; known are %s", name, known);
    return NULL;
}

char *rank_file_use(const struct rank_file *f, const char *path, int ranks)
{
    char *text = mem_strdup(""), *number = mem_printf("%d", ranks);

    for (const char *at = f->use; *at;) {
        bool file = !strncmp(at, "{file}", 6), count = !strncmp(at, "{ranks}", 7);
        size_t plain = file || count ? 0 : 1 + strcspn(at + 1, "{");
        char *more = mem_printf("%s%.*s%s", text, (int)plain, at,
                                file    ? path
                                : count ? number
                                        : "");
        free(text);
        text = more;
        at += file ? 6 : count ? 7 : plain;
    }
    free(number);
    return text;
}

int rank_file_write(const struct rank_file *f, FILE *out, const struct seating *s, struct err *err)
{
    char *body, *use = rank_file_use(f, "FILE", s->ranks);
    size_t len;
    FILE *held = mem_stream(&body, &len); /* all of it or nothing */
    int rc = f->write(held, s, err);

    mem_stream_end(held);
    if (rc == 0 && !f->bare)
        fprintf(out, "# %s\n", use);
    if (rc == 0)
        fwrite(body, 1, len, out);
    free(body);
    free(use);
    return rc;
}
