/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/text/summary.h"

#include "base/units.h"
#include "emit/text/matrix_text.h"

enum { PARTS_SHOWN = 5 };

static void print_head(FILE *out, const char *dir, const struct matrix *m)
{
    static const enum level shown[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_SPINE};
    const struct topo *t = &m->topo;

    fprintf(out, "%s: %d endpoint%s on %d host%s over %s", dir, t->endpoints, units_s(t->endpoints),
            t->hosts, units_s(t->hosts), m->transport);
    if (m->fabric)
        fprintf(out, " (%s)", m->fabric);
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
        int at = t->endpoint[0].place.at[shown[i]];
        if (at >= 0)
            fprintf(out, ", %d %s%s %s", t->group[shown[i]].count, level_name[shown[i]],
                    t->group[shown[i]].count == 1 ? ""
                    : shown[i] == LEVEL_LEAF      ? " switches"
                                                  : "s",
                    t->endpoint[0].source[shown[i]] == SOURCE_MEASURED ? "found by measuring"
                                                                       : "declared");
    }
    fputs("\n\n", out);
}

void summary_print(FILE *out, const char *dir, const struct matrix *m,
                   const struct summary_step *step, int steps, const char *const *files, int nfiles)
{
    char text[3][UNITS_TEXT];

    print_head(out, dir, m);
    matrix_text_tiers(out, m, 0);
    fputc('\n', out);
    matrix_text_findings(out, m, PARTS_SHOWN);
    fputc('\n', out);
    matrix_text_collectives(out, m, 0, true);
    for (int i = 0; i < steps; i++)
        fprintf(out,
                "%s  %-14s %-24s %s  (%s to %s), %.4g tokens/s a device, %.0f%% exposed "
                "communication%s\n",
                i ? "" : "\npredicted training step\n", step[i].model, step[i].layout,
                units_seconds_text(text[0], step[i].sec), units_seconds_text(text[1], step[i].lo),
                units_seconds_text(text[2], step[i].hi), step[i].tokens_per_device,
                100 * step[i].exposed, step[i].fits ? "" : "; DOES NOT FIT in memory");
    if (steps)
        fprintf(out, "  compute: %s\n", step[0].compute_source);
    fputs("\nfiles in ", out);
    fprintf(out, "%s:", dir);
    for (int i = 0; i < nfiles; i++)
        fprintf(out, " %s", files[i]);
    fputc('\n', out);
}
