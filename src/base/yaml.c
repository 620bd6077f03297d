/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/mem.h"

/* Words that YAML 1.1 readers do not take as text (y and n too). */
static bool special(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcasecmp(text, words[i]))
            return true;
    return false;
}

void yaml_put(FILE *f, const char *text)
{
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._/-");

    if (!text[plain] && isalpha((unsigned char)*text) && !special(text)) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            fprintf(f, "\\x%02x", (unsigned char)*text);
        else
            fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}

/* --- lines --- */

static void note_line(struct yaml *y, const json_t *value, int line)
{
    if (!json_is_null(value) && !json_is_boolean(value))
        MEM_PUSH(y->line, y->lines) = (struct yaml_line){value, line};
}

static int by_value(const void *x, const void *y)
{
    const struct yaml_line *a = x, *b = y;

    return (a->value > b->value) - (a->value < b->value);
}

int yaml_line(const struct yaml *y, const json_t *value)
{
    const struct yaml_line key = {value, 0}, *at = NULL;

    if (y->lines)
        at = bsearch(&key, y->line, (size_t)y->lines, sizeof(*at), by_value);
    return at ? at->line : 0;
}

const char *yaml_where(struct yaml *y, const json_t *value)
{
    int line = yaml_line(y, value);

    snprintf(y->where, sizeof(y->where), line ? "%.300s:%d" : "%.300s", y->path, line);
    return y->where;
}

char *yaml_text(const json_t *value)
{
    if (json_is_integer(value))
        return mem_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return json_is_string(value) ? mem_strdup(json_string_value(value)) : NULL;
}

/* --- scalars --- */

/* Decimal digits without leading zero, optionally after a minus sign. */
static bool is_integer(const char *s)
{
    s += *s == '-';
    return s[strspn(s, "0123456789")] == '\0' && *s && (*s != '0' || !s[1]);
}

/* True for numbers in JSON's syntax: "inf" and "1." stay texts. */
static bool is_real(const char *s)
{
    s += *s == '-';
    size_t whole = strspn(s, "0123456789");
    if (!whole || (*s == '0' && whole > 1))
        return false;
    s += whole;
    if (*s == '.') {
        size_t part = strspn(++s, "0123456789");
        if (!part)
            return false;
        s += part;
    }
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '+' || s[1] == '-');
        if (!*s)
            return false;
        s += strspn(s, "0123456789");
    }
    return *s == '\0';
}

/* Value of a plain scalar; NULL: text. */
static json_t *plain(const char *s)
{
    static const struct {
        const char *word;
        int is; /* 0 null, 1 true, 2 false */
    } words[] = {{"", 0},     {"~", 0},    {"null", 0},  {"Null", 0},  {"NULL", 0}, {"true", 1},
                 {"True", 1}, {"TRUE", 1}, {"false", 2}, {"False", 2}, {"FALSE", 2}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(s, words[i].word))
            return words[i].is == 0 ? json_null() : json_boolean(words[i].is == 1);
    errno = 0;
    if (is_integer(s)) {
        long long v = strtoll(s, NULL, 10);
        return errno ? NULL : json_integer(v);
    }
    if (!is_real(s))
        return NULL;
    double v = strtod(s, NULL);
    return errno ? NULL : json_real(v);
}

static int check_tag(const struct yaml *y, const yaml_char_t *tag, int line, struct err *err)
{
    if (!tag || !strcmp((const char *)tag, YAML_STR_TAG))
        return 0;
    return err_data(err, "%s:%d: tag \"%.60s\" is not read", y->path, line, (const char *)tag);
}

static json_t *scalar(struct yaml *y, const yaml_event_t *e, int line, struct err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    json_t *v = NULL;

    if (check_tag(y, e->data.scalar.tag, line, err) < 0)
        return NULL;
    if (strlen(text) != len) {
        err_data(err, "%s:%d: a text with a byte of 0", y->path, line);
        return NULL;
    }
    if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.tag)
        v = plain(text);
    if (!v && !(v = json_stringn(text, len)))
        err_data(err, "%s:%d: a text that is not UTF-8", y->path, line);
    return v;
}

/* --- documents --- */

/* Open collections; the root owns everything below. */
struct build {
    struct yaml *y;
    json_t *open[YAML_DEPTH];
    int depth, values;
    char *key; /* key of an object; its value is next */
};

static int line_of(const yaml_event_t *e)
{
    return (int)e->start_mark.line + 1;
}

/* Add a new value at the current place; takes ownership. */
static int put(struct build *b, json_t *v, int line, struct err *err)
{
    json_t *in = b->depth ? b->open[b->depth - 1] : NULL;

    if (++b->values > YAML_VALUES) {
        json_decref(v);
        return err_data(err, "%s:%d: more than %d values", b->y->path, line, YAML_VALUES);
    }
    note_line(b->y, v, line);
    if (!in) {
        b->y->root = v;
    } else if (json_is_array(in)) {
        json_array_append_new(in, v);
    } else {
        json_object_set_new(in, b->key, v);
        free(b->key);
        b->key = NULL;
    }
    return 0;
}

/* Handle a scalar as the key of an object. */
static int put_key(struct build *b, const yaml_event_t *e, struct err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    int line = line_of(e);

    if (check_tag(b->y, e->data.scalar.tag, line, err) < 0)
        return -1;
    json_t *check = json_stringn(text, e->data.scalar.length);
    bool bad = !check || strlen(text) != e->data.scalar.length;
    json_decref(check);
    if (bad)
        return err_data(err, "%s:%d: a key that is not text", b->y->path, line);
    if (json_object_get(b->open[b->depth - 1], text))
        return err_data(err, "%s:%d: key \"%.60s\" is there twice", b->y->path, line, text);
    b->key = mem_strdup(text);
    return 0;
}

static int start(struct build *b, const yaml_event_t *e, struct err *err)
{
    bool map = e->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
    int line = line_of(e);

    if (tag)
        return err_data(err, "%s:%d: tag \"%.60s\" is not read", b->y->path, line,
                        (const char *)tag);
    if (b->depth == YAML_DEPTH)
        return err_data(err, "%s:%d: more than %d levels deep", b->y->path, line, YAML_DEPTH);
    json_t *v = map ? json_object() : json_array();
    if (put(b, v, line, err) < 0)
        return -1;
    b->open[b->depth++] = v;
    return 0;
}

static int take_event(struct build *b, const yaml_event_t *e, struct err *err)
{
    bool object = b->depth && json_is_object(b->open[b->depth - 1]);
    bool wants_key = object && !b->key;
    json_t *v;

    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return err_data(err, "%s:%d: alias \"*%.60s\": aliases are not read", b->y->path,
                        line_of(e), (const char *)e->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        if (wants_key)
            return put_key(b, e, err);
        v = scalar(b->y, e, line_of(e), err);
        return v ? put(b, v, line_of(e), err) : -1;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (wants_key)
            return err_data(err, "%s:%d: a key that is not text", b->y->path, line_of(e));
        return start(b, e, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        if (b->values)
            return err_data(err, "%s:%d: a second document; one is read", b->y->path, line_of(e));
        return 0;
    default:
        return 0;
    }
}

static int syntax(const struct yaml *y, const yaml_parser_t *p, struct err *err)
{
    size_t line = p->problem_mark.line + 1;

    if (p->error == YAML_MEMORY_ERROR)
        return err_io(err, "%s: out of memory", y->path);
    if (p->error == YAML_READER_ERROR)
        return err_data(err, "%s: %s at byte %zu", y->path, p->problem, p->problem_offset);
    return err_data(err, "%s:%zu: %s%s%s", y->path, line, p->problem ? p->problem : "not YAML",
                    p->context ? " " : "", p->context ? p->context : "");
}

static int parse_yaml(struct yaml *y, const char *text, size_t len, struct err *err)
{
    struct build b = {.y = y};
    yaml_parser_t parser;
    bool end = false;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return err_io(err, "%s: no memory", y->path);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    while (rc == 0 && !end) {
        yaml_event_t e;
        if (!yaml_parser_parse(&parser, &e)) {
            rc = syntax(y, &parser, err);
            break;
        }
        end = e.type == YAML_STREAM_END_EVENT;
        rc = take_event(&b, &e, err);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    free(b.key);
    return rc;
}

/* --- JSON --- */

static int check_json(const struct yaml *y, json_t *v, int depth, int *values, struct err *err)
{
    const char *key;
    json_t *item;
    size_t i;

    if (++*values > YAML_VALUES)
        return err_data(err, "%s: more than %d values", y->path, YAML_VALUES);
    if (!json_is_array(v) && !json_is_object(v))
        return 0;
    if (depth == YAML_DEPTH)
        return err_data(err, "%s: more than %d levels deep", y->path, YAML_DEPTH);
    json_array_foreach(v, i, item) if (check_json(y, item, depth + 1, values, err) < 0) return -1;
    json_object_foreach(v, key,
                        item) if (check_json(y, item, depth + 1, values, err) < 0) return -1;
    return 0;
}

static int parse_json(struct yaml *y, const char *text, size_t len, struct err *err)
{
    json_error_t e;
    int values = 0;

    y->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!y->root)
        return err_data(err, "%s:%d: %s", y->path, e.line, e.text);
    return check_json(y, y->root, 0, &values, err);
}

int yaml_parse(struct yaml *y, const char *text, size_t len, const char *path, struct err *err)
{
    size_t blank = 0;

    while (blank < len && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    bool json = blank < len && (text[blank] == '{' || text[blank] == '[');

    *y = (struct yaml){.path = mem_strdup(path)};
    if (len > YAML_BYTES)
        return err_data(err, "%s: %zu bytes is more than %d", path, len, YAML_BYTES);
    if ((json ? parse_json(y, text, len, err) : parse_yaml(y, text, len, err)) < 0)
        return -1;
    if (!y->root)
        y->root = json_null();
    if (y->lines)
        qsort(y->line, (size_t)y->lines, sizeof(*y->line), by_value);
    return 0;
}

void yaml_done(struct yaml *y)
{
    json_decref(y->root);
    free(y->line);
    free(y->path);
    *y = (struct yaml){.root = NULL};
}
