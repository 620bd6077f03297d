/* SPDX-License-Identifier: BSD-3-Clause */
/* A preset as a matrix: published points become curves, alpha and rate straight lines. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "matrix/matrix.h"

static char *cite(const struct fabric_number *alpha, const struct fabric_number *rate)
{
    return mem_printf("%s (%s); latency: %s (%s)", rate->source ? rate->source : "no source",
                      fabric_kind_name[rate->kind], alpha->source ? alpha->source : "no source",
                      fabric_kind_name[alpha->kind]);
}

/* Share that uplinks leave to pairs that leave their leaf when all do; NAN: nothing is lost. */
static double loaded_by(const struct fabric *f, const struct fabric_tier *t)
{
    const unsigned below = 1u << LEVEL_HOST | 1u << LEVEL_DOMAIN | 1u << LEVEL_LEAF;
    bool climbs = t->nic && !(t->rule.same & below) && f->hosts_per_leaf > 0;

    return climbs && f->uplink_share < 1 ? f->uplink_share : NAN;
}

static void add_tier(struct matrix *m, const struct fabric_tier *f, double loaded)
{
    struct tier *t = &m->tier[m->tiers++];

    t->rule = f->rule;
    t->basis = BASIS_PRESET;
    t->loaded = loaded;
    t->peak_Bps = f->peak.value;
    t->nic = f->nic;
    t->source = cite(&f->alpha, &f->Bps);
    if (!(f->Bps.value > 0))
        return;
    /* A window keeps OP_PAIR_WINDOW messages in flight, so each carries that share of the latency.
     */
    double gap = f->alpha.value / OP_PAIR_WINDOW;
    curve_line(&t->curve[DIR_ONEWAY], f->alpha.value, f->Bps.value);
    curve_line(&t->curve[DIR_UNI], gap, f->Bps.value);
    if (f->bi_Bps.value > 0)
        curve_line(&t->curve[DIR_BI], gap, f->bi_Bps.value);
}

/* The shape that a published curve was measured on, as far as the publication and the machine tell.
 */
static void shape_from(struct shape *s, const struct fabric *f, const struct fabric_collective *c)
{
    int g = c->ranks / c->domains;
    int per_host = f->gpus_per_host > 0 ? f->gpus_per_host : 1;
    int hosts = (g + per_host - 1) / per_host;
    int nics = hosts * f->nics_per_host;

    *s = (struct shape){c->ranks, c->domains, g, hosts * c->domains, nics < g ? nics : g, 0};
    if (s->nics < 1)
        s->nics = 1;
}

static void add_points(struct curve *to, const struct fabric_collective *c)
{
    for (int i = 0; i < c->points; i++) {
        double sec = c->point[i].sec;
        curve_add(to, (struct curve_point){c->point[i].bytes, sec, sec, sec, 0});
    }
    curve_summarise(to);
}

/* A published bandwidth between domains is that of a large size: the model says what smaller ones take. */
static void add_peak(struct curve *to, const struct fabric_collective *c)
{
    const double large = 4.0 * (1 << 30);
    double sec = large * op_bus_factor(c->op, c->ranks) / c->busbw.value;

    curve_add(to, (struct curve_point){large, sec, sec, sec, 0});
    curve_summarise(to);
}

static void add_collective(struct matrix *m, const struct fabric *f,
                           const struct fabric_collective *c)
{
    struct collective out = {.op = c->op, .basis = BASIS_PRESET};

    if (c->domains < 1 || c->ranks < 2 || c->domains > c->ranks || !(c->busbw.value > 0))
        return;
    shape_from(&out.shape, f, c);
    for (int i = 0; i < m->collectives; i++) /* the first one published for a shape is kept */
        if (m->collective[i].op == c->op && shape_equal(&m->collective[i].shape, &out.shape))
            return;
    if (c->points) {
        add_points(&out.curve, c);
        out.source = mem_printf("%s (%s)", c->points_source, fabric_kind_name[c->points_kind]);
    } else if (c->domains > 1 && c->alpha.kind != KIND_MEASURED) {
        add_peak(&out.curve, c);
        out.source = cite(&c->alpha, &c->busbw);
    } else {
        curve_line(&out.curve, c->alpha.value, c->busbw.value / op_bus_factor(c->op, c->ranks));
        out.source = cite(&c->alpha, &c->busbw);
    }
    MEM_PUSH(m->collective, m->collectives) = out;
}

static void add_ep(struct matrix *m, const struct fabric_ep *f)
{
    MEM_PUSH(m->ep, m->eps) = (struct ep_curve){.kernel = mem_strdup(f->kernel),
                                                .ranks = f->ranks,
                                                .domains = f->domains,
                                                .alpha = f->alpha.value,
                                                .Bps = {f->Bps[0].value, f->Bps[1].value},
                                                .basis = BASIS_PRESET,
                                                .source = cite(&f->alpha, &f->Bps[0])};
}

int matrix_from_fabric(struct matrix *m, const struct fabric *f, int racks, struct err *err)
{
    matrix_init(m);
    if (fabric_topo(f, racks, false, &m->topo, err) < 0) {
        matrix_free(m);
        return -1;
    }
    m->transport = mem_strdup("preset");
    m->fabric = mem_strdup(f->name);
    for (int i = 0; i < f->tiers && i < TIER_MAX; i++)
        add_tier(m, &f->tier[i], loaded_by(f, &f->tier[i]));
    m->topo.tiers = m->tiers;
    for (int i = 0; i < m->tiers; i++)
        m->topo.tier[i] = m->tier[i].rule;
    for (int i = 0; i < f->collectives; i++)
        add_collective(m, f, &f->collective[i]);
    for (int i = 0; i < f->eps; i++)
        add_ep(m, &f->ep[i]);
    m->provenance = json_provenance();
    json_object_set_new(m->provenance, "network", json_string(f->nic.name));
    return 0;
}

/* Files that people give where a matrix is wanted. */
static const struct {
    const char *head, *what;
} others[] = {
    {"# railgauge-points ",
     "a campaign's points: give its directory, or make a matrix of them with railgauge fit"},
    {"# railgauge-plan ", "the plan of a campaign: give the directory in which it was measured"},
    {"\"railgauge-topology\"",
     "a topology, in which nothing is measured: give its campaign's directory or matrix.json"},
    {"\"railgauge-predictions\"", "predictions: give the matrix.json that they were made from"},
};

/* Say in err what a file is that is no matrix, if its head tells; else err is unchanged. */
static void refuse_other(const char *path, struct err *err)
{
    char head[513];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(head, 1, sizeof(head) - 1, f) : 0;

    if (f)
        fclose(f);
    head[n] = '\0';
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strstr(head, others[i].head))
            err_data(err, "%s is %s", path, others[i].what);
}

int matrix_load(struct matrix *m, const char *path, enum matrix_depth depth, struct err *err)
{
    struct stat st;
    bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *file = dir ? file_join(path, "matrix.json") : mem_strdup(path);
    json_t *root;
    int rc = json_open(&root, file, MATRIX_FORMAT, MATRIX_VERSION, err);

    if (rc == 0) {
        rc = matrix_unpack(m, root, depth, file, err);
        json_decref(root);
    } else
        refuse_other(file, err);
    free(file);
    return rc;
}

int matrix_open(struct matrix *m, const char *path, const char *fabric, int racks, struct err *err)
{
    struct fabric f;

    if (!fabric)
        return matrix_load(m, path, MATRIX_WHOLE, err);
    if (fabric_load(&f, fabric, err) < 0)
        return -1;
    int rc = matrix_from_fabric(m, &f, racks, err);
    fabric_free(&f);
    return rc;
}

int matrix_preset(struct fabric *f, const struct matrix *m, const char *name, struct err *err)
{
    bool measured = m->compute.devices && m->topo.endpoints;
    char *found = NULL;

    memset(f, 0, sizeof(*f));
    if (!name && m->fabric && fabric_shipped(m->fabric))
        name = m->fabric;
    if (!name && !m->fabric && measured)
        name = found = fabric_of_gpu(m->topo.endpoint[0].model);
    int rc = name ? fabric_load(f, name, err) : 0;
    free(found);
    return rc;
}
