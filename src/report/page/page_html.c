/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/page/page_impl.h"

/* --- text --- */

/* Length of the UTF-8 character at s; 0: invalid, or not allowed in HTML. */
static int character(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] >= 0xf5 || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] == 0x7f ||
        (s[0] < ' ' && s[0] != '\n' && s[0] != '\t'))
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static void escaped(FILE *out, const char *text)
{
    static const struct {
        char c;
        const char *as;
    } special[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

    for (const unsigned char *s = (const unsigned char *)(text ? text : ""); *s;) {
        const char *as = NULL;
        int n = character(s);
        for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
            if (*s == special[i].c)
                as = special[i].as;
        if (as || !n)
            fputs(as ? as : "\xef\xbf\xbd", out);
        else
            fwrite(s, 1, (size_t)n, out);
        s += n ? n : 1;
    }
}

/* Write a conversion other than %s, like fprintf(). */
static void converted(FILE *out, const char *spec, va_list *ap)
{
    size_t len = strlen(spec);
    bool big = len > 2 && spec[len - 2] == 'l';

    // NOLINTBEGIN(clang-diagnostic-format-nonliteral): pieces of html()'s own formats
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strchr("di", spec[len - 1]) && big)
        fprintf(out, spec, va_arg(*ap, long));
    else if (strchr("dic", spec[len - 1]))
        fprintf(out, spec, va_arg(*ap, int));
    else
        fprintf(out, spec, va_arg(*ap, double));
#pragma GCC diagnostic pop
    // NOLINTEND
}

void html(FILE *out, const char *fmt, ...)
{
    char spec[16];
    va_list ap;

    va_start(ap, fmt);
    for (const char *s = fmt; *s; s++) {
        if (*s != '%') {
            putc(*s, out);
            continue;
        }
        size_t n = strcspn(s + 1, "sdicfg%") + 2;
        if (s[n - 1] == 's')
            escaped(out, va_arg(ap, const char *));
        else if (s[n - 1] == '%')
            putc('%', out);
        else {
            snprintf(spec, sizeof(spec), "%.*s", (int)n, s);
            converted(out, spec, &ap);
        }
        s += n - 1;
    }
    va_end(ap);
}

void html_json(FILE *out, json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));

    for (const char *s = text ? text : "null"; *s; s++)
        if (*s == '<')
            fputs("\\u003c", out);
        else
            putc(*s, out);
    free(text);
}

char *percent_text(char buf[PERCENT_TEXT], double share)
{
    if (isfinite(share))
        snprintf(buf, PERCENT_TEXT, "%.1f %%", 100 * share);
    else
        snprintf(buf, PERCENT_TEXT, "-");
    return buf;
}

/* --- elements --- */

void html_section(FILE *out, const char *id, char *heading)
{
    html(out, "<section id=\"%s\" aria-labelledby=\"h-%s\">\n<h2 id=\"h-%s\">%s</h2>\n", id, id, id,
         heading);
    free(heading);
}

void html_table(FILE *out, const char *id, const char *caption, const char *heads)
{
    html(out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"c-%s\"><table "
         "id=\"%s\">"
         "<caption id=\"c-%s\">%s</caption><thead><tr>",
         id, id, id, caption);
    for (const char *s = heads; *s;) {
        bool figure = *s == '#';
        size_t n = strcspn(s, "|");
        html(out, "<th scope=\"col\"%c", figure ? ' ' : '>');
        if (figure)
            html(out, "class=\"n\">");
        fwrite(s + figure, 1, n - figure, out);
        html(out, "</th>");
        s += n + (s[n] == '|');
    }
    html(out, "</tr></thead>\n<tbody>\n");
}

/* --- codes --- */

char *html_base64(const unsigned char *in, size_t len)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = mem_calloc(len / 3 * 4 + 5, 1), *to = out;

    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)in[i] << 16 | (i + 1 < len ? (unsigned)in[i + 1] << 8 : 0) |
                     (i + 2 < len ? in[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            *to++ = i + (size_t)k > len ? '=' : digit[v >> (18 - 6 * k) & 63];
    }
    return out;
}

/* --- SHA-256 (FIPS 180-4) --- */

struct sha {
    uint32_t h[8];
    const uint32_t *k;
    size_t done; /* bytes in whole blocks */
};

static uint32_t turned(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* Fractions of the roots of the first primes, as in the standard: computed once, not typed. */
static const uint32_t *sha_constants(uint32_t start[8])
{
    static uint32_t k[64];
    static const int digits = 32;

    for (int n = 0, p = 2; n < 64; p++) {
        bool prime = true;
        for (int d = 2; d * d <= p; d++)
            prime &= p % d != 0;
        if (!prime)
            continue;
        long double root = cbrtl(p), square = sqrtl(p);
        if (n < 8)
            start[n] = (uint32_t)ldexpl(square - floorl(square), digits);
        k[n++] = (uint32_t)ldexpl(root - floorl(root), digits);
    }
    return k;
}

/* One round; the caller turns the names of a..h instead of moving their values. */
#define SHA_ROUND(a, b, c, d, e, f, g, h, i)                                                       \
    do {                                                                                           \
        uint32_t t1 = (h) + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +                       \
                      (((e) & (f)) ^ (~(e) & (g))) + k[i] + w[i];                                  \
        (d) += t1;                                                                                 \
        (h) = t1 + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +                                \
              (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                                           \
    } while (0)

static void sha_block(struct sha *s, const unsigned char *p)
{
    const uint32_t *k = s->k;
    uint32_t w[64], v[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) +
               (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof(v));
    for (int i = 0; i < 64; i += 8) {
        SHA_ROUND(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], i);
        SHA_ROUND(v[7], v[0], v[1], v[2], v[3], v[4], v[5], v[6], i + 1);
        SHA_ROUND(v[6], v[7], v[0], v[1], v[2], v[3], v[4], v[5], i + 2);
        SHA_ROUND(v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[4], i + 3);
        SHA_ROUND(v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], i + 4);
        SHA_ROUND(v[3], v[4], v[5], v[6], v[7], v[0], v[1], v[2], i + 5);
        SHA_ROUND(v[2], v[3], v[4], v[5], v[6], v[7], v[0], v[1], i + 6);
        SHA_ROUND(v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[0], i + 7);
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static struct sha sha_begin(void)
{
    struct sha s = {{0}, NULL, 0};

    s.k = sha_constants(s.h);
    return s;
}

/* Take the whole blocks of the text.  Returns the number of bytes used. */
static size_t sha_take(struct sha *s, const char *text, size_t len)
{
    const size_t whole = len / 64 * 64;

    for (size_t at = 0; at < whole; at += 64)
        sha_block(s, (const unsigned char *)text + at);
    s->done += whole;
    return whole;
}

/* Take the last bytes, fewer than a block. */
static void sha_end(struct sha *s, unsigned char digest[32], const char *rest, size_t len)
{
    unsigned char last[128] = {0};
    const uint64_t bits = (uint64_t)(s->done + len) * 8;
    const size_t end = len < 56 ? 64 : 128;

    memcpy(last, rest, len);
    last[len] = 0x80;
    for (int i = 0; i < 8; i++)
        last[end - 1 - (size_t)i] = (unsigned char)(bits >> 8 * i);
    for (size_t at = 0; at < end; at += 64)
        sha_block(s, last + at);
    for (int i = 0; i < 32; i++)
        digest[i] = (unsigned char)(s->h[i / 4] >> (24 - i % 4 * 8));
}

struct sha_file {
    struct sha sha;
    unsigned char digest[32];
    size_t len;
};

static int take_block(void *to, char *text, size_t *len, bool over, struct err *err)
{
    struct sha_file *f = to;
    const size_t all = *len;

    (void)err;
    *len = sha_take(&f->sha, text, all);
    f->len += *len;
    if (!over)
        return 0;
    sha_end(&f->sha, f->digest, text + *len, all - *len);
    f->len += all - *len;
    *len = all;
    return 0;
}

/* Points are hundreds of megabytes: the file is read block by block. */
int html_file_hex(char buf[HTML_HEX], size_t *len, const char *path)
{
    struct sha_file f = {.sha = sha_begin()};

    if (file_blocks(path, take_block, &f, NULL) < 0)
        return -1;
    for (int i = 0; i < 32; i++)
        snprintf(buf + 2 * i, 3, "%02x", f.digest[i]);
    *len = f.len;
    return 0;
}

char *html_hash(char buf[HTML_HASH], const char *text, size_t len)
{
    struct sha s = sha_begin();
    unsigned char digest[32];
    const size_t used = sha_take(&s, text, len);

    sha_end(&s, digest, text + used, len - used);
    char *code = html_base64(digest, sizeof(digest));
    snprintf(buf, HTML_HASH, "%s", code);
    free(code);
    return buf;
}
