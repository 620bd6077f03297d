/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/rank_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"

/* --- ranks of each node --- */

struct host_runs {
    const struct rank_map *map;
    struct host_run {
        const char *node;
        int ranks; /* consecutive ranks */
    } * run;
    int count;
    int back; /* first rank that returns to a node after ranks on others; -1: none */
};

static int rank_host(const struct rank_map *s, int rank)
{
    return s->topo->endpoint[s->order[rank]].place.at[LEVEL_HOST];
}

static const char *node_of(const struct rank_map *s, int rank)
{
    return s->topo->host[rank_host(s, rank)].name;
}

static void runs_of(struct host_runs *v, const struct rank_map *s)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));

    *v = (struct host_runs){.map = s, .back = -1};
    for (int r = 0; r < s->ranks; r++) {
        int host = rank_host(s, r);
        if (r && host == rank_host(s, r - 1)) {
            v->run[v->count - 1].ranks++;
            continue;
        }
        if (seen[host] && v->back < 0)
            v->back = r;
        seen[host] = true;
        MEM_PUSH(v->run, v->count) = (struct host_run){node_of(s, r), 1};
    }
    free(seen);
}

/* Each node once, in order of its first rank. */
static char **nodes_of(const struct rank_map *s, int *count)
{
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool));
    char **name = NULL;

    *count = 0;
    for (int r = 0; r < s->ranks; r++) {
        int host = rank_host(s, r);
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

/* Greatest common divisor of the numbers of the job's nodes in the groups of a level; 0: not
 * known. */
static int common_at(const struct rank_map *s, enum level level)
{
    int groups = s->topo->group[level].count, common = 0;
    int *nodes = mem_calloc((size_t)groups + 1, sizeof(int));
    bool *seen = mem_calloc((size_t)s->topo->hosts + 1, sizeof(bool)), known = true;

    for (int r = 0; r < s->ranks; r++) {
        int group = s->topo->endpoint[s->order[r]].place.at[level], host = rank_host(s, r);
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

/* --- limits of the formats --- */

/* Check that node names hold letters, digits, '-', '.' and '_' only; other characters have a
 * meaning in some of these formats. */
static int check_names(const struct rank_map *s, struct err *err)
{
    for (int r = 0; r < s->ranks; r++) {
        const char *name = node_of(s, r), *c = name + strspn(name, HOST_PLAIN);
        if (*c)
            return err_data(err, "node name \"%.80s\": '%c' cannot stand in a rank file", name,
                            isprint((unsigned char)*c) ? *c : '?');
    }
    return 0;
}

/* Check label values: letters, digits, '-', '_' and '.', at most 63, a letter or digit at both ends
 * (kubernetes.io, "Labels and Selectors"). */
static int check_labels(const struct rank_map *s, struct err *err)
{
    for (int r = 0; r < s->ranks; r++) {
        const char *name = node_of(s, r);
        size_t n = strlen(name);
        if (n < 1 || n > 63 || !isalnum((unsigned char)name[0]) ||
            !isalnum((unsigned char)name[n - 1]))
            return err_data(err, "node name \"%.80s\" is no value of a Kubernetes label", name);
    }
    return 0;
}

/* Check that the k-th rank of every node runs on its k-th device. */
static int check_in_turn(const struct rank_map *s, const char *what, struct err *err)
{
    int *next = mem_calloc((size_t)s->topo->hosts + 1, sizeof(int)), rc = 0;

    for (int r = 0; rc == 0 && r < s->ranks; r++) {
        int local = s->topo->endpoint[s->order[r]].local, want = next[rank_host(s, r)]++;
        if (local != want)
            rc = err_data(err,
                          "rank %d is on device %d of node \"%s\", and %s gives it device %d: "
                          "ranks of a node take its devices in turn",
                          r, local, node_of(s, r), what, want);
    }
    free(next);
    return rc;
}

/* Check that each node is filled before the next. */
static int check_whole(const struct host_runs *v, const char *what, struct err *err)
{
    if (v->back < 0)
        return 0;
    return err_data(err,
                    "rank %d comes back to node \"%s\", and %s fills a node before the next: use "
                    "rankfile or slurm-hostfile",
                    v->back, node_of(v->map, v->back), what);
}

static int check_even(const struct host_runs *v, struct err *err)
{
    const struct host_run *first = v->run;

    for (int i = 1; i < v->count; i++)
        if (v->run[i].ranks != first->ranks)
            return err_data(err,
                            "node \"%s\" has %d ranks and \"%s\" %d: --nproc-per-node is one "
                            "number",
                            first->node, first->ranks, v->run[i].node, v->run[i].ranks);
    return 0;
}

/* --- formats --- */

static void write_order(FILE *out, const struct host_runs *v)
{
    for (int r = 0; r < v->map->ranks; r++)
        fprintf(out, "%s %d\n", node_of(v->map, r), v->map->topo->endpoint[v->map->order[r]].local);
}

/* slot=N is a core, slot=N:* a socket with all of its cores (mpirun(1) of 4.1, "Rankfiles"). */
static void write_rankfile(FILE *out, const struct host_runs *v)
{
    const struct topo *t = v->map->topo;

    for (int r = 0; r < v->map->ranks; r++) {
        const struct endpoint *e = &t->endpoint[v->map->order[r]];
        bool sockets = e->kind == ENDPOINT_CPU && t->host[e->place.at[LEVEL_HOST]].sockets > 1;
        fprintf(out, "rank %d=%s slot=%d%s\n", r, node_of(v->map, r), e->local,
                sockets ? ":*" : "");
    }
}

static void write_hostfile(FILE *out, const struct host_runs *v)
{
    for (int i = 0; i < v->count; i++)
        fprintf(out, "%s slots=%d\n", v->run[i].node, v->run[i].ranks);
}

static void write_mpich(FILE *out, const struct host_runs *v)
{
    for (int i = 0; i < v->count; i++)
        fprintf(out, "%s:%d\n", v->run[i].node, v->run[i].ranks);
}

static void write_slurm(FILE *out, const struct host_runs *v)
{
    for (int r = 0; r < v->map->ranks; r++)
        fprintf(out, "%s\n", node_of(v->map, r));
}

static void write_torchrun(FILE *out, const struct host_runs *v)
{
    fputs("node\tnode_rank\tnnodes\tnproc_per_node\n", out);
    for (int i = 0; i < v->count; i++)
        fprintf(out, "%s\t%d\t%d\t%d\n", v->run[i].node, i, v->count, v->run[i].ranks);
}

static void write_sbatch(FILE *out, const struct host_runs *v)
{
    int segment = rank_map_segment(v->map), most = 0, nodes;

    for (int i = 0; i < v->count; i++)
        most = v->run[i].ranks > most ? v->run[i].ranks : most;
    free(nodes_of(v->map, &nodes));
    char *list = rank_map_list(v->map);
    fprintf(out, "sbatch --nodes=%d --ntasks=%d", nodes, v->map->ranks);
    if (v->back < 0)
        fprintf(out, " --ntasks-per-node=%d", most);
    if (segment > 1)
        fprintf(out, " --segment=%d", segment);
    fprintf(out, " --nodelist=%s\n", list);
    free(list);
}

static void write_kubernetes(FILE *out, const struct host_runs *v)
{
    int count;
    char **name = nodes_of(v->map, &count);

    fputs("affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
          "      nodeSelectorTerms:\n      - matchExpressions:\n"
          "        - key: kubernetes.io/hostname\n          operator: In\n"
          "          values:\n",
          out);
    for (int i = 0; i < count; i++)
        fprintf(out, "          - \"%s\"\n", name[i]);
    free(name);
}

static void write_nodes(FILE *out, const struct host_runs *v)
{
    char *list = rank_map_list(v->map);

    fprintf(out, "%s\n", list);
    free(list);
}

static const struct rank_file rank_files[] = {
    {"order", "node and device of each rank: predict, replay and probe --order FILE", write_order,
     .use = "rank i runs on line i, node and device: railgauge predict ... --order {file}"},
    {"nodes", "the nodes in rank order, as a host list", write_nodes, .bare = true,
     .use = "railgauge place --nodes-file {file}, or srun --nodelist=$(cat {file})"},
    {"rankfile", "Open MPI: a line for each rank", write_rankfile,
     .use = "Open MPI 4: mpirun -n {ranks} --rankfile {file}; Open MPI 5: mpirun -n {ranks} "
            "--hostfile {file} --map-by rankfile:file={file}; a slot is a core, so processes are "
            "bound to one each"},
    {"hostfile", "Open MPI: nodes with slots=N", write_hostfile, .in_turn = "a hostfile",
     .whole = true, .use = "mpirun -n {ranks} --hostfile {file} --map-by slot"},
    {"mpich", "MPICH and Intel MPI: nodes as NODE:N", write_mpich, .in_turn = "a hostfile",
     .whole = true, .use = "mpiexec -n {ranks} -f {file}"},
    {"slurm-hostfile", "Slurm: a node for each task", write_slurm, .in_turn = "SLURM_HOSTFILE",
     .use = "SLURM_HOSTFILE={file} srun -n {ranks} -m arbitrary, without -N; not with "
            "topology/block of 26.05; inside a job of these nodes (sbatch): a tree of 24.11 starts "
            "none"},
    {"sbatch", "Slurm: sbatch with --segment and --nodelist", write_sbatch, .bare = true,
     .use = "$(cat {file}) JOB asks for these nodes; the order of ranks is slurm-hostfile's"},
    {"torchrun", "PyTorch: --node-rank of each node, as a table", write_torchrun,
     .in_turn = "torchrun", .whole = true, .even = true,
     .use = "torchrun --node-rank $(awk -v n=$(hostname) '$1 == n { print $2 }' {file}), static "
            "rendezvous: the dynamic one sorts nodes by name"},
    {"kubernetes", "node affinity of a pod template", write_kubernetes, .labels = true,
     .use = "the affinity of a pod template's spec: kubectl apply"},
};
enum { RANK_FILES = sizeof(rank_files) / sizeof(*rank_files) };

void rank_file_each(name_taker *take, void *to)
{
    for (int i = 0; i < RANK_FILES; i++)
        take(to, rank_files[i].name);
}

const struct rank_file *rank_file_find(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char known[256];
    size_t n = 0;

    for (int i = 0; i < RANK_FILES; i++) {
        if (!strcmp(rank_files[i].name, name))
            return &rank_files[i];
        near_try(&near, rank_files[i].name);
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
                              rank_files[i].name);
    }
    err_usage(err, "no form \"%s\"%s; known are %s", name, near_text(&near), known);
    return NULL;
}

char *rank_file_use(const struct rank_file *f, const char *path, int ranks)
{
    char *text = mem_strdup("");

    for (const char *at = f->use; *at;) {
        bool file = !strncmp(at, "{file}", 6), count = !strncmp(at, "{ranks}", 7);
        size_t plain = file || count ? 0 : 1 + strcspn(at + 1, "{");
        if (count)
            text = mem_append(text, "%d", ranks);
        else
            text =
                mem_append(text, "%.*s", file ? (int)strlen(path) : (int)plain, file ? path : at);
        at += file ? 6 : count ? 7 : plain;
    }
    return text;
}

static int write_checked(const struct rank_file *f, FILE *out, const struct rank_map *s,
                         struct err *err)
{
    struct host_runs v;

    if (check_names(s, err) < 0 || (f->labels && check_labels(s, err) < 0) ||
        (f->in_turn && check_in_turn(s, f->in_turn, err) < 0))
        return -1;
    runs_of(&v, s);
    int rc = f->whole ? check_whole(&v, f->in_turn, err) : 0;
    if (rc == 0 && f->even)
        rc = check_even(&v, err);
    if (rc == 0)
        f->write(out, &v);
    free(v.run);
    return rc;
}

int rank_file_write(const struct rank_file *f, FILE *out, const struct rank_map *s, struct err *err)
{
    char *body, *use = rank_file_use(f, "FILE", s->ranks);
    size_t len;
    FILE *held = mem_stream(&body, &len); /* write all or nothing */
    int rc = write_checked(f, held, s, err);

    mem_stream_end(held);
    if (rc == 0 && !f->bare)
        fprintf(out, "# %s\n", use);
    if (rc == 0)
        fwrite(body, 1, len, out);
    free(body);
    free(use);
    return rc;
}
