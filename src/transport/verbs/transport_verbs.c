/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_verbs.c - RDMA verbs between the ranks' NICs; the operations are described in
 * verbs_ops_impl.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/verbs_api.h"
#include "measure/device/gpu_binding.h"
#include "measure/probe_args.h"
#include "measure/taint.h"
#include "measure/transports/nccl_opts.h"
#include "measure/transports/transport.h"
#include "measure/verify.h"
#include "topo/nic.h"
#include "transport/mpi/world_mpi.h"
#include "transport/verbs/verbs_ops_impl.h"
#include "watch/watch.h"

extern const struct transport_calls transport_verbs;

/* One port and one piece of memory per process, for all groups. */
static struct verbs_port port;
static struct verbs_memory memory;
static double connecting; /* s, total */
static int connections;   /* number of groups opened */

struct verbs_ctx {
    struct verbs_conn conn;
    unsigned checks;
};

/* --- run --- */

static int time_job(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec,
                    struct err *err)
{
    int who = verbs_job_clock(c, j->op);

    verbs_job_ready(c, j, n);
    if (verbs_conn_together(c, err) < 0) /* start all at the same time */
        return -1;
    watch_enter("%s of %zu bytes", op_name(j->op), j->bytes);
    verbs_job_time(c, j, n, sec);
    watch_leave();
    if (verbs_conn_together(c, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        sec[i] = sec[i] > 0 ? sec[i] : 1e-9;
    return who < 0 ? 0 : world_mpi_follow(c->comm, who, sec, n, err);
}

static int refuse(enum op op, struct err *err)
{
    const struct transport *t = transport_find("verbs");

    return t->ops >> op & 1
               ? 0
               : err_config(err, "transport verbs has no %s: %s", op_name(op), t->only);
}

static int verbs_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct verbs_ctx *x = ctx;
    struct verbs_job j;

    if (refuse(op, err) < 0 || verbs_conn_mend(&x->conn, err) < 0 ||
        verbs_job_make(&j, &x->conn, op, bytes, err) < 0)
        return -1;
    int rc = time_job(&x->conn, &j, n, sec, err);
    verbs_job_free(&j);
    return rc;
}

/* --- check --- */

static size_t extent(const struct verify_piece *p, int n)
{
    size_t end = 0;

    for (int i = 0; i < n; i++)
        end = p[i].at + p[i].len > end ? p[i].at + p[i].len : end;
    return end;
}

/* Half of the memory; a copy if it is GPU memory. */
static unsigned char *view(size_t half, size_t bytes)
{
    return memory.gpu ? mem_calloc(bytes ? bytes : 1, 1) : memory.at + half;
}

static void end_view(unsigned char *v)
{
    if (memory.gpu)
        free(v);
}

static int fill(const struct verify_moved *m, unsigned seed, struct err *err)
{
    int n, rc = 0;
    struct verify_piece *p = verify_sent(m, &n);
    size_t bytes = extent(p, n);
    unsigned char *v = view(0, bytes);

    for (int i = 0; i < n; i++)
        verify_fill_piece(v + p[i].at, &p[i], seed);
    if (memory.gpu && bytes)
        rc = verbs_memory_put(&memory, 0, v, bytes, err);
    end_view(v);
    free(p);
    return rc;
}

/* Overwrite the receive half, so that old correct data is not accepted.  A rank's own block is
 * filled in, because no NIC moves it. */
static int clear(const struct verify_moved *m, unsigned seed, struct err *err)
{
    int n, rc = 0, me = m->member[m->self];
    size_t half = verbs_memory_recv(&memory);
    struct verify_piece *p = verify_received(m, &n);
    size_t bytes = extent(p, n);
    unsigned char *v = view(half, bytes);

    memset(v, 0xee, bytes);
    for (int i = 0; i < n; i++)
        if (p[i].rank == me)
            verify_fill_piece(v + p[i].at, &p[i], seed);
    if (memory.gpu && bytes)
        rc = verbs_memory_put(&memory, half, v, bytes, err);
    end_view(v);
    free(p);
    return rc;
}

static int find(const struct verify_moved *m, const struct verify *v, struct err *err)
{
    int n, rc = 0;
    size_t half = verbs_memory_recv(&memory);
    struct verify_piece *p = verify_received(m, &n);
    size_t bytes = extent(p, n);
    unsigned char *got = view(half, bytes);

    if (memory.gpu && bytes)
        rc = verbs_memory_get(&memory, half, got, bytes, err);
    if (rc == 0 && bytes)
        rc = verify_flip(v, got, bytes, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = verify_find_piece(v, got, &p[i], err);
    end_view(got);
    free(p);
    return rc;
}

static int check_job(struct verbs_ctx *x, const struct verbs_job *j, struct err *err)
{
    struct verbs_conn *c = &x->conn;
    char host[64];
    struct verify v = {j->op, j->bytes, c->member[c->self], host_self(host, sizeof(host)),
                       ++x->checks};
    struct verify_moved m = verify_moves(j->op, c->member, c->size, c->self, j->block);

    if (fill(&m, v.seed, &c->err) < 0 || clear(&m, v.seed, &c->err) < 0)
        verbs_conn_fail(c, 0);
    else
        verbs_job_ready_once(c, j);
    if (verbs_conn_together(c, err) < 0)
        return -1;
    watch_enter("check of %s of %zu bytes", op_name(j->op), j->bytes);
    verbs_job_once(c, j);
    watch_leave();
    return verbs_conn_together(c, err) < 0 ? -1 : find(&m, &v, err);
}

static int verbs_check(void *ctx, enum op op, size_t bytes, struct err *err)
{
    struct verbs_ctx *x = ctx;
    struct verbs_job j;

    if (refuse(op, err) < 0 || verbs_conn_mend(&x->conn, err) < 0 ||
        verbs_job_make(&j, &x->conn, op, bytes, err) < 0)
        return -1;
    int rc = check_job(x, &j, err);
    verbs_job_free(&j);
    return rc;
}

/* --- open and close --- */

static void verbs_close(void *ctx)
{
    struct verbs_ctx *x = ctx;

    if (!x)
        return;
    verbs_conn_close(&x->conn);
    free(x);
}

static int neighbours(void)
{
    int n = 0;

    for (int r = 0; r < port.size; r++)
        n += !strcmp(port.all[r].address.host, port.all[port.rank].address.host);
    return n;
}

static int verbs_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    struct verbs_ctx *x = mem_calloc(1, sizeof(*x));
    int rc =
        verbs_memory_take(&memory, &port, verbs_opts_asked.memory, max_bytes, neighbours(), err);
    double from = log_now();

    x->conn = (struct verbs_conn){.port = &port, .how = &verbs_opts_asked, .memory = &memory};
    rc = world_mpi_together(g->comm, rc, err);
    if (rc == 0)
        rc = verbs_conn_open(&x->conn, g, err);
    connecting += log_now() - from;
    connections++;
    if (rc < 0)
        verbs_close(x);
    else
        *ctx = x;
    return rc;
}

/* --- a campaign --- */

enum { NIC_NAME = sizeof(((struct nic *)0)->name) };

/* Name of a port in the topology: "mlx5_0" for mlx5_0:1, "mlx5_0:2". */
static void nic_name(char name[NIC_NAME], const char *port_name)
{
    snprintf(name, NIC_NAME, "%s", port_name);
    size_t n = strlen(name);

    if (n > 2 && !strcmp(name + n - 2, ":1"))
        name[n - 2] = '\0';
}

static void nearest_names(char *all, const struct topo *t)
{
    for (int e = 0; e < t->endpoints; e++) {
        const struct nic *n = t->endpoint[e].nic >= 0 ? &t->nic[t->endpoint[e].nic] : NULL;
        if (n && n->rdma)
            memcpy(all + (size_t)e * NIC_NAME, n->name, NIC_NAME);
    }
}

/* Collective.  Uses the topology that the campaign will have. */
static int find_nearest(char nearest[NIC_NAME], const struct probe_args *a, struct world *w,
                        struct err *err)
{
    size_t len = (size_t)w->size * NIC_NAME;
    void *data = NULL;
    struct topo t;

    topo_init(&t);
    int rc = world_mpi_topo(w, &t, a->topology, nccl_opts_asked.share_gpu, err);
    if (w->rank == 0) {
        data = mem_calloc(1, len);
        if (rc == 0)
            nearest_names(data, &t);
    }
    if (rc == 0)
        rc = w->share(w, &data, &len, err);
    if (rc == 0)
        memcpy(nearest, (char *)data + (size_t)w->rank * NIC_NAME, NIC_NAME);
    free(data);
    topo_free(&t);
    return rc;
}

static int path_of(struct verbs_path *path, int rank)
{
    return verbs_gid_path(path, &port.all[rank].address, &port.all[(rank + 1) % port.size].address,
                          NULL);
}

/* "3 node01 mlx5_2:1 InfiniBand LID 7 MTU 4096", "... RoCE v2 GID 3 ::ffff:10.0.1.2 MTU 1024" */
static char *note_port(char *text, int rank)
{
    const struct verbs_told *t = &port.all[rank];
    char gid[VERBS_GID_TEXT], way[120];
    struct verbs_path path;

    if (path_of(&path, rank) < 0)
        return text;
    if (path.global)
        snprintf(way, sizeof(way), "%s GID %d %s", verbs_gid_type_text(path.type), path.sgid_index,
                 verbs_gid_text(gid, &path.sgid));
    else
        snprintf(way, sizeof(way), "InfiniBand LID %d", t->address.lid);
    return mem_append(text, "%s%d %s %s %s MTU %d", text ? "; " : "", rank, t->address.host,
                      t->port, way, 128 << t->mtu);
}

static void note_ports(void)
{
    enum { MOST = 64 };
    char *text = NULL;

    for (int r = 0; r < port.size && r < MOST; r++)
        text = note_port(text, r);
    if (port.size > MOST)
        text = mem_append(text, "; and %d more", port.size - MOST);
    json_provenance_add("verbs_ports", text ? text : "");
    free(text);
}

/* Record each way of choosing addresses once, with the first rank that uses it. */
static void note_ways(void)
{
    char *text = NULL;

    for (int r = 0; r < port.size; r++) {
        struct verbs_path path;
        char *line;
        if (path_of(&path, r) < 0)
            continue;
        line = path.global ? mem_printf("GID %d: %s", path.sgid_index, path.why)
                           : mem_printf("%s", path.why);
        if (!text || !strstr(text, line)) {
            log_debug("rank %d (%s %s) and from there on, %s", r, port.all[r].address.host,
                      port.all[r].port, line);
            text = mem_append(text, "%s%s", text ? "; " : "", line);
        }
        free(line);
    }
    json_provenance_add("verbs_address", text ? text : "");
    free(text);
}

/* A number that the user did not give, from a variable as NCCL reads it: decimal or 0x..., -1: not
 * set.  Appends it to *said. */
static int take_number(int *number, const char *name, const char *what, int most, char **said,
                       struct err *err)
{
    const char *text = getenv(name);
    char *end;

    if (*number >= 0 || !text || !*text)
        return 0;
    long value = strtol(text, &end, 0);
    if (*end || value < -1 || value > most)
        return err_config(err, "%s=%.40s is not a number from -1 to %d", name, text, most);
    *number = (int)value;
    if (value >= 0)
        *said = mem_append(*said, "%s%s %ld (%s)", *said ? ", " : "", what, value, name);
    return 0;
}

/* Collective.  What NCCL is told of the network holds here too: otherwise campaigns over NCCL and
 * below it would compare two queues of the switches.  Rank 0's environment counts, because launchers
 * do not pass all variables on. */
static int take_nccls(struct verbs_opts *o, struct world *w, struct err *err)
{
    const char *hca = getenv("NCCL_IB_HCA");
    char *said = NULL;
    int rc = 0;

    if (w->rank == 0) {
        rc = take_number(&o->gid_index, "NCCL_IB_GID_INDEX", "GID index", 255, &said, err) < 0 ||
             take_number(&o->traffic_class, "NCCL_IB_TC", "traffic class", 255, &said, err) < 0 ||
             take_number(&o->sl, "NCCL_IB_SL", "service level", 15, &said, err) < 0 ||
             take_number(&o->pkey_index, "NCCL_IB_PKEY", "partition key", 65535, &said, err) < 0;
        if (!o->hca && hca && *hca) {
            snprintf(o->nccl_hca, sizeof(o->nccl_hca), "%s", hca);
            said = mem_append(said, "%sports %s (NCCL_IB_HCA)", said ? ", " : "", o->nccl_hca);
        }
        if (rc == 0 && said) {
            log_info("verbs as NCCL's variables say: %s", said);
            json_provenance_add("verbs_nccl", said);
        }
        free(said);
    }
    struct {
        int gid_index, traffic_class, sl, pkey_index;
        char hca[sizeof(o->nccl_hca)];
    } told = {o->gid_index, o->traffic_class, o->sl, o->pkey_index, ""};
    memcpy(told.hca, o->nccl_hca, sizeof(told.hca));
    if (w->agree(w, -rc, err) < 0 || w->tell(w, &told, sizeof(told), err) < 0)
        return -1;
    o->gid_index = told.gid_index;
    o->traffic_class = told.traffic_class > 0 ? told.traffic_class : 0;
    o->sl = told.sl > 0 ? told.sl : 0;
    o->pkey_index = told.pkey_index > 0 ? told.pkey_index : 0;
    memcpy(o->nccl_hca, told.hca, sizeof(o->nccl_hca));
    return 0;
}

static void note_opts(void)
{
    const struct verbs_opts *o = &verbs_opts_asked;
    char *text = mem_printf("%s, %d queue pair%s to a peer, %s memory, traffic class %d, service "
                            "level %d, partition key %d, timeout %d, %d retries",
                            verbs_way_name[o->verb], o->qps, o->qps == 1 ? "" : "s",
                            o->memory ? "GPU" : "host", o->traffic_class, o->sl, o->pkey_index,
                            o->timeout, o->retries);

    json_provenance_add("verbs", text);
    free(text);
    if (o->verb == VERBS_BY_READ)
        json_provenance_add("verbs_latency", "of a read: the whole round trip");
}

static void use_ports(void)
{
    for (int r = 0; r < port.size; r++) {
        char name[NIC_NAME];
        nic_name(name, port.all[r].port);
        taint_uses(port.all[r].address.host, name);
    }
}

/* Register memory now, so that failures show before the first point. */
static int start_memory(struct world *w, struct err *err)
{
    int rc = verbs_memory_take(&memory, &port, verbs_opts_asked.memory, 1, 1, err);

    if (w->agree(w, rc, err) < 0)
        return -1;
    char *text = mem_printf("%s%s", memory.how, memory.relaxed ? ", relaxed ordering" : "");
    json_provenance_add("verbs_memory", text);
    log_debug("%s: %s", port.all[port.rank].port, text);
    free(text);
    return 0;
}

/* With memory of a GPU the rank stays at its GPU, which launches kernels from there. */
static int place_at_port(struct world *w, struct err *err)
{
    char name[NIC_NAME];

    if (verbs_opts_asked.memory)
        return 0;
    nic_name(name, port.all[w->rank].port);
    char *device = mem_printf("class/infiniband/%s/device", name);
    int rc = gpu_binding_place(w, device, err);
    free(device);
    return rc;
}

static int verbs_start(const struct probe_args *a, struct world *w, struct err *err)
{
    char nearest[NIC_NAME] = "";

    if (verbs_opts_asked.memory && gpu_binding_take(w, nccl_opts_asked.share_gpu, NULL, err) < 0)
        return -1;
    if (w->agree(w, verbs_load(err), err) < 0 || take_nccls(&verbs_opts_asked, w, err) < 0)
        return -1;
    if (!verbs_opts_asked.hca && find_nearest(nearest, a, w, err) < 0)
        return -1;
    if (verbs_port_open(&port, &verbs_opts_asked, nearest, w, err) < 0)
        return -1;
    if (place_at_port(w, err) < 0)
        return -1;
    note_opts();
    if (w->rank == 0) {
        note_ports();
        note_ways();
        use_ports();
    }
    return start_memory(w, err);
}

/* --- results for the topology --- */

static int find_nic(const struct topo *t, int host, const char *port_name)
{
    char name[NIC_NAME];

    nic_name(name, port_name);
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, name))
            return i;
    return -1;
}

/* Write the GID and its type in the format of sysfs. */
static void write_gid(struct nic *n, const struct verbs_path *path)
{
    n->gid[0] = '\0';
    for (int i = 0; i < 16; i += 2)
        snprintf(n->gid + strlen(n->gid), sizeof(n->gid) - strlen(n->gid), "%s%02x%02x",
                 i ? ":" : "", path->sgid.raw[i], path->sgid.raw[i + 1]);
    snprintf(n->gid_type, sizeof(n->gid_type), "%s", verbs_gid_type_text(path->type));
    n->gid_index = path->sgid_index;
}

static int verbs_learn(const struct probe_args *a, struct world *w, struct topo *t,
                       const struct points *p, struct err *err)
{
    (void)a, (void)p, (void)err;
    log_debug("%d groups were connected in %.3g ms each", connections,
              connections ? 1e3 * connecting / connections : 0.0);
    for (int e = 0; w->rank == 0 && e < t->endpoints; e++) {
        int nic = find_nic(t, t->endpoint[e].place.at[LEVEL_HOST], port.all[e].port);
        struct verbs_path path;
        if (nic < 0)
            continue;
        t->endpoint[e].nic = nic;
        if (path_of(&path, e) == 0)
            write_gid(&t->nic[nic], &path);
    }
    return 0;
}

static int verbs_finish(struct world *w, const char *points, int rc, struct err *err)
{
    (void)w, (void)points, (void)err;
    verbs_link_close_all();
    verbs_memory_free(&memory);
    verbs_port_close(&port);
    return rc;
}

const struct transport_calls transport_verbs = {
    .open = verbs_open,
    .run = verbs_run,
    .check = verbs_check,
    .close = verbs_close,
    .start = verbs_start,
    .learn = verbs_learn,
    .finish = verbs_finish,
};
