/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/asked/budget.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

static const char *const of_name[BUDGET_OF_COUNT] = {"job", "node", "gpu"};

/* --- options --- */

/* Parse a positive number.  Returns the text behind it, or NULL if there is no such number. */
static const char *amount(double *out, const char *text)
{
    char *end;

    if (!isdigit((unsigned char)text[text[0] == '.']) || (text[0] == '0' && (text[1] | 32) == 'x'))
        return NULL;
    *out = strtod(text, &end);
    return *out > 0 && isfinite(*out) ? end : NULL;
}

static int take_tokens(void *into, char *text, struct err *err)
{
    static const struct {
        const char *name;
        double of;
    } unit[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
    struct budget_opts *o = into;
    double v;
    const char *end = amount(&v, text);

    for (size_t i = 0; end && i < sizeof(unit) / sizeof(*unit); i++)
        if (!strcmp(end, unit[i].name)) {
            o->tokens = v * unit[i].of;
            return 0;
        }
    return err_usage(err, "\"%s\" is no number of tokens such as 300B, 15T or 1.5e13", text);
}

static int take_price(void *into, char *text, struct err *err)
{
    struct budget_opts *o = into;
    const char *end = amount(&o->price, text);

    while (end && *end == ' ')
        end++;
    if (!end || strlen(end) >= sizeof(o->coin) || strspn(end, "0123456789.,+-/ ") > 0)
        return err_usage(err, "\"%s\" is no price of a GPU-hour such as 2.5 or 2.5EUR", text);
    snprintf(o->coin, sizeof(o->coin), "%s", end);
    return 0;
}

static int take_power(void *into, char *text, struct err *err)
{
    struct budget_opts *o = into;
    const char *end = amount(&o->watts, text);

    if (end && !strcmp(end, "kW"))
        o->watts *= 1000;
    else if (!end || strcmp(end, "W") != 0)
        return err_usage(err, "\"%s\" is no power such as 700W or 1.2kW", text);
    return 0;
}

/* Parse "50000h/gpu", "1200h/node", or "3h" for the job. */
static int take_mtbf(void *into, char *text, struct err *err)
{
    struct budget_opts *o = into;
    const char *of = strchr(text, '/');
    char *time = mem_printf("%.*s", of ? (int)(of - text) : (int)strlen(text), text);
    int rc = units_seconds(&o->mtbf, time, err);

    free(time);
    o->mtbf_of = of ? recipe_word("a time between failures of a", of + 1, of_name, BUDGET_OF_COUNT,
                                  rc < 0 ? NULL : err)
                    : BUDGET_OF_JOB;
    if (rc < 0 || o->mtbf_of < 0)
        return -1;
    return o->mtbf > 0 ? 0 : err_usage(err, "\"%s\": failures at every moment", text);
}

#define ROW_GROUP .group = "budget"
const struct opt budget_options[] = {
    {.help = "days, GPU-hours, failures, checkpoints and energy of a whole run", ROW_GROUP},
    {"tokens", 0, "N", "tokens to train on; print days, GPU-hours and steps: 300B, 15T",
     OPT_CALL(take_tokens), ROW_GROUP},
    {"price", 0, "PRICE", "price per GPU-hour: 2.5, or 2.5EUR", OPT_CALL(take_price), ROW_GROUP},
    {"mtbf", 0, "TIME[/OF]",
     "mean time between failures of the job, or per node or gpu: 3h, 50000h/gpu",
     OPT_CALL(take_mtbf), ROW_GROUP},
    {"checkpoint", 0, "TIME", "time of one checkpoint, during which training stops",
     OPT_SECONDS(struct budget_opts, checkpoint), ROW_GROUP},
    {"checkpoint-every", 0, "TIME",
     "training time between two checkpoints (default: the best, Daly 2006)",
     OPT_SECONDS(struct budget_opts, every), ROW_GROUP},
    {"restart", 0, "TIME", "time from a failure until training continues (default 0)",
     OPT_SECONDS(struct budget_opts, restart), ROW_GROUP},
    {"power", 0, "POWER", "power per GPU with its share of the node: 700W, 1.2kW",
     OPT_CALL(take_power), ROW_GROUP},
    {"pue", 0, "X", "power of the facility / power of its nodes (default 1)",
     OPT_REAL(struct budget_opts, pue, 1, 10), ROW_GROUP},
    {0},
};
#undef ROW_GROUP

int budget_check(void *into, struct err *err)
{
    const struct budget_opts *o = into;

    if (o->price > 0 && !(o->tokens > 0))
        return err_usage(err, "--price is of GPU-hours, and --tokens says how many there are");
    if (o->pue > 0 && !(o->watts > 0))
        return err_usage(err, "--pue belongs to --power");
    if ((o->mtbf > 0 || o->every > 0) && !(o->checkpoint > 0))
        return err_usage(err, "--%s asks for --checkpoint, the time that one takes",
                         o->mtbf > 0 ? "mtbf" : "checkpoint-every");
    if (o->checkpoint > 0 && !(o->mtbf > 0 || o->every > 0))
        return err_usage(err, "--checkpoint asks for --mtbf or --checkpoint-every: how often");
    if (o->restart > 0 && !(o->mtbf > 0))
        return err_usage(err, "--restart asks for --mtbf: how often");
    return 0;
}

bool budget_asked(const struct budget_opts *o)
{
    return o->tokens > 0 || o->watts > 0 || o->checkpoint > 0;
}

/* --- results --- */

static double daly(double checkpoint, double mtbf)
{
    double part = checkpoint / (2 * mtbf);

    return part >= 1 ? mtbf
                     : sqrt(2 * checkpoint * mtbf) * (1 + sqrt(part) / 3 + part / 9) - checkpoint;
}

static int lose(struct budget *b, struct err *err)
{
    const struct budget_opts *o = b->asked;
    const double parts[BUDGET_OF_COUNT] = {1, b->nodes, b->gpus};
    double d = o->checkpoint, m = o->mtbf / parts[o->mtbf_of];

    b->goodput = 1;
    b->mtbf = b->interval = b->young = NAN;
    if (!(d > 0))
        return 0;
    b->mtbf = o->mtbf > 0 ? m : NAN;
    b->young = sqrt(2 * d * b->mtbf);
    b->interval = o->every > 0 ? o->every : daly(d, m);
    double segment = b->interval + d, work = segment, wall = segment;
    if (o->mtbf > 0) {
        work = m * expm1(segment / m);
        wall = work * exp(o->restart / m);
    }
    b->goodput = b->interval / wall;
    b->checkpoints = d / wall;
    b->rework = (work - segment) / wall;
    b->restarts = (wall - work) / wall;
    char every[UNITS_TEXT], left[UNITS_TEXT];
    if (!(b->goodput > 1e-6))
        return err_set(err,
                       "with a failure every %s nothing gets done: checkpoints are %s of work "
                       "apart, and a restart takes %g s",
                       units_seconds_text(every, m), units_seconds_text(left, b->interval),
                       o->restart);
    return 0;
}

static struct budget_range times(const struct prediction *p, double factor)
{
    return (struct budget_range){p->sec * factor, p->lo * factor, p->hi * factor};
}

int budget_of(struct budget *b, const struct budget_opts *o, const struct prediction *p,
              const struct recipe *r, int nodes, struct err *err)
{
    *b = (struct budget){.asked = o, .gpus = p->ranks, .nodes = nodes};
    if (o->checkpoint > 0 && r->checkpoint_seconds > 0)
        return err_usage(err,
                         "--checkpoint-seconds has checkpoints in every step, and --checkpoint "
                         "would count them again");
    if (lose(b, err) < 0)
        return -1;
    double watts = o->watts * (o->pue > 0 ? o->pue : 1) * b->gpus, tokens = p->tokens * b->goodput;
    b->steps = o->tokens > 0 ? ceil(o->tokens / p->tokens) : NAN;
    b->wall = times(p, b->steps / b->goodput);
    b->gpu_hours = times(p, b->steps / b->goodput * b->gpus / 3600);
    b->cost = times(p, b->steps / b->goodput * b->gpus / 3600 * o->price);
    b->joules = times(p, b->steps / b->goodput * watts);
    b->step_joules = p->sec * watts;
    b->rate = (struct budget_range){tokens / p->sec, tokens / p->hi, tokens / p->lo};
    b->failures = b->wall.is / b->mtbf;
    return 0;
}

static void range(json_t *o, const char *key, const struct budget_range *r, double unit)
{
    const struct {
        const char *end;
        double v;
    } part[] = {{"", r->is}, {"lo_", r->lo}, {"hi_", r->hi}};

    for (int i = 0; i < 3; i++) {
        char *name = mem_printf("%s%s", part[i].end, key);
        json_object_set_new(o, name, json_finite(part[i].v / unit));
        free(name);
    }
}

json_t *budget_json(const struct budget *b)
{
    const struct budget_opts *a = b->asked;
    json_t *o = json_object();

    range(o, "tokens_per_s", &b->rate, 1);
    if (a->tokens > 0) {
        json_object_set_new(o, "tokens", json_finite(a->tokens));
        json_object_set_new(o, "steps", json_finite(b->steps));
        range(o, "s", &b->wall, 1);
        range(o, "gpu_hours", &b->gpu_hours, 1);
    }
    if (a->price > 0) {
        range(o, "cost", &b->cost, 1);
        json_object_set_new(o, "price", json_finite(a->price));
        json_object_set_new(o, "currency", json_string(a->coin));
    }
    if (a->checkpoint > 0)
        json_object_set_new(
            o, "goodput",
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "share", json_finite(b->goodput),
                      "checkpoint_share", json_finite(b->checkpoints), "rework_share",
                      json_finite(b->rework), "restart_share", json_finite(b->restarts), "mtbf_s",
                      json_finite(b->mtbf), "interval_s", json_finite(b->interval), "young_s",
                      json_finite(b->young), "failures", json_finite(b->failures)));
    if (a->watts > 0) {
        json_object_set_new(o, "step_kwh", json_finite(b->step_joules / 3.6e6));
        if (a->tokens > 0)
            range(o, "mwh", &b->joules, 3.6e9);
    }
    return o;
}
