/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/recipe.h"

#include <string.h>

const char *const strategy_name[STRATEGY_COUNT] = {"ddp",   "zero1", "zero2",
                                                   "zero3", "fsdp",  "hsdp"};
const char *const schedule_name[SCHEDULE_COUNT] = {"1f1b", "interleaved"};
const char *const dtype_name[DTYPE_COUNT] = {"fp32", "bf16", "fp8", "nvfp4"};
const char *const recompute_name[RECOMPUTE_COUNT] = {"none", "selective", "full"};

static const struct {
    double grad_bytes;
    bool gathers;
} habit[STRATEGY_COUNT] = {
    [STRATEGY_DDP] = {2, false},  [STRATEGY_ZERO1] = {2, false}, [STRATEGY_ZERO2] = {2, false},
    [STRATEGY_ZERO3] = {2, true}, [STRATEGY_FSDP] = {4, true},   [STRATEGY_HSDP] = {4, true},
};

void recipe_defaults(struct recipe *r)
{
    *r = (struct recipe){.strategy = STRATEGY_FSDP,
                         .stages = 1,
                         .seq = 8192,
                         .micro_batch = 1,
                         .dtype = DTYPE_BF16,
                         .causal = true};
}

int recipe_word(const char *what, const char *word, const char *const *names, int n,
                struct err *err)
{
    char known[160] = "";
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        if (!strcmp(word, names[i]))
            return i;
        size_t len = strlen(names[i]);
        if (used + len + 3 < sizeof(known)) {
            memcpy(known + used, names[i], len);
            memcpy(known + used + len, ", ", 3);
            used += len + 2;
        }
    }
    known[used >= 2 ? used - 2 : 0] = '\0';
    return err_usage(err, "%s \"%s\" is not known (known: %s)", what, word, known);
}

int recipe_check(const struct recipe *r, struct err *err)
{
    if (r->stages < 1 || r->seq < 1 || r->micro_batch < 1 || r->global_batch < 0)
        return err_usage(err,
                         "stages %d, sequence %d, micro batch %d and batch %d must be positive",
                         r->stages, r->seq, r->micro_batch, r->global_batch);
    if (r->schedule == SCHEDULE_1F1B && r->stages > 1)
        return err_usage(err, "%d stages per rank need the interleaved schedule, not 1f1b",
                         r->stages);
    if (r->schedule == SCHEDULE_INTERLEAVED && r->stages < 2)
        return err_usage(err, "the interleaved schedule needs at least 2 stages per rank, not %d",
                         r->stages);
    return 0;
}

double recipe_weight_bytes(const struct recipe *r)
{
    return r->weight_bytes > 0 ? r->weight_bytes : 2;
}

double recipe_grad_bytes(const struct recipe *r)
{
    return r->grad_bytes > 0 ? r->grad_bytes : habit[r->strategy].grad_bytes;
}

bool recipe_gathers_weights(const struct recipe *r)
{
    return habit[r->strategy].gathers;
}
