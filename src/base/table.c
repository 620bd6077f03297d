/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"

static void push(struct table *t, const char *text)
{
    MEM_PUSH(t->cell, t->cells) = text ? mem_strdup(text) : NULL;
}

void table_open(struct table *t, const struct table_column *column)
{
    *t = (struct table){.column = column, .rows = json_array()};
    for (const struct table_column *c = column; c->unit; c++)
        if (c->head) {
            push(t, c->head);
            t->columns++;
        }
}

static const char *number(char buf[UNITS_TEXT], const struct table_column *c, double x)
{
    const char *unit = c->unit, *format = strchr(unit, '%');

    if (isnan(x) || (isinf(x) && strcmp(unit, "exact") != 0))
        return NULL;
    if (!strcmp(unit, "bytes"))
        return units_bytes_text(buf, x);
    if (!strcmp(unit, "seconds"))
        return x > 0 ? units_seconds_text(buf, x) : NULL;
    if (!strcmp(unit, "rate"))
        return x > 0 ? units_rate_text(buf, x) : NULL;
    snprintf(buf, UNITS_TEXT, format ? format : "%.9g", format > unit ? atof(unit) * x : x);
    return buf;
}

/* Convert a value to JSON, a new reference; *text is its text, in buf if it is composed. */
static json_t *take(const struct table_column *c, va_list *ap, const char **text, char *buf)
{
    if (!strncmp(c->unit, "text", 4) || !strcmp(c->unit, "figure")) {
        *text = va_arg(*ap, const char *);
        /* json_string(NULL) is NULL. */
        return *text || c->unit[4] != '?' ? json_string(*text) : json_null();
    }
    if (!strcmp(c->unit, "json"))
        return va_arg(*ap, json_t *);
    if (!strcmp(c->unit, "flag")) {
        bool yes = va_arg(*ap, int);
        *text = yes ? "yes" : "no";
        return json_boolean(yes);
    }
    if (!strcmp(c->unit, "count")) {
        int n = va_arg(*ap, int);
        snprintf(buf, UNITS_TEXT, "%d", n);
        *text = buf;
        return json_integer(n);
    }
    double x = va_arg(*ap, double);
    *text = number(buf, c, x);
    return json_finite(x);
}

void table_add(struct table *t, ...)
{
    json_t *row = json_object();
    va_list ap;

    va_start(ap, t);
    for (const struct table_column *c = t->column; c->unit; c++) {
        char buf[UNITS_TEXT];
        const char *text = NULL;
        json_t *value = take(c, &ap, &text, buf);
        if (c->head)
            push(t, text);
        json_object_set_new(row, c->key, value); /* does nothing without key or value */
    }
    va_end(ap);
    json_array_append_new(t->rows, row);
}

/* --- as text --- */

int table_width(FILE *out)
{
    struct winsize size;
    const char *env = getenv("COLUMNS");
    int columns;

    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return env && units_int(&columns, env, 1, 9999, NULL) == 0 ? columns : 80;
}

/* Width of n bytes in characters: continuation bytes of UTF-8 do not count. */
static int width(const char *s, size_t n)
{
    int w = 0;

    for (size_t i = 0; i < n; i++)
        w += ((unsigned char)s[i] & 0xc0) != 0x80;
    return w;
}

/* Bytes of the first word; "%" belongs to the number before it. */
static size_t word_length(const char *text)
{
    size_t n = strcspn(text, " ");

    while (n && text[n] && text[n + 1] == '%')
        n += 1 + strcspn(text + n + 1, " ");
    return n;
}

/* Return the bytes of the first line of a text in at most `columns` characters, at least one word. */
static size_t first_line(const char *text, int columns)
{
    const size_t lead = strspn(text, " ");
    size_t end = lead;

    for (size_t next = lead; text[next]; next += strspn(text + next, " ")) {
        next += word_length(text + next);
        if (end > lead && width(text, next) > columns)
            break;
        end = next;
    }
    return end;
}

void table_wrap(FILE *out, int indent, const char *fmt, ...)
{
    int columns = table_width(out), at = 0;
    va_list ap;

    va_start(ap, fmt);
    char *whole = mem_vprintf(fmt, ap);
    const char *text = whole;
    va_end(ap);
    do {
        size_t n = first_line(text, columns - at);
        fprintf(out, "%*s%.*s\n", at, "", (int)n, text);
        text += n;
        text += strspn(text, " ");
        at = indent;
    } while (*text);
    free(whole);
}

/* Column behind the first gap of a line; 4: none in the left half. */
static int second_column(const char *line, int columns)
{
    const char *at = strstr(line + strspn(line, " "), "  ");

    at = at ? at + strspn(at, " ") : line;
    return at > line && at - line <= columns / 2 ? (int)(at - line) : 4;
}

void table_wrap_lines(FILE *out, char *text)
{
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        table_wrap(out, second_column(line, table_width(out)), "%s", line);
    }
}

void table_wrap_marked(FILE *out, int indent, size_t mark, const char *line)
{
    bool whole = (int)strlen(line) <= table_width(out);
    char *word = mem_strndup(line, whole ? mark : 0);

    log_mark(out, word);
    table_wrap(out, indent, "%s", line + strlen(word));
    free(word);
}

/* Names are left-aligned; numbers, and "figure" texts, right-aligned. */
static bool is_left(const struct table_column *c)
{
    return !strncmp(c->unit, "text", 4) || !strcmp(c->unit, "flag");
}

/* A column of the text. */
struct shown_column {
    const struct table_column *is;
    int width;       /* chosen */
    int body, least; /* with a folded head; with folded texts, too */
    bool empty;      /* unknown in all rows, and left out */
};

/* Return a cell as text: unknown is "-", counts have commas; buf: if composed. */
static const char *shown(const struct table *t, const struct shown_column *c, int i, char *buf)
{
    if (i < t->columns)
        return t->cell[i];
    if (!t->cell[i])
        return "-";
    return strcmp(c->is->unit, "count") ? t->cell[i] : units_count_text(buf, atof(t->cell[i]), 0);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int longest_word(const char *text)
{
    int most = 0;

    for (size_t n; *text; text += n) {
        text += strspn(text, " ");
        n = word_length(text);
        most = larger(most, width(text, n));
    }
    return most;
}

static int lead_of(const char *text)
{
    return (int)strspn(text, " ");
}

enum { HANG = 2 }; /* indentation of a text's further lines, so that rows can be told apart */

/* Measure the columns.  Heads and texts may be broken at blanks, figures may not. */
static void measure(const struct table *t, struct shown_column *c)
{
    const struct table_column *is = t->column;
    char buf[UNITS_TEXT];

    for (int k = 0; k < t->columns; k++, is++) {
        while (!is->head)
            is++;
        c[k] = (struct shown_column){.is = is, .empty = t->cells > t->columns};
    }
    for (int i = 0; i < t->cells; i++) {
        struct shown_column *x = &c[i % t->columns];
        const char *text = shown(t, x, i, buf);
        bool head = i < t->columns;
        int w = width(text, strlen(text)), word = longest_word(text);
        int hanging =
            word + (is_left(x->is) && !head && word + lead_of(text) < w ? lead_of(text) + HANG : 0);
        x->width = larger(x->width, w);
        x->body = larger(x->body, head ? word : w);
        x->least = larger(x->least, head || is_left(x->is) ? hanging : w);
        x->empty = x->empty && (head || !t->cell[i] || !*t->cell[i]);
    }
}

/* Take characters from the columns with the most to spare until a line fits. */
static int fit(struct shown_column *c, int columns, int over, bool texts)
{
    for (; over > 0; over--) {
        struct shown_column *most = NULL;
        int spare = 0;
        for (int k = 0; k < columns; k++) {
            int of = c[k].empty ? 0 : c[k].width - (texts ? c[k].least : c[k].body);
            most = of > spare ? &c[k] : most;
            spare = larger(spare, of);
        }
        if (!most)
            return over;
        most->width--;
    }
    return 0;
}

/* Print a piece of a cell; *blanks: blanks owed to the line, so that none ends it. */
static void print_piece(FILE *out, const struct shown_column *c, int columns, const char *text,
                        int n, bool marked, int *blanks)
{
    int pad = columns - width(text, (size_t)n);

    *blanks += c->width - columns;
    if (n == 0) {
        *blanks += columns;
        return;
    }
    fprintf(out, "%*s", *blanks + (is_left(c->is) ? 0 : pad), "");
    char *piece = mem_printf("%.*s", n, text);
    if (marked)
        log_mark(out, piece);
    else
        fputs(piece, out);
    free(piece);
    *blanks = is_left(c->is) ? pad : 0;
}

/* Width left for line number `line` of a cell whose text begins with `lead` blanks. */
static int room(const struct shown_column *c, bool head, int line, int lead)
{
    return c->width - (line && !head && is_left(c->is) ? lead + HANG : 0);
}

static int lines_of(const struct shown_column *c, bool head, const char *text)
{
    int lines = 0, lead = lead_of(text);

    for (; *text; lines++, text += strspn(text, " "))
        text += first_line(text, room(c, head, lines, lead));
    return lines;
}

/* Print a row of cells; heads stand at the bottom of theirs. */
static void print_row(FILE *out, const struct table *t, const struct shown_column *c, int row,
                      int indent)
{
    const char **rest = mem_calloc((size_t)t->columns, sizeof(*rest));
    char(*buf)[UNITS_TEXT] = mem_calloc((size_t)t->columns, sizeof(*buf));
    int lines = 1, *from = mem_calloc((size_t)t->columns, sizeof(*from)),
        *lead = mem_calloc((size_t)t->columns, sizeof(*lead));

    for (int k = 0; k < t->columns; k++) {
        rest[k] = shown(t, &c[k], row * t->columns + k, buf[k]);
        lead[k] = lead_of(rest[k]);
        from[k] = c[k].empty ? 0 : lines_of(&c[k], !row, rest[k]);
        lines = from[k] > lines ? from[k] : lines;
    }
    for (int l = 0; l < lines; l++) {
        int blanks = indent;
        for (int k = 0, first = 1; k < t->columns; k++) {
            if (c[k].empty)
                continue;
            bool due = row > 0 || l >= lines - from[k];
            int columns = room(&c[k], !row, l, lead[k]),
                n = due ? (int)first_line(rest[k], columns) : 0;
            bool marked =
                row > 0 && !strcmp(c[k].is->unit, "text!") && t->cell[row * t->columns + k];
            blanks += first ? 0 : 2;
            first = 0;
            print_piece(out, &c[k], columns, rest[k], n, marked, &blanks);
            rest[k] += n;
            rest[k] += strspn(rest[k], " ");
        }
        fputc('\n', out);
    }
    free(from);
    free(lead);
    free(buf);
    free(rest);
}

void table_print(FILE *out, const struct table *t, int indent)
{
    struct shown_column *c = mem_calloc((size_t)t->columns, sizeof(*c));
    int all = indent - 2;

    measure(t, c);
    for (int k = 0; k < t->columns; k++)
        all += c[k].empty ? 0 : c[k].width + 2;
    all = fit(c, t->columns, all - table_width(out), false);
    fit(c, t->columns, all, true);
    for (int row = 0; row < t->cells / t->columns; row++)
        print_row(out, t, c, row, indent);
    free(c);
}

void table_tsv(FILE *out, const struct table *t)
{
    for (int i = 0; i < t->cells; i++)
        fprintf(out, "%s%c", t->cell[i] ? t->cell[i] : "", (i + 1) % t->columns ? '\t' : '\n');
}

json_t *table_rows(struct table *t)
{
    json_t *rows = json_incref(t->rows);

    table_free(t);
    return rows;
}

void table_free(struct table *t)
{
    for (int i = 0; i < t->cells; i++)
        free(t->cell[i]);
    free(t->cell);
    json_decref(t->rows);
    *t = (struct table){0};
}
