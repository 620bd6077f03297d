/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_text.c - the lines of ibnetdiscover's text. */
#include "topo/net/ibnet_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/tsv.h"

enum { NODES_MAX = 1 << 20, ID_MAX = 64, SHOWN = 60 };

/* Hexadecimal digits, 1..16 of them and not all zero. */
static int hex(struct ibnet_text *x, const char **s, const char *what, uint64_t *out)
{
    size_t n = strspn(*s, "0123456789abcdefABCDEF");
    char digits[17] = "";

    if (n <= 16)
        snprintf(digits, sizeof(digits), "%.*s", (int)n, *s);
    *out = strtoull(digits, NULL, 16);
    if (!*out)
        return BAD(x, "%s \"%.20s\" is not a GUID", what, *s);
    *s += n;
    return 0;
}

/* "(2c5eab0300b87b40)" where there is one. */
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
        return BAD(x, "no ) behind port GUID %016" PRIx64, *out);
    *s = p + 1;
    return 0;
}

/* The quoted id at *s: its index. */
static int quoted_id(struct ibnet_text *x, const char **s, int *id)
{
    const char *end = **s == '"' ? strchr(*s + 1, '"') : NULL;
    char text[ID_MAX + 1];
    int len = end ? (int)(end - *s - 1) : 0;

    if (!end)
        return BAD(x, "a quoted id is needed at \"%.*s\"", SHOWN, *s);
    if (len < 1 || len > ID_MAX)
        return BAD(x, "an id of %d characters where 1..%d are possible", len, ID_MAX);
    snprintf(text, sizeof(text), "%.*s", len, *s + 1);
    *id = topo_add_group(&x->ids, LEVEL_LEAF, text);
    if (*id == x->node_ofs)
        MEM_PUSH(x->node_of, x->node_ofs) = 0;
    *s = end + 1;
    return 0;
}

/* --- records --- */

static const struct keyword {
    const char *word;
    enum net_kind kind;
    char letter; /* of ids with a GUID: "S-2c5eab0300b87b40" */
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

/* The GUID that an id spells, 0 for an id of another form. */
static uint64_t id_guid(const char *id, char *letter)
{
    *letter = id[0];
    return strlen(id) == 18 && strchr("SHR", id[0]) && id[1] == '-' &&
                   strspn(id + 2, "0123456789abcdefABCDEF") == 16
               ? strtoull(id + 2, NULL, 16)
               : 0;
}

/* The name in a record's comment; ibsim's users leave the quotes out. */
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
    if (ibnet_number(x, &s, "number of ports", 1, NET_PORTS, &n.ports) < 0)
        return -1;
    s = blanks(s);
    if (quoted_id(x, &s, &id) < 0)
        return -1;
    const char *text = x->ids.group[LEVEL_LEAF].name[id];
    if (x->node_of[id])
        return BAD(x, "\"%s\" is there twice, first in line %d", text,
                   x->node_line[x->node_of[id] - 1]);
    n.guid = id_guid(text, &letter);
    if (n.guid && letter != k->letter)
        return BAD(x, "a %s record with the id \"%s\"", k->word, text);
    if (n.guid && x->guid && x->guid != n.guid)
        return BAD(x, "\"%s\" where line %d says GUID 0x%" PRIx64, text, x->guid_line, x->guid);
    n.guid = n.guid ? n.guid : x->guid;
    record_name(&n, s);
    if (!n.name[0] && !id_guid(text, &letter))
        ibnet_name(n.name, text, strlen(text));
    if (n.kind == NET_HCA && ibnet_aggregation(n.name, x->device_id))
        n.kind = NET_AGGREGATION;
    if (x->net->nodes == NODES_MAX)
        return BAD(x, "more than %d nodes", NODES_MAX);
    MEM_PUSH(x->net->node, x->net->nodes) = n;
    MEM_PUSH(x->node_line, x->lines) = x->line;
    x->node_of[id] = x->net->nodes;
    x->guid = 0;
    x->device_id = 0;
    return 0;
}

/* "[ext 3]": the number on the director's case; not needed. */
static const char *skip_ext(const char *s)
{
    return !strncmp(s, "[ext ", 5) && strchr(s, ']') ? strchr(s, ']') + 1 : s;
}

/* "[17]" */
static int port_number(struct ibnet_text *x, const char **s, int *out)
{
    ++*s;
    if (ibnet_number(x, s, "port", 1, NET_PORTS, out) < 0)
        return -1;
    if (**s != ']')
        return BAD(x, "no ] behind port %d", *out);
    ++*s;
    return 0;
}

/* [17]   "S-2c5eab0300c26280"[32]          # "spine-02" lid 236 4xNDR */
static int port_line(struct ibnet_text *x, const char *s)
{
    struct ibnet_end e = {.line = x->line, .node = x->net->nodes - 1};

    if (e.node < 0)
        return BAD(x, "a port before the first Switch or Ca");
    const struct net_node *n = &x->net->node[e.node];
    if (port_number(x, &s, &e.port) < 0)
        return -1;
    if (e.port > n->ports)
        return BAD(x, "port %d of a node that has %d", e.port, n->ports);
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
    if (*s == '#' && ibnet_comment(x, s + 1, n->kind == NET_SWITCH, &e) < 0)
        return -1;
    /* ibsim's options: w=4 s=1 */
    if (*s && *s != '#' && !strchr(s, '='))
        return BAD(x, "\"%.*s\" behind the other end of a cable", SHOWN, s);
    MEM_PUSH(x->end, x->ends) = e;
    return 0;
}

/* vendid=0x2c9; GUIDs are checked against the record that follows. */
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
            return BAD(x, "%s \"%.20s\" is not a GUID", guids[i], value);
        value += 2;
        x->guid_line = x->line;
        return hex(x, &value, guids[i], &x->guid);
    }
    return 0;
}

/* Lines between records that say nothing: headings of -g, and warnings of a call whose stderr went
 * into the same file. */
static bool idle(const char *s)
{
    static const char *const starts[] = {"#",         "Chassis ", "Non-Chassis Nodes",
                                         "Hostname:", "ibwarn: ", "src/"};

    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(s, starts[i], strlen(starts[i])))
            return true;
    return !*s;
}

/* What looks like it and is another report of the same network; a reason, or NULL. */
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
        return BAD(x, "%s, which is not read: give what ibnetdiscover prints without options",
                   other_report(line));
    if (k)
        return record(x, k, line);
    if (line[0] == '[')
        return port_line(x, line);
    if (word && line[word] == '=')
        return assignment(x, line);
    if (!strncmp(line, "include", 7))
        return BAD(x, "a file for ibsim that includes another one, which is not followed");
    return BAD(x, "\"%.*s\" is no line of ibnetdiscover", SHOWN, line);
}

static int read_lines(struct ibnet_text *x, char *text, size_t len)
{
    for (char *line = text, *next; line < text + len; line = next) {
        char *end = memchr(line, '\n', (size_t)(text + len - line));
        next = end ? end + 1 : text + len;
        end = end ? end : text + len;
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

static int check(struct ibnet_text *x)
{
    int a, b;

    if (!x->net->nodes)
        return err_data(x->err, "%s: no Switch and no Ca: not the text of ibnetdiscover", x->path);
    if (net_twins(x->net, &a, &b))
        return ibnet_bad(x, x->node_line[b],
                         "GUID 0x%" PRIx64 " is that of the node in line %d too",
                         x->net->node[b].guid, x->node_line[a]);
    return 0;
}

int ibnet_parse(struct net **n, const char *text, size_t len, const char *path, struct err *err)
{
    struct ibnet_text x = {.path = path, .err = err, .net = mem_calloc(1, sizeof(*x.net))};
    char *copy = mem_calloc(len + 1, 1);

    memcpy(copy, text, len);
    topo_init(&x.ids);
    int rc = read_lines(&x, copy, len) < 0 || check(&x) < 0 || ibnet_join(&x) < 0 ? -1 : 0;
    if (rc == 0)
        net_tiers(x.net);
    else
        net_free(x.net);
    *n = rc == 0 ? x.net : NULL;
    topo_free(&x.ids);
    free(x.node_line);
    free(x.node_of);
    free(x.end);
    free(copy);
    return rc;
}
