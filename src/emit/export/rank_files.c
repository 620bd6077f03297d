/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/rank_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"

/* --- who runs where --- */

/* Ranks of one node, one after another. */
struct host_run {
    int host, first, ranks;
};

struct host_runs {
    struct host_run *run; /* the caller frees */
    int count;
    int back; /* the first rank that comes back to a node that others followed; -1: none */
};

static int host_of(const struct rank_map *s, int rank)
{
    return s->topo->endpoint[s->order[rank]].place.at[LEVEL_HOST];
}

static void runs_of(struct host_runs *v, const struct rank_map *s)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));

    *v = (struct host_runs){.back = -1};
    for (int r = 0; r < s->ranks; r++) {
        int host = host_of(s, r);
        if (v->count && v->run[v->count - 1].host == host) {
            v->run[v->count - 1].ranks++;
            continue;
        }
        if (seen[host] && v->back < 0)
            v->back = r;
        seen[host] = true;
        MEM_PUSH(v->run, v->count) = (struct host_run){host, r, 1};
    }
    free(seen);
}

/* Node names hold letters, digits, '-', '.' and '_' only: everything else means something to some
 * of these formats. */
static int check_names(const struct rank_map *s, struct err *err)
{
    for (int r = 0; r < s->ranks; r++) {
        const char *name = s->topo->host[host_of(s, r)].name;
        for (const char *c = name; *c; c++)
            if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
                return err_data(err, "node name \"%.80s\": '%c' cannot stand in a rank file", name,
                                isprint((unsigned char)*c) ? *c : '?');
    }
    return 0;
}

/* Does the k-th rank of every node run on its k-th device? */
static int check_local(const struct rank_map *s, const char *what, struct err *err)
{
    int *next = mem_calloc((size_t)s->topo->hosts + 1, sizeof(int)), rc = 0;

    for (int r = 0; rc == 0 && r < s->ranks; r++) {
        const struct endpoint *e = &s->topo->endpoint[s->order[r]];
        int host = host_of(s, r), want = next[host]++;
        if (e->local != want)
            rc = err_data(err,
                          "rank %d is on device %d of node \"%s\", and %s gives it device %d: "
                          "ranks of a node take its devices in turn",
                          r, e->local, s->topo->host[host].name, what, want);
    }
    free(next);
    return rc;
}

/* The nodes, each once and filled before the next. */
static int runs_whole(struct host_runs *v, const struct rank_map *s, const char *what,
                      struct err *err)
{
    if (check_names(s, err) < 0 || check_local(s, what, err) < 0)
        return -1;
    runs_of(v, s);
    if (v->back < 0)
        return 0;
    err_data(err,
             "rank %d comes back to node \"%s\", and %s fills a node before the next: use rankfile "
             "or slurm-hostfile",
             v->back, s->topo->host[host_of(s, v->back)].name, what);
    free(v->run);
    return -1;
}

/* Each node once, in the order in which ranks meet it. */
static char **nodes_of(const struct rank_map *s, int *count)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));
    char **name = NULL;

    *count = 0;
    for (int r = 0; r < s->ranks; r++) {
        int host = host_of(s, r);
        if (!seen[host])
            MEM_PUSH(name, *count) = s->topo->host[host].name;
        seen[host] = true;
    }
    free(seen);
    return name;
}

char *rank_map_list(const struct rank_map *s)
{
    int count;
    char **name = nodes_of(s, &count), *text = hostlist_fold(name, count);

    free(name);
    return text;
}

static int gcd(int a, int b)
{
    return b ? gcd(b, a % b) : a;
}

/* Of each group of a level, the nodes of the job; their greatest common divisor; 0: not known. */
static int common_at(const struct rank_map *s, enum level level)
{
    int groups = s->topo->group[level].count, common = 0;
    int *nodes = mem_calloc((size_t)groups + 1, sizeof(int));
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool)), known = true;

    for (int r = 0; r < s->ranks; r++) {
        int group = s->topo->endpoint[s->order[r]].place.at[level], host = host_of(s, r);
        known &= group >= 0;
        if (known && !seen[host])
            nodes[group]++;
        seen[host] = true;
    }
    for (int g = 0; known && g < groups; g++)
        common = gcd(common, nodes[g]);
    free(nodes);
    free(seen);
    return common;
}

int rank_map_segment(const struct rank_map *s)
{
    int common = common_at(s, LEVEL_DOMAIN);

    if (common <= 1)
        common = common_at(s, LEVEL_RACK);
    return common > 1 ? common : 1;
}

/* --- the forms --- */

static int write_order(FILE *out, const struct rank_map *s, struct err *err)
{
    if (check_names(s, err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++)
        fprintf(out, "%s %d\n", s->topo->host[host_of(s, r)].name,
                s->topo->endpoint[s->order[r]].local);
    return 0;
}

/* slot=N is a core, slot=N:* a socket with all of its cores (mpirun(1) of 4.1, "Rankfiles"). */
static int write_rankfile(FILE *out, const struct rank_map *s, struct err *err)
{
    if (check_names(s, err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++) {
        const struct endpoint *e = &s->topo->endpoint[s->order[r]];
        bool sockets = e->kind == ENDPOINT_CPU && s->topo->host[host_of(s, r)].sockets > 1;
        fprintf(out, "rank %d=%s slot=%d%s\n", r, s->topo->host[host_of(s, r)].name, e->local,
                sockets ? ":*" : "");
    }
    return 0;
}

static int each_node(FILE *out, const struct rank_map *s, const char *what, const char *form,
                     struct err *err)
{
    struct host_runs v;

    if (runs_whole(&v, s, what, err) < 0)
        return -1;
    for (int i = 0; i < v.count; i++)
        fprintf(out, "%s%s%d\n", s->topo->host[v.run[i].host].name, form, v.run[i].ranks);
    free(v.run);
    return 0;
}

static int write_hostfile(FILE *out, const struct rank_map *s, struct err *err)
{
    return each_node(out, s, "a hostfile", " slots=", err);
}

static int write_mpich(FILE *out, const struct rank_map *s, struct err *err)
{
    return each_node(out, s, "a hostfile", ":", err);
}

static int write_slurm(FILE *out, const struct rank_map *s, struct err *err)
{
    if (check_names(s, err) < 0 || check_local(s, "SLURM_HOSTFILE", err) < 0)
        return -1;
    for (int r = 0; r < s->ranks; r++)
        fprintf(out, "%s\n", s->topo->host[host_of(s, r)].name);
    return 0;
}

static int write_torchrun(FILE *out, const struct rank_map *s, struct err *err)
{
    struct host_runs v;
    int rc = runs_whole(&v, s, "torchrun", err);

    if (rc < 0)
        return -1;
    for (int i = 1; rc == 0 && i < v.count; i++)
        if (v.run[i].ranks != v.run[0].ranks)
            rc = err_data(err,
                          "node \"%s\" has %d ranks and \"%s\" %d: --nproc-per-node is one "
                          "number",
                          s->topo->host[v.run[0].host].name, v.run[0].ranks,
                          s->topo->host[v.run[i].host].name, v.run[i].ranks);
    if (rc == 0)
        fputs("node\tnode_rank\tnnodes\tnproc_per_node\n", out);
    for (int i = 0; rc == 0 && i < v.count; i++)
        fprintf(out, "%s\t%d\t%d\t%d\n", s->topo->host[v.run[i].host].name, i, v.count,
                v.run[i].ranks);
    free(v.run);
    return rc;
}

static int write_sbatch(FILE *out, const struct rank_map *s, struct err *err)
{
    struct host_runs v;
    int segment = rank_map_segment(s), most = 0, nodes;

    if (check_names(s, err) < 0)
        return -1;
    runs_of(&v, s);
    for (int i = 0; i < v.count; i++)
        most = v.run[i].ranks > most ? v.run[i].ranks : most;
    free(v.run);
    free(nodes_of(s, &nodes));
    char *list = rank_map_list(s);
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

static int write_kubernetes(FILE *out, const struct rank_map *s, struct err *err)
{
    int count, rc = check_names(s, err);
    char **name = nodes_of(s, &count);

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

static int write_nodes(FILE *out, const struct rank_map *s, struct err *err)
{
    if (check_names(s, err) < 0)
        return -1;
    char *list = rank_map_list(s);
    fprintf(out, "%s\n", list);
    free(list);
    return 0;
}

static const struct rank_file rank_files[] = {
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
enum { RANK_FILES = sizeof(rank_files) / sizeof(*rank_files) };

const struct rank_file *rank_file_find(const char *name, struct err *err)
{
    char known[256];
    size_t n = 0;

    for (int i = 0; i < RANK_FILES; i++) {
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

int rank_file_write(const struct rank_file *f, FILE *out, const struct rank_map *s, struct err *err)
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
