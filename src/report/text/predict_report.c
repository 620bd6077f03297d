/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "report/text/report.h"

enum { INDENT = 4 };

static void wrap(FILE *out, int indent, const char *text)
{
    table_wrap(out, indent, "%*s%s", indent, "", text);
}

static void head(FILE *out, const struct prediction *p, const struct matrix *m,
                 const struct recipe *r)
{
    bool gpus = m->topo.endpoint[0].kind == ENDPOINT_GPU;
    char t[UNITS_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT], count[UNITS_TEXT];
    char *line = mem_printf("step %s (90 %% interval: %s to %s), %s tokens/s per %s",
                            units_seconds_text(t, p->sec), units_seconds_text(lo, p->lo),
                            units_seconds_text(hi, p->hi),
                            units_count_text(count, p->tokens_per_gpu, 0), gpus ? "GPU" : "device");

    if (isfinite(p->mfu))
        line = mem_append(line, ", MFU %.1f %% of %s TFLOP/s (%s)", 100 * p->mfu,
                          units_count_text(count, p->rate.peak / 1e12, 0),
                          r->causal ? "causal" : "not causal");
    table_wrap(out, 2, "%s", line);
    free(line);
    table_wrap(out, 2, "%s, %s, %s, %s: %d of %d %s%s%s", p->model, p->layout, p->strategy,
               recipe_name.dtype[r->dtype], p->ranks, m->topo.endpoints, gpus ? "GPUs" : "devices",
               m->fabric ? " of " : "", m->fabric ? m->fabric : "");
    table_wrap(out, 2, "batch %d x %s tokens: %d microbatch%s of %d per pipeline, recompute %s",
               r->global_batch, units_count_text(count, r->seq, 0), p->microbatches,
               p->microbatches == 1 ? "" : "es", r->micro_batch,
               recipe_name.recompute[r->recompute]);
}

static void group_line(FILE *out, const struct term *t, const struct matrix *m)
{
    char axes[AXES_TEXT], shape[48], text[640], slow[320], one[UNITS_TEXT];

    snprintf(
        text, sizeof(text),
        "%s over %s, %s on %d node%s with %d NIC%s a domain; %d group%s, %d unlike; one takes %s",
        op_name(t->op), axes_text(axes, t->axes), shape_text(shape, &t->shape), t->shape.nodes,
        t->shape.nodes == 1 ? "" : "s", t->shape.nics, t->shape.nics == 1 ? "" : "s", t->groups,
        t->groups == 1 ? "" : "s", t->distinct, units_seconds_text(one, t->one));
    wrap(out, INDENT, text);
    snprintf(text, sizeof(text), "bytes: %s", t->formula);
    wrap(out, INDENT, text);
    snprintf(text, sizeof(text), "slowest: %s", t->slowest);
    wrap(out, INDENT, text);
    if (t->exception < 0)
        return;
    snprintf(text, sizeof(text), "because of %s",
             predict_exception_text(slow, sizeof(slow), m, t->exception));
    wrap(out, INDENT, text);
}

/* Print "memory 61.3 of 80.0 GB (54.1 to 68.5): fits, 18.7 GB free", and its parts. */
static void memory_lines(FILE *out, const struct memory *m, bool explain)
{
    double room = (m->capacity - m->total) / 1e9, e = memory_error(m, MEMORY_DEVICE);

    fprintf(out, "memory %.1f ", m->total / 1e9);
    if (m->capacity > 0)
        fprintf(out, "of %.1f ", m->capacity / 1e9);
    fprintf(out, "GB (%.1f to %.1f)", (m->total - e) / 1e9, (m->total + e) / 1e9);
    if (m->capacity > 0)
        fprintf(out, ": %s, %.1f GB %s", memory_fit_text(m), fabs(room),
                room >= 0 ? "free" : "too much");
    fputc('\n', out);
    for (int i = 0; explain && i < MEMORY_PARTS; i++) {
        double part = *(const double *)(const void *)((const char *)m + memory_part[i].at);
        if (part > 0)
            fprintf(out, "    %8.2f GB %-14s %s\n", part / 1e9, memory_part[i].name,
                    memory_part[i].what);
    }
}

void predict_unfit(FILE *out, const struct memory *m)
{
    double e = memory_error(m, MEMORY_DEVICE);

    if (memory_fit(m) == MEMORY_UNFIT)
        table_wrap(out, 2,
                   "DOES NOT FIT: %.1f GB of a GPU that has %.1f, %.1f GB too much; "
                   "times are those of one that had room\n\n",
                   m->total / 1e9, m->capacity / 1e9, (m->total - m->capacity) / 1e9);
    else if (memory_fit(m) == MEMORY_MAY_NOT_FIT)
        fprintf(out, "MAY NOT FIT: %.1f to %.1f GB of a GPU that has %.1f\n\n",
                (m->total - e) / 1e9, (m->total + e) / 1e9, m->capacity / 1e9);
}

/* --- the terms, in two groups, each sorted by its time --- */

static const double small_term = 0.0015; /* share of the step below which terms are one row */

static bool is_message(const struct term *t)
{
    return t->kind == TERM_MESSAGE;
}

static int by_time(const void *a, const void *b)
{
    const struct term *x = *(const struct term *const *)a, *y = *(const struct term *const *)b;

    return x->sec != y->sec ? (x->sec < y->sec) - (x->sec > y->sec) : (x > y) - (x < y);
}

static const char *hidden_text(char buf[UNITS_TEXT], double sec)
{
    return sec > 0 ? units_seconds_text(buf, sec) : "";
}

static void add_term(struct table *t, const struct prediction *p, const struct term *x)
{
    char label[96], bytes[UNITS_TEXT], messages[64] = "", hidden[UNITS_TEXT];

    snprintf(label, sizeof(label), "  %s", x->label);
    if (is_message(x))
        snprintf(messages, sizeof(messages), "%.0f x %s", x->count,
                 units_bytes_text(bytes, x->bytes));
    table_add(t, label, x->sec, x->sec / p->sec, hidden_text(hidden, x->hidden), messages,
              basis_name[x->basis]);
}

static void add_group(struct table *t, const struct prediction *p, bool messages, bool all)
{
    const struct term **order = mem_calloc((size_t)p->terms + 1, sizeof(*order));
    double sec = 0, hidden = 0, rest = 0, rest_hidden = 0;
    int n = 0, shown = 0;
    char label[32], text[UNITS_TEXT];

    for (int i = 0; i < p->terms; i++)
        if (is_message(&p->term[i]) == messages) {
            order[n++] = &p->term[i];
            sec += p->term[i].sec;
            hidden += p->term[i].hidden;
        }
    qsort(order, (size_t)n, sizeof(*order), by_time);
    if (n)
        table_add(t, messages ? "communication" : "compute, overheads", sec, sec / p->sec,
                  hidden_text(text, hidden), "", "");
    while (shown < n && (all || order[shown]->sec >= small_term * p->sec || shown == n - 1))
        add_term(t, p, order[shown++]);
    for (int i = shown; i < n; i++) {
        rest += order[i]->sec;
        rest_hidden += order[i]->hidden;
    }
    snprintf(label, sizeof(label), "  %d smaller", n - shown);
    if (shown < n)
        table_add(t, label, rest, rest / p->sec, hidden_text(text, rest_hidden), "", "");
    free(order);
}

static void terms_table(FILE *out, const struct prediction *p, bool all)
{
    static const struct table_column columns[] = {{NULL, "where the time goes", "text"},
                                                  {NULL, "exposed", "seconds"},
                                                  {NULL, "share", "100*%.1f %%"},
                                                  {NULL, "hidden", "figure"},
                                                  {NULL, "messages", "figure"},
                                                  {NULL, "basis", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    add_group(&t, p, false, all);
    add_group(&t, p, true, all);
    fputc('\n', out);
    table_print(out, &t, 0);
    table_free(&t);
    fputs("exposed: not hidden behind compute; messages: of one rank\n\n", out);
}

/* Print formula, group and source of each term. */
static void sources(FILE *out, const struct prediction *p, const struct matrix *m)
{
    for (int i = 0; i < p->terms; i++) {
        fprintf(out, "%s\n", p->term[i].label);
        wrap(out, INDENT, p->term[i].source);
        if (is_message(&p->term[i]))
            group_line(out, &p->term[i], m);
    }
    fputc('\n', out);
}

/* Print each slow part once, with the messages it slows, also without --explain, because the user
 * must learn that the result depends on a bad NIC. */
static void exceptions(FILE *out, const struct prediction *p, const struct matrix *m)
{
    char part[MATRIX_PART], effect[MATRIX_EFFECT];

    for (int e = 0; e < m->exceptions; e++) {
        char *line = NULL;
        for (int i = 0; i < p->terms; i++)
            if (is_message(&p->term[i]) && p->term[i].exception == e)
                line = mem_append(line ? line : mem_strdup(""), "%s%s", line ? ", " : "",
                                  p->term[i].label);
        if (line)
            table_wrap(out, 2, "slowed by %s, %s: %s", matrix_part(m, &m->exception[e], part),
                       matrix_effect(&m->exception[e], true, effect), line);
        free(line);
    }
}

/* Print "placement: ep groups of 64 straddle racks: 26.7 s; --segment 16: 18.3 s on 16 racks". */
static void placement(FILE *out, const struct prediction *p)
{
    char here[UNITS_TEXT], there[UNITS_TEXT], racks[32] = "";
    const struct faster *f = &p->faster;

    if (!(f->sec > 0))
        return;
    if (f->racks)
        snprintf(racks, sizeof(racks), " on %d racks", f->racks);
    table_wrap(out, 2, "placement: %s: %s; %s: %s%s", f->groups, units_seconds_text(here, p->sec),
               f->option, units_seconds_text(there, f->sec), racks);
}

static void note(FILE *out, const char *text)
{
    table_wrap(out, 2, "note: %s", text);
}

/* Print the fitted effects of model, software and GPU.  The interval includes their errors and, for
 * unknown levels, the deviation of the factor. */
static void effect_lines(FILE *out, const struct prediction *p)
{
    static const struct table_column columns[] = {{NULL, "effect on compute", "text"},
                                                  {NULL, "change", "figure"},
                                                  {NULL, "error", "100*%.1f %%"},
                                                  {NULL, "rows", "count"},
                                                  {NULL, "level", "text"},
                                                  {0}};
    char change[UNITS_TEXT];
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < p->effects; i++) {
        const struct effect_level *e = &p->effect[i];
        snprintf(change, sizeof(change), "%+.1f %%", 100 * expm1(e->value));
        table_add(&t, effect_factor_name[e->factor], e->known ? change : NULL, e->error, e->n,
                  e->known || *e->level ? e->level : "(not stated)");
    }
    table_print(out, &t, 0);
    table_free(&t);
    fputc('\n', out);
}

void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                  const struct recipe *r, bool explain)
{
    predict_unfit(out, &p->memory);
    head(out, p, m, r);
    exceptions(out, p, m);
    placement(out, p);
    terms_table(out, p, explain);
    if (explain)
        sources(out, p, m);
    if (explain && p->effects)
        effect_lines(out, p);
    memory_lines(out, &p->memory, explain);
    table_wrap(out, 2, "compute at %s", p->rate.source);
    for (int i = 0; i < p->notes; i++)
        note(out, p->note[i]);
}

/* --- a run of these steps --- */

/* Print "36.2 million (30.1 .. 43.5)". */
static void amount(FILE *out, const struct budget_range *r, const char *what)
{
    static const struct {
        double of;
        const char *name;
    } unit[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {0, ""}};
    size_t i = 0;

    while (unit[i].of > r->is)
        i++;
    double by = unit[i].of > 0 ? unit[i].of : 1;
    int digits = r->is / by >= 999.5 ? 0 : r->is / by >= 9.995 ? 1 : 2;
    fprintf(out, "%.*f%s%s%s", digits, r->is / by, unit[i].name, *what ? " " : "", what);
    if (r->lo < r->hi)
        fprintf(out, " (%.*f .. %.*f)", digits, r->lo / by, digits, r->hi / by);
}

static void goodput(FILE *out, const struct budget *b)
{
    char mtbf[UNITS_TEXT], every[UNITS_TEXT], young[UNITS_TEXT];

    fprintf(out, "goodput %.1f %%: checkpoints take %.1f %%", 100 * b->goodput,
            100 * b->checkpoints);
    if (isfinite(b->mtbf))
        fprintf(out, ", work done again %.1f %%, restarts %.1f %%", 100 * b->rework,
                100 * b->restarts);
    fprintf(out, "; %.0f tokens/s\n", b->rate.is);
    fprintf(out, "    a checkpoint after each %s of work%s", units_seconds_text(every, b->interval),
            b->asked->every > 0 ? "" : " (Daly 2006");
    if (!(b->asked->every > 0))
        fprintf(out, "; Young 1974: %s)", units_seconds_text(young, b->young));
    if (isfinite(b->mtbf))
        fprintf(out, ", a failure each %s of %d GPUs on %d node%s",
                units_seconds_text(mtbf, b->mtbf), b->gpus, b->nodes, b->nodes == 1 ? "" : "s");
    if (isfinite(b->failures))
        fprintf(out, ": %.0f in all", b->failures);
    fputc('\n', out);
}

static void energy(FILE *out, const struct budget *b)
{
    const struct budget_opts *a = b->asked;
    struct budget_range mwh = {b->joules.is / 3.6e9, b->joules.lo / 3.6e9, b->joules.hi / 3.6e9};

    fprintf(out, "energy of a step %.3g kWh at %.0f W a GPU", b->step_joules / 3.6e6, a->watts);
    if (a->pue > 0)
        fprintf(out, " x %.3g", a->pue);
    if (a->tokens > 0) {
        fputs("; of the run ", out);
        amount(out, &mwh, "MWh");
    }
    fputc('\n', out);
}

void budget_text(FILE *out, const struct budget *b)
{
    const struct budget_opts *a = b->asked;
    const double day = 86400;
    struct budget_range days = {b->wall.is / day, b->wall.lo / day, b->wall.hi / day};

    fputc('\n', out);
    if (a->tokens > 0) {
        amount(out, &(struct budget_range){a->tokens, a->tokens, a->tokens}, "tokens");
        fprintf(out, " in %.0f steps: ", b->steps);
        amount(out, &days, "days");
        fputs(", ", out);
        amount(out, &b->gpu_hours, "GPU-hours");
        fputc('\n', out);
    }
    if (a->price > 0) {
        fputs("cost ", out);
        amount(out, &b->cost, a->coin);
        fprintf(out, " at %g a GPU-hour\n", a->price);
    }
    if (a->checkpoint > 0)
        goodput(out, b);
    if (a->watts > 0)
        energy(out, b);
}

/* --- several GPU counts and machines --- */

/* Print below the table why rows have no step. */
static void reasons(FILE *out, const struct variants *v)
{
    for (int i = 0; i < v->rows; i++) {
        const struct variant *r = &v->row[i];
        char *line = NULL;
        if (r->why)
            line = mem_printf("%d GPUs%s%s: %s", r->gpus, r->what ? ", " : "",
                              r->what ? r->what->text : "", r->why);
        else if (memory_fit(&r->step.memory) != MEMORY_FITS)
            line = mem_printf("%d GPUs%s%s: %s, %.1f GB of a GPU that has %.1f", r->gpus,
                              r->what ? ", " : "", r->what ? r->what->text : "",
                              memory_fit_text(&r->step.memory), r->step.memory.total / 1e9,
                              r->step.memory.capacity / 1e9);
        if (line)
            wrap(out, 0, line);
        free(line);
    }
}

static void moves(FILE *out, const struct variants *v)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];

    for (int i = 0; i < v->rows; i++) {
        const struct variant *r = &v->row[i];
        if (isnan(r->gain))
            continue;
        fprintf(out, "%s", r->what->text);
        if (r->gpus)
            fprintf(out, " (%d GPUs)", r->gpus);
        fputs(r->moves ? " moves " : " moves no term by a thousandth of the step", out);
        for (int k = 0; k < r->moves; k++)
            fprintf(out, "%s%s %s to %s", k ? ", " : "", r->moved[k].label,
                    units_seconds_text(a, r->moved[k].before),
                    units_seconds_text(b, r->moved[k].after));
        fputc('\n', out);
    }
}

static bool any_of(const struct variants *v, bool (*is)(const struct variant *r))
{
    for (int i = 0; i < v->rows; i++)
        if (is(&v->row[i]))
            return true;
    return false;
}

static bool is_changed(const struct variant *r)
{
    return r->what != NULL;
}

static bool is_scaled(const struct variant *r)
{
    return isfinite(r->efficiency);
}

static bool is_doubtful(const struct variant *r)
{
    return r->why || memory_fit(&r->step.memory) != MEMORY_FITS;
}

static bool is_trained(const struct variant *r)
{
    return r->budgeted && r->budget.asked->tokens > 0;
}

static bool is_priced(const struct variant *r)
{
    return is_trained(r) && r->budget.asked->price > 0;
}

static bool is_lossy(const struct variant *r)
{
    return r->budgeted && r->budget.asked->checkpoint > 0;
}

/* Columns without data have no head. */
static void rows_text(FILE *out, const struct variants *v)
{
    bool what = any_of(v, is_changed), scaled = any_of(v, is_scaled);
    bool days = any_of(v, is_trained), lossy = any_of(v, is_lossy), priced = any_of(v, is_priced);
    const struct table_column columns[] = {{NULL, "GPUs", "count"},
                                           {NULL, what ? "what if" : NULL, "text"},
                                           {NULL, "layout", "text"},
                                           {NULL, "batch", "%.0f"},
                                           {NULL, "step", "seconds"},
                                           {NULL, "from", "seconds"},
                                           {NULL, "to", "seconds"},
                                           {NULL, "tokens/s", "%.0f"},
                                           {NULL, "per GPU", "%.0f"},
                                           {NULL, scaled ? "efficiency" : NULL, "100*%.1f %%"},
                                           {NULL, what ? "gain" : NULL, "%.3f"},
                                           {NULL, lossy ? "goodput" : NULL, "100*%.1f %%"},
                                           {NULL, days ? "days" : NULL, "%.1f"},
                                           {NULL, days ? "GPU-hours" : NULL, "%.0f"},
                                           {NULL, priced ? "cost" : NULL, "%.0f"},
                                           {NULL, any_of(v, is_doubtful) ? "" : NULL, "text"},
                                           {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < v->rows; i++) {
        const struct variant *r = &v->row[i];
        const struct prediction *p = &r->step;
        bool has = !r->why, run = has && r->budgeted;
        table_add(&t, r->gpus, r->what ? r->what->text : "as it is", has ? p->layout : NULL,
                  has ? (double)r->batch : NAN, has ? p->sec : NAN, has ? p->lo : NAN,
                  has ? p->hi : NAN, has ? p->tokens / p->sec : NAN, has ? p->tokens_per_gpu : NAN,
                  r->efficiency, r->gain, run ? r->budget.goodput : NAN,
                  run ? r->budget.wall.is / 86400 : NAN, run ? r->budget.gpu_hours.is : NAN,
                  run ? r->budget.cost.is : NAN,
                  !has                                    ? "cannot be"
                  : memory_fit(&p->memory) == MEMORY_FITS ? ""
                                                          : memory_fit_text(&p->memory));
    }
    table_print(out, &t, 0);
    table_free(&t);
}

void variants_text(FILE *out, const struct variants *v, const struct job_opts *o)
{
    fprintf(out, "%s, %s, %s\n\n", o->model, recipe_name.strategy[o->recipe.strategy],
            recipe_name.dtype[o->recipe.dtype]);
    rows_text(out, v);
    fputc('\n', out);
    moves(out, v);
    reasons(out, v);
    if (*v->note)
        note(out, v->note);
}
