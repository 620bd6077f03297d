/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mpi/mpi_used_impl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

enum { WORD = 64 };

struct used {
    const struct topo *t;
    json_t **part; /* JSON of each rank */
    int ranks;
    json_t *pml, *mtl, *provider, *within, *between, *interface, *ucx, *device; /* lists */
};

static bool has(const json_t *list, const char *name)
{
    size_t i;
    json_t *x;

    json_array_foreach(list, i, x) if (!strcmp(json_string_value(x), name)) return true;
    return false;
}

static void add(json_t *list, const char *name)
{
    if (name && *name && !has(list, name))
        json_array_append_new(list, json_string(name));
}

static void add_all(json_t *list, const json_t *of)
{
    size_t i;
    json_t *x;

    json_array_foreach(of, i, x) add(list, json_string_value(x));
}

static bool one_host(const struct topo *t, int a, int b)
{
    return a >= t->endpoints || b >= t->endpoints ||
           topo_at(t, a, LEVEL_HOST) == topo_at(t, b, LEVEL_HOST);
}

/* --- connections between two ranks --- */

struct end {
    char *key; /* "local>remote" */
    const char *interface;
    int rank;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct end *)a)->key, ((const struct end *)b)->key);
}

static void connect_ends(struct used *u, const struct end *e, int ends)
{
    for (int i = 0; i < ends; i++) {
        char *arrow = strchr(e[i].key, '>');
        char *mirror = mem_printf("%s>%.*s", arrow + 1, (int)(arrow - e[i].key), e[i].key);
        const struct end want = {.key = mirror},
                         *other = bsearch(&want, e, (size_t)ends, sizeof(*e), by_key);
        if (other && other->rank != e[i].rank) {
            bool near = one_host(u->t, e[i].rank, other->rank);
            add(near ? u->within : u->between, "tcp");
            if (!near)
                add(u->interface, e[i].interface);
        }
        free(mirror);
    }
}

static void look_at_sockets(struct used *u)
{
    struct end *list = NULL;
    int ends = 0;

    for (int r = 0; r < u->ranks; r++) {
        size_t i;
        json_t *x;
        json_array_foreach(json_object_get(u->part[r], "sockets"), i, x)
        {
            const char *a, *b, *interface;
            if (json_unpack(x, "[s, s, s]", &a, &b, &interface) < 0)
                continue;
            MEM_PUSH(list, ends) = (struct end){mem_printf("%s>%s", a, b), interface, r};
        }
    }
    if (ends)
        qsort(list, (size_t)ends, sizeof(*list), by_key);
    connect_ends(u, list, ends);
    for (int i = 0; i < ends; i++)
        free(list[i].key);
    free(list);
}

/* --- shared memory --- */

/* Shared memory is in use if a rank has mapped a segment that another rank has mapped, too. */
static void look_at_segments(struct used *u)
{
    static const struct {
        const char *file, *way;
    } kind[] = {{"vader_segment.", "vader"}, {"sm_segment.", "sm"}, {"mpich_sh", "shared memory"}};

    for (size_t k = 0; k < sizeof(kind) / sizeof(*kind); k++)
        for (int r = 0; r < u->ranks; r++) {
            int mapped = 0, peers = 0;
            size_t i;
            json_t *x;
            json_array_foreach(json_object_get(u->part[r], "segments"), i, x)
            {
                if (strncmp(json_string_value(x), kind[k].file, strlen(kind[k].file)) != 0)
                    continue;
                mapped++;
                for (int p = 0; p < u->ranks; p++)
                    peers += p != r &&
                             has(json_object_get(u->part[p], "segments"), json_string_value(x));
            }
            if (mapped && peers)
                add(u->within, kind[k].way);
        }
}

/* --- UCX --- */

static bool is_memory(const char *way)
{
    static const char *const name[] = {"self/", "posix/", "sysv/", "xpmem/", "cma/", "knem/"};

    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        if (!strncmp(way, name[i], strlen(name[i])))
            return true;
    return false;
}

/* Collect "sysv/memory" within and "rc_mlx5/mlx5_0:1" between hosts; tcp counts as within if there
 * is nothing else. */
static void look_at_ucx(struct used *u)
{
    size_t i;
    json_t *x;

    for (int r = 0; r < u->ranks; r++)
        add_all(u->ucx, json_object_get(u->part[r], "ucx"));
    json_array_foreach(u->ucx, i, x)
    {
        char name[WORD];
        const char *text = json_string_value(x), *device = strchr(text, '/') + 1;
        snprintf(name, sizeof(name), "%.*s", (int)(device - text - 1), text);
        if (!strcmp(name, "self"))
            continue;
        add(is_memory(text) || u->t->hosts < 2 ? u->within : u->between, name);
        if (!is_memory(text) && u->t->hosts > 1)
            add(u->interface, device);
    }
}

/* --- compare settings with use --- */

/* UCX's names for groups of transports (UCX's frequently asked questions, UCX_TLS). */
static bool is_alias(const char *word, const char *way)
{
    static const struct {
        const char *word, *ways;
    } alias[] = {{"sm", "posix sysv xpmem cma knem vader"}, /* name of vader in Open MPI 5 */
                 {"vader", "sm"},
                 {"shm", "posix sysv xpmem cma knem"},
                 {"mm", "posix sysv xpmem"},
                 {"ib", "rc_verbs rc_mlx5 ud_verbs ud_mlx5 dc_mlx5"},
                 {"rc", "rc_verbs rc_mlx5 ud_verbs ud_mlx5"},
                 {"rc_v", "rc_verbs ud_verbs"},
                 {"rc_x", "rc_mlx5 ud_mlx5"},
                 {"ud", "ud_verbs ud_mlx5"},
                 {"ud_v", "ud_verbs"},
                 {"ud_x", "ud_mlx5"},
                 {"dc", "dc_mlx5 ud_mlx5"},
                 {"dc_x", "dc_mlx5 ud_mlx5"}};
    size_t len = strlen(way);

    for (size_t i = 0; i < sizeof(alias) / sizeof(*alias); i++)
        for (const char *at = alias[i].ways; !strcmp(alias[i].word, word) && at && *at;
             at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
            if (!strncmp(at, way, len) && (at[len] == ' ' || !at[len]))
                return true;
    return !strcmp(word, "all");
}

/* True if `way` is in a list of names, or not in a list that begins with ^.  "mlx5_0" includes any
 * port of this UCX device; "tcp" includes a libfabric provider with utilities, "tcp;ofi_rxm". */
static bool allows(const char *asked, const char *separators, const char *way)
{
    const bool all_but = *asked == '^';
    char *list = mem_strdup(asked + all_but), *save, *word;
    bool in = false;

    for (word = strtok_r(list, separators, &save); word; word = strtok_r(NULL, separators, &save)) {
        size_t len = strlen(word);
        in = in || !strcmp(word, way) || is_alias(word, way) ||
             (!strncmp(word, way, len) && (way[len] == ':' || way[len] == ';'));
    }
    free(list);
    return in != all_but;
}

/* Compare each variable with the facts that it sets.  pml: the variable applies to this pml only;
 * NULL: to any. */
static int judge(const struct used *u, struct err *err)
{
    const struct {
        const char *variable, *pml, *separators;
        const json_t *used;
    } row[] = {{"OMPI_MCA_pml", NULL, ",", u->pml},
               {"OMPI_MCA_mtl", "cm", ",", u->mtl},
               {"OMPI_MCA_btl", "ob1", ",", u->within},
               {"OMPI_MCA_btl", "ob1", ",", u->between},
               {"OMPI_MCA_btl_tcp_if_include", "ob1", ",", u->interface},
               {"UCX_TLS", "ucx", ",", u->within},
               {"UCX_TLS", "ucx", ",", u->between},
               {"UCX_NET_DEVICES", "ucx", ",", u->interface},
               {"FI_PROVIDER", "cm", ",", u->provider}};

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const char *asked = getenv(row[i].variable);
        size_t k;
        json_t *x;
        if (!asked || !*asked || strchr(asked, '/') || (row[i].pml && !has(u->pml, row[i].pml)))
            continue; /* 10.0.0.0/8: networks are not compared */
        json_array_foreach(
            row[i].used, k,
            x) if (!allows(asked, row[i].separators,
                           json_string_value(x))) return err_config(err, "asked %s=%s, used %s",
                                                                    row[i].variable, asked,
                                                                    json_string_value(x));
    }
    return 0;
}

/* --- in words --- */

/* "vader and tcp".  The caller frees. */
static char *names(const json_t *list)
{
    char *text = mem_strdup("");
    size_t i;
    json_t *x;

    json_array_foreach(list, i, x) text =
        mem_append(text, "%s%s", i ? ", " : "", json_string_value(x));
    return text;
}

static char *also(char *text, const char *before, const json_t *list, const char *after)
{
    char *all = names(list);

    if (*all)
        text = mem_append(text, "%s%s%s", before, all, after);
    free(all);
    return text;
}

/* Shorten "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.2.1".  The caller frees. */
static char *library_text(void)
{
    json_t *all = json_provenance();
    const char *full = json_string_value(json_object_get(all, "mpi"));
    char name[WORD] = "MPI", version[WORD] = "";

    if (full && sscanf(full, "Open MPI v%63[^, ]", version) == 1)
        snprintf(name, sizeof(name), "Open MPI");
    else if (full && sscanf(full, "MPICH Version:%*[ \t]%63[^, \t]", version) == 1)
        snprintf(name, sizeof(name), "MPICH");
    else if (full)
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(full, ",\n\t"), full);
    json_decref(all);
    return mem_printf("%s%s%s", name, *version ? " " : "", version);
}

/* "Open MPI 4.1.4, pml ob1, btl vader within hosts, tcp (eth0) between" */
static char *words(const struct used *u)
{
    char *text = library_text();

    text = also(text, ", pml ", u->pml, "");
    text = also(text, ", mtl ", u->mtl, "");
    text = also(text, ", libfabric's ", u->provider, "");
    text = also(text, has(u->pml, "ob1") ? ", btl " : ", ", u->within, " within hosts");
    text = also(text, ", ", u->between, "");
    text = also(text, " (", u->interface, ")");
    if (json_array_size(u->between))
        text = mem_append(text, " between");
    return also(text, ", open: ", u->device, "");
}

static void keep(struct topo *t, const struct used *u)
{
    char *text = words(u);

    json_decref(t->mpi);
    t->mpi = json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "text", text, "pml", u->pml,
                       "mtl", u->mtl, "provider", u->provider, "within", u->within, "between",
                       u->between, "interfaces", u->interface, "ucx", u->ucx, "devices", u->device);
    free(text);
}

static int read_parts(struct used *u, char *const *part, struct err *err)
{
    for (int r = 0; r < u->ranks; r++) {
        json_error_t e;
        u->part[r] = json_loads(part[r], 0, &e);
        if (!u->part[r])
            return err_set(err, "what rank %d read of MPI: %s", r, e.text);
        add(u->pml, json_string_value(json_object_get(u->part[r], "pml")));
        add(u->mtl, json_string_value(json_object_get(u->part[r], "mtl")));
        /* Components that are not selected open a provider as well. */
        if (!has(u->pml, "ob1") && !has(u->pml, "ucx"))
            add(u->provider, json_string_value(json_object_get(u->part[r], "provider")));
        add_all(u->device, json_object_get(u->part[r], "devices"));
    }
    return 0;
}

int mpi_used(struct topo *t, char *const *part, int ranks, struct err *err)
{
    struct used u = {.t = t, .ranks = ranks};
    json_t **list[] = {&u.pml,     &u.mtl,       &u.provider, &u.within,
                       &u.between, &u.interface, &u.ucx,      &u.device};

    u.part = mem_calloc((size_t)ranks, sizeof(*u.part));
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        *list[i] = json_array();
    int rc = read_parts(&u, part, err);
    if (rc == 0) {
        look_at_segments(&u);
        look_at_ucx(&u);
        look_at_sockets(&u);
        bool traffic = json_array_size(u.within) + json_array_size(u.between) > 0;
        if (traffic || !t->mpi)
            keep(t, &u);
        rc = judge(&u, err);
    }
    for (int r = 0; r < ranks; r++)
        json_decref(u.part[r]);
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        json_decref(*list[i]);
    free(u.part);
    return rc;
}
