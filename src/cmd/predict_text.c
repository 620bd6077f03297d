/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_text.h"

#include <math.h>

#include "base/units.h"

static void head(FILE *out, const struct prediction *p, const struct matrix *m,
                 const struct recipe *r)
{
    char t[UNITS_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT];

    fprintf(out, "%s, %s, %s, %s: %d of %d endpoints%s%s\n", p->model, p->layout, p->strategy,
            dtype_name[r->dtype], p->ranks, m->topo.endpoints, m->fabric ? " of " : "",
            m->fabric ? m->fabric : "");
    fprintf(out, "batch %d x %d tokens: %d microbatch%s of %d per pipeline, recompute %s\n\n",
            r->global_batch, r->seq, p->microbatches, p->microbatches == 1 ? "" : "es",
            r->micro_batch, recompute_name[r->recompute]);
    fprintf(out, "step %s  (%s .. %s)   %.0f tokens/s per device", units_seconds_text(t, p->sec),
            units_seconds_text(lo, p->lo), units_seconds_text(hi, p->hi), p->tokens_per_gpu);
    if (isfinite(p->mfu))
        fprintf(out, "   MFU %.1f %% of %.0f TFLOP/s, %s", 100 * p->mfu, p->rate.peak / 1e12,
                r->causal ? "causal" : "not causal");
    fprintf(out, "\ncompute at %s\n\n", p->rate.source);
}

static void group_line(FILE *out, const struct term *t, const struct matrix *m)
{
    char axes[AXES_TEXT], shape[48], text[320], one[UNITS_TEXT];

    fprintf(out, "    %s over %s, %s; %d group%s, %d unlike; one takes %s\n", op_name(t->op),
            axes_text(axes, t->axes), shape_text(shape, &t->shape), t->groups,
            t->groups == 1 ? "" : "s", t->distinct, units_seconds_text(one, t->one));
    fprintf(out, "    bytes: %s\n    slowest: %s\n", t->formula, t->slowest);
    if (t->exception >= 0)
        fprintf(out, "    because of %s\n",
                predict_exception_text(text, sizeof(text), m, t->exception));
}

static void line(FILE *out, const struct term *t, const struct prediction *p)
{
    char sec[UNITS_TEXT], hidden[UNITS_TEXT], bytes[UNITS_TEXT];

    fprintf(out, "%-32s %10s %6.1f %%  ", t->label, units_seconds_text(sec, t->sec),
            100 * t->sec / p->sec);
    if (t->kind == TERM_MESSAGE)
        fprintf(out, "%10s  %6.0f x %-9s ",
                t->hidden > 0 ? units_seconds_text(hidden, t->hidden) : "-", t->count,
                units_bytes_text(bytes, t->bytes));
    else
        fprintf(out, "%10s  %18s ", "", "");
    fprintf(out, "%s\n", basis_name[t->basis]);
}

/* The slow part of each message that has one, also without --explain: an answer that rests on a bad
 * NIC must say so. */
static void exceptions(FILE *out, const struct prediction *p, const struct matrix *m)
{
    char text[320];

    for (int i = 0; i < p->terms; i++) {
        const struct term *t = &p->term[i];
        if (t->kind == TERM_MESSAGE && t->exception >= 0)
            fprintf(out, "slow: %s, %s: %s\n", t->label, t->slowest,
                    predict_exception_text(text, sizeof(text), m, t->exception));
    }
}

void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                  const struct recipe *r, bool explain)
{
    char exposed[UNITS_TEXT], hidden[UNITS_TEXT];

    head(out, p, m, r);
    fprintf(out, "%-32s %10s %8s  %10s  %18s %s\n", "term", "seen", "share", "hidden",
            "messages a rank", "numbers");
    for (int i = 0; i < p->terms; i++) {
        line(out, &p->term[i], p);
        if (explain)
            fprintf(out, "    %s\n", p->term[i].source);
        if (explain && p->term[i].kind == TERM_MESSAGE)
            group_line(out, &p->term[i], m);
    }
    fprintf(out, "\nmessages: %s seen, %s hidden behind compute\n",
            units_seconds_text(exposed, p->exposed), units_seconds_text(hidden, p->hidden));
    exceptions(out, p, m);
    for (int i = 0; i < p->notes; i++)
        fprintf(out, "note: %s\n", p->note[i]);
}
