/* SPDX-License-Identifier: BSD-3-Clause */
/* space_constraint.c - "tp<=8,pp=1,strategy=fsdp|hsdp": a small grammar over the axes and the
 * arguments that vary. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "step/search/space.h"

/* Longer operators first. */
enum relation { AT_MOST, AT_LEAST, NOT, IS, LESS, MORE, RELATIONS };
static const char *const relation_text[RELATIONS] = {"<=", ">=", "!=", "=", "<", ">"};

static const char *const after_axes[] = {"dp", "micro-batch", "stages-per-rank"};

static const char *key_of(int number)
{
    return number < NUMBER_DP ? axis_name[number] : after_axes[number - NUMBER_DP];
}

/* One constraint, KEY OP VALUES. */
struct constraint {
    struct space *s;
    const char *key, *values;
    enum relation relation;
};

static int unknown(const char *key, struct err *err)
{
    const char *known[NUMBERS + CHOICES];
    int count = 0;

    if (argument_find(recipe_argument, key))
        return err_usage(err, "%s is the same for all layouts of a search: give it as --%s", key,
                         argument_find(recipe_argument, key)->key);
    for (int i = 0; i < NUMBERS; i++)
        if (i != AXIS_EDP)
            known[count++] = key_of(i);
    for (int i = 0; i < CHOICES; i++)
        known[count++] = space_choice[i].key;
    return recipe_word("key", key, known, count, err);
}

/* Keep the intersection. */
static void narrow(struct space_range *r, const int *value, int count)
{
    int kept[RANGE_LIST] = {0}, n = 0;

    for (int i = 0; i < count; i++) {
        bool in = r->onlys == 0;
        for (int k = 0; k < r->onlys; k++)
            in |= r->only[k] == value[i];
        if (in)
            kept[n++] = value[i];
    }
    memcpy(r->only, kept, sizeof(kept));
    r->onlys = n;
    if (n == 0)
        r->max = 0; /* empty intersection */
}

static int number_values(const struct constraint *t, int *value, int *count, struct err *err)
{
    char *copy = mem_strdup(t->values), *next = copy;
    struct err why;
    int rc = 0;

    *count = 0;
    for (char *item; rc == 0 && (item = strsep(&next, "|")) != NULL;) {
        if (*count == RANGE_LIST)
            rc = err_usage(err, "%s: more than %d alternatives", t->key, RANGE_LIST);
        else if (units_int(&value[(*count)++], item, 1, LAYOUT_RANKS_MAX, &why) < 0)
            rc = err_usage(err, "%s: %s", t->key, why.text);
    }
    if (rc == 0 && *count > 1 && t->relation != IS && t->relation != NOT)
        rc = err_usage(err, "%s%s takes one number, not \"%s\"", t->key, relation_text[t->relation],
                       t->values);
    free(copy);
    return rc;
}

static int number_term(const struct constraint *t, int number, struct err *err)
{
    struct space_range *r = &t->s->number[number];
    int value[RANGE_LIST], count;

    if (number_values(t, value, &count, err) < 0)
        return -1;
    if (!r->given) /* a constraint comes before an option */
        *r = (struct space_range){.given = true, .min = 1, .max = INT_MAX};
    if (t->relation == IS)
        narrow(r, value, count);
    else if (t->relation == NOT && r->buts + count > RANGE_LIST)
        return err_usage(err, "%s: more than %d exclusions", t->key, RANGE_LIST);
    else if (t->relation == NOT)
        for (int i = 0; i < count; i++)
            r->but[r->buts++] = value[i];
    int low = t->relation == AT_LEAST ? value[0] : t->relation == MORE ? value[0] + 1 : 1;
    int high = t->relation == AT_MOST ? value[0] : t->relation == LESS ? value[0] - 1 : INT_MAX;
    r->min = low > r->min ? low : r->min;
    r->max = high < r->max ? high : r->max;
    return 0;
}

static int choice_term(const struct constraint *t, int choice, struct err *err)
{
    static const char *const off_on[] = {"off", "on"};
    const struct argument *set = argument_find(recipe_argument, space_choice[choice].key);
    const char *const *words = set->kind == ARGUMENT_SWITCH ? off_on : set->words;
    int count = set->kind == ARGUMENT_SWITCH ? 2 : set->count, word = 0;
    char *copy = mem_strdup(t->values), *next = copy;
    unsigned mask = 0, all = (1u << count) - 1;

    for (char *item; word >= 0 && (item = strsep(&next, "|")) != NULL;) {
        word = recipe_word(set->key, item, words, count, err);
        mask |= word >= 0 ? 1u << word : 0;
    }
    free(copy);
    if (word < 0)
        return -1;
    if (t->relation != IS && t->relation != NOT)
        return err_usage(err, "%s is a word: = or !=, not %s", set->key,
                         relation_text[t->relation]);
    if (!t->s->chosen[choice] && (t->relation == IS || !space_choice[choice].usual))
        t->s->choice[choice] = all;
    t->s->chosen[choice] = true;
    t->s->choice[choice] &= t->relation == IS ? mask : all & ~mask;
    return t->s->choice[choice] ? 0 : err_usage(err, "%s: no word is left", set->key);
}

static int apply(const struct constraint *t, struct err *err)
{
    for (int i = 0; i < NUMBERS; i++)
        if (i != AXIS_EDP && argument_is(key_of(i), t->key))
            return number_term(t, i, err);
    for (int i = 0; i < CHOICES; i++)
        if (argument_is(space_choice[i].key, t->key))
            return choice_term(t, i, err);
    return unknown(t->key, err);
}

/* Split "tp<=8" in place: the operator's first character becomes the end of the key. */
static int split(struct constraint *t, char *text, struct err *err)
{
    char *at = text + strcspn(text, "=<>!");

    if (!*at || at == text)
        return err_usage(err, "\"%s\" is not KEY=VALUE (or != < <= > >=)", text);
    for (int r = 0; r < RELATIONS; r++) {
        size_t len = strlen(relation_text[r]);
        if (strncmp(at, relation_text[r], len))
            continue;
        t->relation = r;
        t->values = at + len;
        *at = '\0';
        t->key = text;
        return *t->values ? 0 : err_usage(err, "%s%s has no value", t->key, relation_text[r]);
    }
    return err_usage(err, "\"%s\" has no operator of = != < <= > >=", text);
}

int space_constrain(struct space *s, const char *text, struct err *err)
{
    char *copy = mem_strdup(text), *next = copy;
    struct err why;
    int rc = 0;

    for (char *item; rc == 0 && (item = strsep(&next, ",")) != NULL;) {
        struct constraint t = {.s = s};
        item += strspn(item, " ");
        long at = item - copy + 1;
        if (split(&t, item, &why) < 0 || apply(&t, &why) < 0)
            rc = err_usage(err, "constraint \"%s\": at %ld: %s", text, at, why.text);
    }
    free(copy);
    return rc;
}
