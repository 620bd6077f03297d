/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/asked/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "matrix/collective.h"

/* --- options --- */

static const char *const key_name[] = {"nic", "nvlink", "latency", "hbm", "flops", "exceptions"};
enum { KEYS = WHAT_COUNT + 1 };

/* "2x" */
static int take_factor(double *out, const char *key, const char *value, struct err *err)
{
    size_t n = strlen(value);
    char *number = mem_printf("%.*s", n ? (int)n - 1 : 0, value);
    int rc = n > 1 && value[n - 1] == 'x' ? units_double(out, number, 1e-3, 1e3, NULL) : -1;

    free(number);
    if (rc < 0)
        return err_usage(err, "%s=%s: a factor of 0.001x to 1000x is asked, such as 2x%s", key,
                         value, strcmp(key, "nic") ? "" : ", or a rate such as 400G");
    return 0;
}

/* Parse "400G": rate of a NIC in bits, as in data sheets. */
static bool take_nic(struct what_if *w, const char *value)
{
    size_t n = strlen(value);
    char *rate = mem_printf("%s%s", value, n && value[n - 1] == 'G' ? "b/s" : "");
    bool is = units_rate(&w->nic_Bps, rate, NULL) == 0 && w->nic_Bps > 0;

    free(rate);
    if (!is)
        w->nic_Bps = 0;
    return is;
}

static int take(struct what_if *w, const char *key, const char *value, struct err *err)
{
    int k = recipe_word("--what-if", key, key_name, KEYS, err);

    if (k < 0)
        return -1;
    if (k == WHAT_COUNT) {
        w->whole = !strcmp(value, "none");
        return w->whole ? 0 : err_usage(err, "exceptions=%s: only none is known", value);
    }
    if (k == WHAT_NIC && take_nic(w, value))
        return 0;
    return take_factor(&w->factor[k], key, value, err);
}

int what_if_parse(struct what_if *w, const char *text, struct err *err)
{
    char *copy = mem_strdup(text), *save = NULL;
    int rc = 0, n = 0;

    *w = (struct what_if){.text = text};
    for (int i = 0; i < WHAT_COUNT; i++)
        w->factor[i] = 1;
    for (char *word = strtok_r(copy, ",", &save); rc == 0 && word;
         word = strtok_r(NULL, ",", &save), n++) {
        char *value = strchr(word, '=');
        if (!value) {
            rc = err_usage(err, "\"%s\": what it would be is missing, as in nic=2x", word);
            break;
        }
        *value++ = '\0';
        rc = take(w, word, value, err);
    }
    free(copy);
    return rc < 0 || n ? rc : err_usage(err, "nothing is changed");
}

/* --- curves --- */

static double changed(double sec, double floor, double rate, double latency)
{
    return floor * latency + (sec - floor) / rate;
}

static void scale_curve(struct curve *c, double rate, double latency)
{
    double floor = curve_floor(c), *ratio = mem_calloc((size_t)c->points + 1, sizeof(*ratio));

    for (int i = 0; i < c->points; i++) {
        double sec = c->point[i].sec;
        ratio[i] = changed(sec, fmin(floor, sec), rate, latency) / sec;
    }
    curve_scale(c, ratio);
    free(ratio);
}

static double tier_factor(const struct what_if *w, const struct tier *t)
{
    return !t->nic          ? w->factor[WHAT_NVLINK]
           : w->nic_Bps > 0 ? w->nic_Bps / t->peak_Bps
                            : w->factor[WHAT_NIC];
}

static void scale_tiers(struct matrix *m, const struct what_if *w)
{
    for (int i = 0; i < m->tiers; i++) {
        struct tier *t = &m->tier[i];
        double rate = tier_factor(w, t);
        for (int d = 0; d < DIR_COUNT; d++)
            scale_curve(&t->curve[d], rate, w->factor[WHAT_LATENCY]);
        t->peak_Bps *= rate;
    }
}

/* --- collectives --- */

static int domain_at(const struct topo *t, int id)
{
    int domain = topo_at(t, id, LEVEL_DOMAIN);

    return domain >= 0 ? domain : t->group[LEVEL_DOMAIN].count + topo_at(t, id, LEVEL_HOST);
}

/* Returns the endpoints of a group of this shape, the first ones of the first domains with enough;
 * NULL: too few.  The caller frees. */
static int *group_like(const struct topo *t, const struct shape *s)
{
    int all = t->group[LEVEL_DOMAIN].count + t->hosts, n = 0, per = s->per_domain;
    int *ids = mem_calloc((size_t)s->domains * (size_t)per + 1, sizeof(*ids));
    int *has = mem_calloc((size_t)all + 1, sizeof(*has)),
        *slot = mem_calloc((size_t)all + 1, sizeof(*slot));

    for (int i = 0; i < t->endpoints; i++)
        has[domain_at(t, i)]++;
    for (int d = 0; d < all; d++)
        slot[d] = -1;
    for (int i = 0; i < t->endpoints; i++) {
        int d = domain_at(t, i);
        if (slot[d] < 0 && has[d] >= per && n < s->domains) {
            slot[d] = n++ * per;
            has[d] = per;
        }
        if (slot[d] >= 0 && has[d] > 0) {
            ids[slot[d]++] = i;
            has[d]--;
        }
    }
    free(has);
    free(slot);
    if (n == s->domains && s->domains * per == s->ranks)
        return ids;
    free(ids);
    return NULL;
}

/* Set the tier model's time at each point of a curve; NAN: unknown. */
static void model_points(double *sec, const struct matrix *m, const struct collective *c,
                         const int *ids)
{
    struct ways ways;

    if (ids) {
        ways_of(&ways, m, ids, c->shape.ranks, c->op, true);
        ways.at_once = c->at_once > 1 ? c->at_once : 1;
    }
    for (int i = 0; i < c->curve.points; i++)
        sec[i] = ids ? model_time(m, &ways, c->op, c->curve.point[i].bytes) : NAN;
}

struct before {
    int *ids;
    double *sec;
};

static void scale_collective(struct collective *c, const struct matrix *m, const struct before *was,
                             const struct what_if *w, double nic)
{
    double *now = mem_calloc((size_t)c->curve.points + 1, sizeof(*now));
    bool known = c->curve.points > 0;

    model_points(now, m, c, was->ids);
    for (int i = 0; i < c->curve.points; i++)
        known = known && now[i] > 0 && was->sec[i] > 0 && isfinite(now[i] / was->sec[i]);
    if (known) {
        for (int i = 0; i < c->curve.points; i++)
            now[i] /= was->sec[i];
        curve_scale(&c->curve, now);
    } else
        scale_curve(&c->curve, c->shape.domains > 1 ? nic : w->factor[WHAT_NVLINK],
                    w->factor[WHAT_LATENCY]);
    free(now);
}

/* Returns the factor of the slowest tier that crosses NICs. */
static double nic_factor(const struct matrix *m, const struct what_if *w)
{
    double least = INFINITY;

    for (int i = 0; i < m->tiers; i++)
        if (m->tier[i].nic)
            least = fmin(least, tier_factor(w, &m->tier[i]));
    return isfinite(least) ? least : 1;
}

/* Change the tiers, and all measured or published collectives over them. */
static void change_fabric(struct matrix *m, const struct what_if *w)
{
    struct before *was = mem_calloc((size_t)m->collectives + 1, sizeof(*was));
    double nic = nic_factor(m, w);

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        was[i].ids = group_like(&m->topo, &c->shape);
        was[i].sec = mem_calloc((size_t)c->curve.points + 1, sizeof(double));
        model_points(was[i].sec, m, c, was[i].ids);
    }
    scale_tiers(m, w);
    for (int i = 0; i < m->collectives; i++) {
        scale_collective(&m->collective[i], m, &was[i], w, nic);
        free(was[i].ids);
        free(was[i].sec);
    }
    for (int i = 0; i < m->eps; i++) {
        struct ep_curve *e = &m->ep[i];
        e->alpha *= w->factor[WHAT_LATENCY];
        for (int k = 0; k < 2; k++)
            e->Bps[k] *= e->domains > 1 ? nic : w->factor[WHAT_NVLINK];
    }
    free(was);
}

/* --- compute, memory and exceptions --- */

static void change_gpu(struct job *j, const struct what_if *w)
{
    struct compute_rates *c = &j->matrix.compute;
    double flops = w->factor[WHAT_FLOPS], hbm = w->factor[WHAT_HBM];

    for (int i = 0; i < j->fabric.gpu.peaks; i++)
        j->fabric.gpu.peak[i].flops.value *= flops;
    for (int i = 0; i < c->gemms; i++)
        c->gemm[i].flops *= flops;
    for (int i = 0; i < c->kernels; i++)
        c->kernel[i].flops *= c->kernel[i].k > 1 ? flops : hbm;
    c->flops *= flops;
    j->fabric.gpu.hbm_Bps.value *= hbm;
    c->alone[ALONE_HBM] *= hbm;
    c->alone[ALONE_HBM_READ] *= hbm;
}

static int check_nic(const struct matrix *m, const struct what_if *w, struct err *err)
{
    for (int i = 0; w->nic_Bps > 0 && i < m->tiers; i++)
        if (m->tier[i].nic && !(m->tier[i].peak_Bps > 0))
            return err_set(err,
                           "%s: no data sheet says what the NICs of tier %s have; say how much "
                           "faster, as in nic=2x",
                           w->text, m->tier[i].rule.name);
    return 0;
}

int what_if_apply(const struct what_if *w, struct job *j, struct err *err)
{
    struct matrix *m = &j->matrix;

    if (check_nic(m, w, err) < 0)
        return -1;
    if (w->whole) {
        for (int i = 0; i < m->exceptions; i++)
            free(m->exception[i].why);
        m->exceptions = 0;
    }
    if (w->nic_Bps > 0 || w->factor[WHAT_NIC] != 1 || w->factor[WHAT_NVLINK] != 1 ||
        w->factor[WHAT_LATENCY] != 1)
        change_fabric(m, w);
    change_gpu(j, w);
    return 0;
}
