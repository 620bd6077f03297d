/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/matrix_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* The type that json_take() would ask for. */
static char type_of(const struct json_member *m)
{
    static const char type[] = {
        [MEMBER_INT] = 'i',    [MEMBER_COUNT] = 'i', [MEMBER_NUMBER] = 'o', [MEMBER_FLAG] = 'b',
        [MEMBER_TEXT] = 's',   [MEMBER_NAME] = 's',  [MEMBER_WORD] = 's',   [MEMBER_LOANED] = 's',
        [MEMBER_OBJECT] = 'o', [MEMBER_PART] = 'o'};

    return type[m->kind];
}

static int read_word(const struct json_member *m, const char *text, const char *where, int *out,
                     struct err *err)
{
    int i = m->find ? m->find(text) : 0;

    while (!m->find && i < m->words && strcmp(m->word[i], text))
        i++;
    *out = i;
    if (i >= 0 && (m->find || i < m->words))
        return 0;
    return m->what ? err_data(err, "%s: \"%s\" is no %s", where, text, m->what)
                   : err_data(err, "%s: %s \"%s\" is not known", where, m->key, text);
}

static int read_name(const struct json_member *m, const char *text, const char *where, char *out,
                     struct err *err)
{
    size_t len = strlen(text);

    if (!len || len >= m->room)
        return err_data(err, "%s.%s: \"%s\" has not 1..%zu characters", where, m->key, text,
                        m->room - 1);
    memcpy(out, text, len + 1);
    return 0;
}

static int read_object(json_t *value, const char *where, const struct json_member *m, void *at,
                       struct err *err)
{
    char place[JSON_WHERE];

    snprintf(place, sizeof(place), "%s.%s", where, m->key);
    return json_read(value, place, m->members, at, err);
}

static int read_member(json_t *object, json_t *v, const char *where, const struct json_member *m,
                       void *whole, struct err *err)
{
    void *at = (char *)whole + m->at;

    switch (m->kind) {
    case MEMBER_INT:
        *(int *)at = v ? (int)json_integer_value(v) : (int)m->absent;
        return 0;
    case MEMBER_COUNT:
        *(double *)at = (double)json_integer_value(v);
        return 0;
    case MEMBER_NUMBER:
        *(double *)at = m->absent;
        return json_number(object, where, m->key, m->min, m->max, m->optional, at, err);
    case MEMBER_FLAG:
        *(bool *)at = json_is_true(v);
        return 0;
    case MEMBER_TEXT:
        *(char **)at = v ? mem_strdup(json_string_value(v)) : NULL;
        return 0;
    case MEMBER_LOANED:
        *(const char **)at = json_string_value(v);
        return 0;
    case MEMBER_NAME:
        return read_name(m, json_string_value(v), where, at, err);
    case MEMBER_WORD:
        *(int *)at = (int)m->absent;
        return v ? read_word(m, json_string_value(v), where, at, err) : 0;
    case MEMBER_OBJECT:
        return v ? read_object(v, where, m, at, err) : 0;
    default:
        return v ? m->read(whole, v, where, err) : 0;
    }
}

int json_read(json_t *object, const char *where, const struct json_member *members, void *whole,
              struct err *err)
{
    struct json_key key[MEMBERS_MAX] = {{NULL, false, 0}};
    json_t *value[MEMBERS_MAX];
    int n = 0;

    for (const struct json_member *m = members; m->key; m++)
        key[n++] = (struct json_key){m->key, m->optional, type_of(m)};
    if (json_take_keys(object, where, key, n, value, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (read_member(object, value[i], where, &members[i], whole, err) < 0)
            return -1;
    return 0;
}

/* True if the value is the one that an absent member stands for. */
static bool is_absent(const struct json_member *m, const void *whole)
{
    const void *at = (const char *)whole + m->at;

    if (m->when || !m->optional)
        return m->when && !m->when(whole);
    switch (m->kind) {
    case MEMBER_INT:
        return *(const int *)at == m->absent;
    case MEMBER_NUMBER:
        return isnan(*(const double *)at) || *(const double *)at == m->absent;
    case MEMBER_FLAG:
        return !*(const bool *)at;
    case MEMBER_TEXT:
    case MEMBER_LOANED:
        return !*(char *const *)at;
    default:
        return false;
    }
}

static json_t *write_member(const struct json_member *m, const void *whole)
{
    const void *at = (const char *)whole + m->at;

    switch (m->kind) {
    case MEMBER_INT:
        return json_integer(*(const int *)at);
    case MEMBER_COUNT:
        return json_integer(llround(*(const double *)at));
    case MEMBER_NUMBER:
        return json_real(isnan(*(const double *)at) ? 0 : *(const double *)at);
    case MEMBER_FLAG:
        return json_boolean(*(const bool *)at);
    case MEMBER_NAME:
        return json_string(at);
    case MEMBER_WORD:
        return json_string(m->word[*(const int *)at]);
    case MEMBER_OBJECT:
        return json_write(m->members, at);
    case MEMBER_PART:
        return m->write(whole);
    default:
        return json_string(*(char *const *)at ? *(char *const *)at : "");
    }
}

json_t *json_write(const struct json_member *members, const void *whole)
{
    json_t *out = json_object();

    for (const struct json_member *m = members; m->key; m++)
        if (!is_absent(m, whole) && json_object_set_new(out, m->key, write_member(m, whole)) < 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

int json_each(json_t *list, const char *where, json_read_fn *read, void *whole, struct err *err)
{
    char at[JSON_WHERE];
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        snprintf(at, sizeof(at), "%s[%zu]", where, i);
        if (read(whole, item, at, err) < 0)
            return -1;
    }
    return 0;
}
