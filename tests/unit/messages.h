/* messages.h - the messages of a step of shipped models, added up, for the tests of traffic. */
#ifndef RG_TESTS_MESSAGES_H
#define RG_TESTS_MESSAGES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "step/traffic.h"

static struct model model, scout, oss, deepseek, large;

static inline void list(struct traffic *t, const struct model *m, const struct layout *l,
                        const struct recipe *r)
{
    struct step step;

    step_of(&step, m, l, r);
    traffic_of(t, &step);
}

static inline int load(void **state)
{
    (void)state;
    return model_load(&model, "llama3.1-8b", NULL) < 0 ||
                   model_load(&scout, "llama4-scout", NULL) < 0 ||
                   model_load(&oss, "gpt-oss-120b", NULL) < 0 ||
                   model_load(&deepseek, "deepseek-v3", NULL) < 0 ||
                   model_load(&large, "llama3.1-405b", NULL) < 0
               ? -1
               : 0;
}

static inline int unload(void **state)
{
    (void)state;
    model_free(&model);
    model_free(&scout);
    model_free(&oss);
    model_free(&deepseek);
    model_free(&large);
    return 0;
}

/* The same for any model, recipe as it is; batch in microbatches. */
static inline void make_of(struct traffic *t, struct layout *l, struct recipe *r,
                           const struct model *m, const char *text, int microbatches)
{
    struct err err = {.text = ""};

    assert_int_equal(layout_parse(l, text, (enum strategy)r->strategy, ORDER_MEGATRON, 0, NULL), 0);
    r->global_batch =
        microbatches * l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch;
    if (layout_check(l, m, r, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    list(t, m, l, r);
}

/* The traffic of llama3.1-8b; batch is in microbatches of one sequence per data-parallel rank. */
static inline void make(struct traffic *t, struct layout *l, struct recipe *r, const char *text,
                        enum strategy strategy, int microbatches)
{
    r->strategy = strategy;
    assert_int_equal(layout_parse(l, text, strategy, ORDER_MEGATRON, 0, NULL), 0);
    r->global_batch = microbatches * l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE];
    assert_int_equal(layout_check(l, &model, r, NULL), 0);
    list(t, &model, l, r);
}

/* Sum of S * count over messages of `op` on `axes` (0: any). */
static inline double sum(const struct traffic *t, int op, unsigned axes)
{
    double bytes = 0;

    for (int i = 0; i < t->messages; i++)
        if ((int)t->message[i].op == op && (!axes || t->message[i].axes == axes))
            bytes += t->message[i].bytes * t->message[i].count;
    return bytes;
}

/* Sum of S * count over the messages of that label, and how many there are of them. */
static inline double sum_label(const struct traffic *t, const char *label, double *count)
{
    double bytes = 0;

    *count = 0;
    for (int i = 0; i < t->messages; i++)
        if (!strcmp(t->message[i].label, label)) {
            bytes += t->message[i].bytes * t->message[i].count;
            *count += t->message[i].count;
        }
    return bytes;
}

static inline void assert_label(const struct traffic *t, const char *label, double bytes,
                                double count)
{
    double have_count, have = sum_label(t, label, &have_count);

    if (!(have_count > count * (1 - 1e-9) && have_count < count * (1 + 1e-9)))
        fail_msg("%s: %.12g messages, not %.12g", label, have_count, count);
    if (!(have > bytes * (1 - 1e-9) && have < bytes * (1 + 1e-9)))
        fail_msg("%s: %.12g bytes, not %.12g", label, have, bytes);
}

static inline void assert_none(const struct traffic *t, const char *label)
{
    double count;

    sum_label(t, label, &count);
    assert_float_equal(count, 0, 0);
}

#endif
