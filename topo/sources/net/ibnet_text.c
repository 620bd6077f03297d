/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_text.c - line parser for ibnetdiscover's text. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/tsv.h"
#include "topo/sources/net/ibnet_impl.h"

enum { NODES_MAX = 1 << 20, ID_MAX = 64, SHOWN = 60, LID_MAX = 65535 };

bool ibnet_aggregation(const char *name, long device_id)
{
    /* 0xcf08..0xcf0a: SHARP nodes of Switch-IB 2, Quantum and Quantum-2 (Mellanox PCI ids). */
    return (device_id >= 0xcf08 && device_id <= 0xcf0a) || strstr(name, "Aggregation Node");
}

void ibnet_name(char name[65], const char *text, size_t len)
{
    while (len && text[len - 1] == ' ')
        len--;
    len = len < 64 ? len : 64;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    name[len] = '\0';
}

/* Report "PATH:LINE: ..."; returns -1. */
static int bad(struct ibnet_text *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct ibnet_text *x, const char *fmt, ...)
{
    char text[384];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_data(x->err, "%s:%d: %s", x->path, x->line, text);
}

static const char *blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* Parse a decimal number of min..max and move *s behind it. */
static int number(struct ibnet_text *x, const char **s, const char *what, long min, long max,
                  int *out)
{
    char *end;
    long v = isdigit((unsigned char)**s) ? strtol(*s, &end, 10) : -1;

    if (v < min || v > max)
        return bad(x, "%s \"%.*s\" is not a number of %ld..%ld", what,
                   (int)strcspn(*s, " \t]\")") > SHOWN ? SHOWN : (int)strcspn(*s, " \t]\")"), *s,
                   min, max);
    *out = (int)v;
    *s = end;
    return 0;
}

/* Parse "4xNDR".  An unknown speed is kept by name; its rate is unknown. */
static int rate(struct ibnet_text *x, const char *word, int len, struct ibnet_end *e)
{
    char *name;
    long width = strtol(word, &name, 10);
    int n = (int)(word + len - name) - 1;

    if (*name != 'x' || n < 1 || width > 12 || !net_width((int)width))
        return bad(x, "\"%.*s\" is no width and speed of a link", len > SHOWN ? SHOWN : len, word);
    for (int i = 1; i <= n; i++) /* "4x??", "4xundefined (17)": unknown */
        if (!isupper((unsigned char)name[i]) && !isdigit((unsigned char)name[i]))
            return 0;
    if (n >= (int)sizeof(e->speed))
        return 0;
    e->width = (int)width;
    snprintf(e->speed, sizeof(e->speed), "%.*s", n, name + 1);
    return 0;
}

/* Parse the words of a comment outside its name: lids in order, and the rate. */
static int words(struct ibnet_text *x, const char *s, const char *stop, int lid[2], int *lids,
                 struct ibnet_end *e)
{
    for (s = blanks(s); s < stop; s = blanks(s)) {
        int len = (int)strcspn(s, " \t\"");
        if (s + len > stop)
            len = (int)(stop - s);
        if (len == 3 && !strncmp(s, "lid", 3)) {
            s = blanks(s + 3);
            if (number(x, &s, "lid", 0, LID_MAX, &lid[*lids < 2 ? (*lids)++ : 1]) < 0)
                return -1;
        } else if ((len == 3 && !strncmp(s, "lmc", 3)) || (len == 4 && !strncmp(s, "slot", 4))) {
            int ignored;
            s = blanks(s + len);
            if (number(x, &s, len == 3 ? "lmc" : "slot", 0, LID_MAX, &ignored) < 0)
                return -1;
        } else if (isdigit((unsigned char)*s)) {
            if (rate(x, s, len, e) < 0)
                return -1;
            s += len;
        } else {
            s += len ? len : 1;
        }
    }
    return 0;
}

/* Parse lids, width and speed, which stand only in the comment of a port line: "name" lid 647 lmc
 * 0 4xNDR.  A switch lists the lid behind the cable, other nodes their own first. */
static int comment(struct ibnet_text *x, const char *s, bool at_switch, struct ibnet_end *e)
{
    const char *name = strchr(s, '"'), *after = name ? strrchr(s, '"') : NULL;
    int lid[2] = {0, 0}, lids = 0;

    if (name && after == name)
        return bad(x, "a name without its closing quote");
    if (words(x, s, name ? name : s + strlen(s), lid, &lids, e) < 0 ||
        (name && words(x, after + 1, s + strlen(s), lid, &lids, e) < 0))
        return -1;
    e->lid = at_switch ? 0 : lid[0];
    e->peer_lid = at_switch ? lid[0] : lid[1];
    return 0;
}

/* Parse 1..16 hexadecimal digits, not all zero. */
static int hex(struct ibnet_text *x, const char **s, const char *what, uint64_t *out)
{
    size_t n = strspn(*s, "0123456789abcdefABCDEF");
    char digits[17] = "";

    if (n <= 16)
        snprintf(digits, sizeof(digits), "%.*s", (int)n, *s);
    *out = strtoull(digits, NULL, 16);
    if (!*out)
        return bad(x, "%s \"%.20s\" is not a GUID", what, *s);
    *s += n;
    return 0;
}

/* Parse "(2c5eab0300b87b40)" if present. */
static int guid_in_parentheses(struct ibnet_text *x, const char **s, uint64_t *out)
{
    const char *p = blanks(*s);

    *out = 0;
    if (*p != '(')
        return 0;
    p++;
    if (hex(x, &p, "port GUID", out) < 0)
        return -1;
    if (*p != ')')
        return bad(x, "no ) behind port GUID %016" PRIx64, *out);
    *s = p + 1;
    return 0;
}

/* Parse the quoted id at *s; returns its index. */
static int quoted_id(struct ibnet_text *x, const char **s, int *id)
{
    const char *end = **s == '"' ? strchr(*s + 1, '"') : NULL;
    char text[ID_MAX + 1];
    int len = end ? (int)(end - *s - 1) : 0;

    if (!end)
        return bad(x, "a quoted id is needed at \"%.*s\"", SHOWN, *s);
    if (len < 1 || len > ID_MAX)
        return bad(x, "an id of %d characters where 1..%d are possible", len, ID_MAX);
    snprintf(text, sizeof(text), "%.*s", len, *s + 1);
    *id = names_add(&x->ids, text);
    if (*id == x->node_ofs)
        MEM_PUSH(x->node_of, x->node_ofs) = 0;
    *s = end + 1;
    return 0;
}

/* --- records --- */

static const struct keyword {
    const char *word;
    enum net_kind kind;
    char letter; /* first letter of ids that hold a GUID: "S-2c5eab0300b87b40" */
} keywords[] = {{"Switch", NET_SWITCH, 'S'},
                {"Hca", NET_HCA, 'H'},
                {"Ca", NET_HCA, 'H'},
                {"Rt", NET_ROUTER, 'R'}};

static const struct keyword *keyword_of(const char *line)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
        size_t n = strlen(keywords[i].word);
        if (!strncmp(line, keywords[i].word, n) && (line[n] == ' ' || line[n] == '\t'))
            return &keywords[i];
    }
    return NULL;
}

/* GUID that an id contains; 0: an id of another form. */
static uint64_t id_guid(const char *id, char *letter)
{
    *letter = id[0];
    return strlen(id) == 18 && strchr("SHR", id[0]) && id[1] == '-' &&
                   strspn(id + 2, "0123456789abcdefABCDEF") == 16
               ? strtoull(id + 2, NULL, 16)
               : 0;
}

/* Take the name from a record's comment; files for ibsim often have no quotes. */
static void record_name(struct net_node *n, const char *s)
{
    static const char *const ends[] = {" enhanced port ", " base port ", " lid ", " lmc "};
    const char *open, *close;

    s = strchr(s, '#');
    if (!s)
        return;
    open = strchr(s, '"');
    close = open ? strrchr(s, '"') : NULL;
    if (close > open && open) {
        ibnet_name(n->name, open + 1, (size_t)(close - open - 1));
        return;
    }
    s = blanks(s + 1);
    size_t len = strlen(s);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        const char *at = strstr(s, ends[i]);
        if (at && (size_t)(at - s) < len)
            len = (size_t)(at - s);
    }
    ibnet_name(n->name, s, len);
}

static int record(struct ibnet_text *x, const struct keyword *k, const char *s)
{
    struct net_node n = {.kind = k->kind, .tier = -1, .host = -1};
    char letter;
    int id;

    s = blanks(s + strlen(k->word));
    if (number(x, &s, "number of ports", 1, NET_PORTS, &n.ports) < 0)
        return -1;
    s = blanks(s);
    if (quoted_id(x, &s, &id) < 0)
        return -1;
    const char *text = x->ids.name[id];
    if (x->node_of[id])
        return bad(x, "\"%s\" is there twice, first in line %d", text,
                   x->node_line[x->node_of[id] - 1]);
    n.guid = id_guid(text, &letter);
    if (n.guid && letter != k->letter)
        return bad(x, "a %s record with the id \"%s\"", k->word, text);
    if (n.guid && x->guid && x->guid != n.guid)
        return bad(x, "\"%s\" where line %d says GUID 0x%" PRIx64, text, x->guid_line, x->guid);
    n.guid = n.guid ? n.guid : x->guid;
    record_name(&n, s);
    if (!n.name[0] && !id_guid(text, &letter))
        ibnet_name(n.name, text, strlen(text));
    if (n.kind == NET_HCA && ibnet_aggregation(n.name, x->device_id))
        n.kind = NET_AGGREGATION;
    if (x->net->nodes == NODES_MAX)
        return bad(x, "more than %d nodes", NODES_MAX);
    MEM_PUSH(x->net->node, x->net->nodes) = n;
    MEM_PUSH(x->node_line, x->lines) = x->line;
    x->node_of[id] = x->net->nodes;
    x->guid = 0;
    x->device_id = 0;
    return 0;
}

/* Skip "[ext 3]", the number on a director's chassis; not needed. */
static const char *skip_ext(const char *s)
{
    return !strncmp(s, "[ext ", 5) && strchr(s, ']') ? strchr(s, ']') + 1 : s;
}

/* Parse "[17]". */
static int port_number(struct ibnet_text *x, const char **s, int *out)
{
    ++*s;
    if (number(x, s, "port", 1, NET_PORTS, out) < 0)
        return -1;
    if (**s != ']')
        return bad(x, "no ] behind port %d", *out);
    ++*s;
    return 0;
}

/* Parse a port line: [17]   "S-2c5eab0300c26280"[32]          # "spine-02" lid 236 4xNDR */
static int port_line(struct ibnet_text *x, const char *s)
{
    struct ibnet_end e = {.line = x->line, .node = x->net->nodes - 1};

    if (e.node < 0)
        return bad(x, "a port before the first Switch or Ca");
    const struct net_node *n = &x->net->node[e.node];
    if (port_number(x, &s, &e.port) < 0)
        return -1;
    if (e.port > n->ports)
        return bad(x, "port %d of a node that has %d", e.port, n->ports);
    s = skip_ext(s);
    if (guid_in_parentheses(x, &s, &e.guid) < 0)
        return -1;
    s = blanks(s);
    if (quoted_id(x, &s, &e.peer) < 0)
        return -1;
    s = blanks(s);
    e.peer_port = 1;
    if (*s == '[' && strncmp(s, "[ext ", 5) != 0 && port_number(x, &s, &e.peer_port) < 0)
        return -1;
    s = skip_ext(s);
    if (guid_in_parentheses(x, &s, &e.peer_guid) < 0)
        return -1;
    s = blanks(s);
    if (*s == '#' && comment(x, s + 1, n->kind == NET_SWITCH, &e) < 0)
        return -1;
    /* Options of ibsim: w=4 s=1. */
    if (*s && *s != '#' && !strchr(s, '='))
        return bad(x, "\"%.*s\" behind the other end of a cable", SHOWN, s);
    MEM_PUSH(x->end, x->ends) = e;
    return 0;
}

/* Parse lines such as vendid=0x2c9.  GUIDs are kept and checked against the next record. */
static int assignment(struct ibnet_text *x, const char *line)
{
    static const char *const guids[] = {"switchguid", "caguid", "rtguid", "hcaguids"};
    size_t n = strcspn(line, "=");
    const char *value = line + n + 1;

    if (n == 5 && !strncmp(line, "devid", n))
        x->device_id = strtol(value, NULL, 0);
    for (size_t i = 0; i < sizeof(guids) / sizeof(*guids); i++) {
        if (strlen(guids[i]) != n || strncmp(line, guids[i], n) != 0)
            continue;
        if (strncmp(value, "0x", 2) != 0)
            return bad(x, "%s \"%.20s\" is not a GUID", guids[i], value);
        value += 2;
        x->guid_line = x->line;
        return hex(x, &value, guids[i], &x->guid);
    }
    return 0;
}

/* True for a shell's line in the log of a terminal: "[root@ufm ~]# ibnetdiscover", "admin@ufm:~$",
 * "ufm:~ # sudo ibnetdiscover". */
static bool prompt(const char *s)
{
    static const char user[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strspn(s + (*s == '['), user);

    return (n && s[(*s == '[') + n] == '@') || (strstr(s, "ibnetdiscover") && strpbrk(s, "#$>%"));
}

/* True for lines between records that carry no facts: headings of -g, warnings if stderr went to the
 * same file, and what PuTTY, script(1) and shells write around the report in a terminal's log. */
static bool idle(const char *s)
{
    static const char *const starts[] = {
        "#",    "Chassis ",    "Non-Chassis Nodes", "Hostname:",    "ibwarn: ",
        "src/", "=~=~=~=~=~=", "Script started ",   "Script done ", "logout",
        "exit", "Last login: "};

    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(s, starts[i], strlen(starts[i])))
            return true;
    return !*s || prompt(s);
}

/* Recognise similar-looking reports of the same network; a reason, or NULL. */
static const char *other_report(const char *line)
{
    static const struct {
        const char *start, *is;
    } reports[] = {
        {"CA '", "what ibstat prints"},
        {"CA ", "a ports report (ibnetdiscover -p)"},
        {"SW ", "a ports report (ibnetdiscover -p)"},
        {"RT ", "a ports report (ibnetdiscover -p)"},
        {"Ca\t :", "a list of nodes (ibnetdiscover -l, ibhosts)"},
        {"Switch\t :", "a list of nodes (ibnetdiscover -l, ibswitches)"},
        {"Router\t :", "a list of nodes (ibnetdiscover -l, ibrouters)"},
        {"CA: ", "what iblinkinfo prints"},
        {"Switch: 0x", "what iblinkinfo prints"},
    };

    for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++)
        if (!strncmp(line, reports[i].start, strlen(reports[i].start)))
            return reports[i].is;
    return NULL;
}

static int read_line(struct ibnet_text *x, const char *line)
{
    const struct keyword *k = keyword_of(line);
    size_t word = strspn(line, "abcdefghijklmnopqrstuvwxyz");

    if (idle(line))
        return 0;
    if (other_report(line))
        return bad(x, "%s, which is not read: give what ibnetdiscover prints without options",
                   other_report(line));
    if (k)
        return record(x, k, line);
    if (line[0] == '[')
        return port_line(x, line);
    if (word && line[word] == '=')
        return assignment(x, line);
    if (!strncmp(line, "include", 7))
        return bad(x, "a file for ibsim that includes another one, which is not followed");
    return bad(x, "\"%.*s\" is no line of ibnetdiscover", SHOWN, line);
}

/* Remove what a terminal takes as a command (ECMA-48): carriage returns, CSI "ESC [ ... letter", OSC "ESC ] ... BEL", a
 * letter behind ESC.  Returns the end of what remains. */
static char *without_escapes(char *line, char *end)
{
    char *to = line;

    for (const char *c = line; c < end;) {
        if (*c != 0x1b) {
            *to = *c++;
            to += *to != '\r';
            continue;
        }
        c++;
        if (c < end && *c == '[') {
            for (c++; c < end && (*c < '@' || *c > '~');)
                c++;
            c += c < end;
        } else if (c < end && *c == ']') {
            while (c < end && *c != 0x07 && *c != 0x1b)
                c++;
            c += c < end && *c == 0x07;
        } else {
            c += c < end;
        }
    }
    return to;
}

int ibnet_text_read(struct ibnet_text *x, char *text, size_t len)
{
    for (char *line = text, *next; line < text + len; line = next) {
        char *end = memchr(line, '\n', (size_t)(text + len - line));
        next = end ? end + 1 : text + len;
        end = without_escapes(line, end ? end : text + len);
        while (end > line && strchr(" \t\r", end[-1]) && end[-1])
            end--;
        x->line++;
        if (tsv_clean(x->path, x->line, line, (size_t)(end - line), x->err) < 0)
            return -1;
        *end = '\0';
        if (read_line(x, line) < 0)
            return -1;
    }
    return 0;
}
