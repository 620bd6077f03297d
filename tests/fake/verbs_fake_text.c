/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of devices that FAKE_VERBS names.  A line each, words after the first are KEY=VALUE:
 *   list ENOSYS                    there is no list of devices
 *   host n1 4-7                    these ranks are on a host of that name (LIDs, %h)
 *   device mlx5_0-3 layer=ib ...   four devices
 *     of all its ports: layer=ib|roce state=active|down|init|armed mtu=4096 max_mtu=4096
 *       speed=NDR width=4 lid=1 gids=8 pkeys=1 max_message=BYTES subnet=a
 *     ports=1 on=HOST open=EACCES firmware=28.39.1002 dmabuf=yes peermem=no ece=yes ordered=yes
 *     max_qp= max_qp_wr= max_sge= max_cqe= max_reads= max_inline= max_mr=BYTES memlock=BYTES
 *     rate=BYTES_PER_SECOND latency=SECONDS
 *   port 2 state=down              of the devices before
 *   gid 3 v2 ::ffff:10.0.%h.%d     or ib, v1, -; of the ports before: all, or port=2 at the end
 * The LID of a host's port is lid + 100 * the host's number + 2 * the device's + the port's - 1. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_fake.h"

static struct fake_text text;
static int first, last, only_port; /* the devices that port and gid are said of */

static void refuse(const char *what, const char *word)
{
    fprintf(stderr, "fake libibverbs: %s %s\n", what, word);
    abort();
}

struct word {
    const char *name;
    int value;
};
static const struct word words[] = {{"ib", VERBS_LINK_INFINIBAND},
                                    {"roce", VERBS_LINK_ETHERNET},
                                    {"active", VERBS_PORT_ACTIVE},
                                    {"down", VERBS_PORT_DOWN},
                                    {"init", VERBS_PORT_INIT},
                                    {"armed", VERBS_PORT_ARMED},
                                    {"yes", 1},
                                    {"no", 0},
                                    {"SDR", 1},
                                    {"DDR", 2},
                                    {"QDR", 4},
                                    {"FDR10", 8},
                                    {"FDR", 16},
                                    {"EDR", 32},
                                    {"HDR", 64},
                                    {"NDR", 128},
                                    {"XDR", 0},
                                    {"EACCES", EACCES},
                                    {"ENODEV", ENODEV},
                                    {"ENOSYS", ENOSYS},
                                    {"EIO", EIO}};

static double number(const char *value)
{
    char *end;
    double d = strtod(value, &end);

    if (end != value && !*end)
        return d;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(words[i].name, value))
            return words[i].value;
    refuse("no number or word:", value);
    return 0;
}

static int mtu_value(double bytes)
{
    for (int i = VERBS_MTU_256; i <= VERBS_MTU_4096; i++)
        if (128 << i == (int)bytes)
            return i;
    refuse("an MTU is", "256, 512, 1024, 2048 or 4096");
    return 0;
}

static bool of_port(struct fake_port *p, const char *key, const char *value)
{
    static const struct {
        const char *key;
        size_t at;
    } ints[] = {
        {"layer", offsetof(struct fake_port, layer)}, {"state", offsetof(struct fake_port, state)},
        {"speed", offsetof(struct fake_port, speed)}, {"lid", offsetof(struct fake_port, lid)},
        {"gids", offsetof(struct fake_port, gids)},   {"pkeys", offsetof(struct fake_port, pkeys)}};

    for (size_t i = 0; i < sizeof(ints) / sizeof(*ints); i++)
        if (!strcmp(ints[i].key, key)) {
            *(int *)((char *)p + ints[i].at) = (int)number(value);
            return true;
        }
    if (!strcmp(key, "mtu"))
        p->mtu = mtu_value(number(value));
    else if (!strcmp(key, "max_mtu"))
        p->max_mtu = mtu_value(number(value));
    else if (!strcmp(key, "width")) /* lanes: the ABI's bits */
        p->width = !strcmp(value, "2")   ? 16
                   : !strcmp(value, "1") ? 1
                                         : ((int)number(value) + 1) / 2;
    else if (!strcmp(key, "max_message"))
        p->max_message = (uint32_t)number(value);
    else if (!strcmp(key, "subnet"))
        snprintf(p->subnet, sizeof(p->subnet), "%.15s", value);
    else
        return false;
    return true;
}

static int host_named(const char *name)
{
    for (int i = 0; i < text.hosts; i++)
        if (!strcmp(text.host[i].name, name))
            return i;
    refuse("no host", name);
    return -1;
}

static bool of_card(struct fake_card *c, const char *key, const char *value)
{
    static const struct {
        const char *key;
        size_t at;
        char kind; /* int, bool, double */
    } members[] = {{"ports", offsetof(struct fake_card, ports), 'i'},
                   {"open", offsetof(struct fake_card, open_error), 'i'},
                   {"max_qp", offsetof(struct fake_card, max_qp), 'i'},
                   {"max_qp_wr", offsetof(struct fake_card, max_qp_wr), 'i'},
                   {"max_sge", offsetof(struct fake_card, max_sge), 'i'},
                   {"max_cqe", offsetof(struct fake_card, max_cqe), 'i'},
                   {"max_reads", offsetof(struct fake_card, max_reads), 'i'},
                   {"max_inline", offsetof(struct fake_card, max_inline), 'i'},
                   {"dmabuf", offsetof(struct fake_card, dmabuf), 'b'},
                   {"peermem", offsetof(struct fake_card, peermem), 'b'},
                   {"ece", offsetof(struct fake_card, ece), 'b'},
                   {"ordered", offsetof(struct fake_card, ordered), 'b'},
                   {"max_mr", offsetof(struct fake_card, max_mr), 'd'},
                   {"memlock", offsetof(struct fake_card, memlock), 'd'},
                   {"rate", offsetof(struct fake_card, rate_Bps), 'd'},
                   {"latency", offsetof(struct fake_card, latency), 'd'}};

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        void *at = (char *)c + members[i].at;
        if (strcmp(members[i].key, key) != 0)
            continue;
        if (members[i].kind == 'i')
            *(int *)at = (int)number(value);
        else if (members[i].kind == 'b')
            *(bool *)at = number(value) != 0;
        else
            *(double *)at = number(value);
        return true;
    }
    if (!strcmp(key, "on"))
        c->host = host_named(value);
    else if (!strcmp(key, "firmware"))
        snprintf(c->firmware, sizeof(c->firmware), "%.63s", value);
    else
        return false;
    return true;
}

static const struct fake_card plain = {
    .ports = 1,
    .firmware = "28.39.1002",
    .max_qp = 131072,
    .max_qp_wr = FAKE_RECVS,
    .max_sge = FAKE_SGES,
    .max_cqe = 1 << 22,
    .max_reads = 16,
    .max_inline = 256,
    .dmabuf = true,
    .ece = true,
    .ordered = true,
    .host = -1,
    .max_mr = 1e18,
};
static const struct fake_port plain_port = {.state = VERBS_PORT_ACTIVE,
                                            .layer = VERBS_LINK_INFINIBAND,
                                            .mtu = VERBS_MTU_4096,
                                            .max_mtu = VERBS_MTU_4096,
                                            .speed = 128,
                                            .width = 2,
                                            .lid = 1,
                                            .gids = 8,
                                            .pkeys = 1,
                                            .max_message = 1U << 30,
                                            .subnet = "a"};

/* mlx5_0-3: from, to; mlx5_bond_0 is one. */
static void add_devices(const char *name)
{
    const char *dash = strrchr(name, '-'), *digits = dash;
    char stem[VERBS_NAME];
    int from = 0, to = 0;

    while (digits && digits > name && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    if (dash && (sscanf(digits, "%d-%d", &from, &to) != 2 || to < from))
        refuse("no range of devices:", name);
    first = last = text.cards;
    for (int i = from; i <= to && text.cards < FAKE_HCAS; i++) {
        struct fake_card *c = &text.card[text.cards++];

        *c = plain;
        snprintf(stem, sizeof(stem), "%.*s", dash ? (int)(digits - name) : 60, name);
        if (dash)
            snprintf(c->name, sizeof(c->name), "%.50s%d", stem, i);
        else
            snprintf(c->name, sizeof(c->name), "%s", stem);
        for (int p = 0; p < FAKE_PORTS; p++)
            c->port[p] = plain_port;
        last = text.cards - 1;
    }
    only_port = 0;
}

/* What the kernel puts into the table of an Ethernet port with an IPv4 address. */
static void usual_gids(struct fake_port *p, int port)
{
    static const char *const roce[] = {"fe80::%h:%d", "fe80::%h:%d", "::ffff:10.%d.%h.1",
                                       "::ffff:10.%d.%h.1"};

    for (int i = 0; i < FAKE_GIDS; i++)
        if (p->gid[i].text[0])
            return;
    if (p->layer == VERBS_LINK_INFINIBAND) {
        snprintf(p->gid[0].text, sizeof(p->gid[0].text), "fe80::%%h:%%d:%d", port);
        p->gid[0].type = VERBS_GID_IB;
        return;
    }
    for (int i = 0; i < 4; i++) {
        snprintf(p->gid[i].text, sizeof(p->gid[i].text), "%s", roce[i]);
        if (port > 1) /* another interface, another address */
            snprintf(p->gid[i].text, sizeof(p->gid[i].text),
                     i < 2 ? "fe80::%%h:%%d:%d" : "::ffff:10.%%d.%%h.%d", port);
        p->gid[i].type = i % 2 ? VERBS_GID_ROCE_V2 : VERBS_GID_ROCE_V1;
    }
}

static void set(int card, char *pair)
{
    char *value = strchr(pair, '=');
    struct fake_card *c = &text.card[card];
    bool known = false;

    if (!value)
        refuse("no KEY=VALUE:", pair);
    *value = '\0';
    known = !only_port && of_card(c, pair, value + 1);
    for (int p = 1; p <= FAKE_PORTS; p++)
        if (!only_port || only_port == p)
            known |= of_port(&c->port[p - 1], pair, value + 1);
    if (!known)
        refuse("no key", pair);
    *value = '=';
}

static void set_all(char *rest)
{
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        for (int i = first; i <= last && *word; i++)
            set(i, word);
}

static void add_gid(const char *rest)
{
    char type[8], address[64];
    int index, port = 0, n = sscanf(rest, "%d %7s %63s port=%d", &index, type, address, &port);

    if (n < 3 || index < 0 || index >= FAKE_GIDS)
        refuse("no gid INDEX TYPE ADDRESS:", rest);
    for (int i = first; i <= last; i++)
        for (int p = 1; p <= FAKE_PORTS; p++) {
            struct fake_gid *g = &text.card[i].port[p - 1].gid[index];
            if (port && port != p)
                continue;
            snprintf(g->text, sizeof(g->text), "%s", strcmp(type, "-") != 0 ? address : "");
            g->type = !strcmp(type, "v2")   ? VERBS_GID_ROCE_V2
                      : !strcmp(type, "v1") ? VERBS_GID_ROCE_V1
                                            : VERBS_GID_IB;
        }
}

static void add_host(const char *name, const char *ranks)
{
    int from, to, n = sscanf(ranks, "%d-%d", &from, &to);

    if (n < 1 || text.hosts == FAKE_HOSTS)
        refuse("no ranks of a host:", ranks);
    snprintf(text.host[text.hosts].name, sizeof(text.host->name), "%.63s", name);
    text.host[text.hosts].from = from;
    text.host[text.hosts++].to = n == 2 ? to : from;
}

static void read_line(char *line)
{
    char *rest = line, *key, *name;

    line[strcspn(line, "#\n")] = '\0';
    key = strsep(&rest, " ");
    if (!*key)
        return;
    if (!strcmp(key, "gid") && rest) {
        add_gid(rest);
        return;
    }
    name = strsep(&rest, " ");
    if (!name)
        refuse("half a line:", key);
    else if (!strcmp(key, "device"))
        add_devices(name);
    else if (!strcmp(key, "port"))
        only_port = (int)number(name);
    else if (!strcmp(key, "host") && rest)
        add_host(name, rest);
    else if (!strcmp(key, "list"))
        text.no_list = (int)number(name);
    else
        refuse("no such line:", key);
    if (!strcmp(key, "device") || !strcmp(key, "port"))
        set_all(rest);
}

static void read_text(void)
{
    const char *path = getenv("FAKE_VERBS");
    FILE *f = path ? fopen(path, "r") : NULL;
    char line[512], usual[] = "device mlx5_0-3 layer=ib";

    if (path && !f)
        refuse("no file", path);
    while (f && fgets(line, sizeof(line), f))
        read_line(line);
    if (f)
        fclose(f);
    else
        read_line(usual);
    for (int i = 0; i < text.cards; i++)
        for (int p = 1; p <= FAKE_PORTS; p++)
            usual_gids(&text.card[i].port[p - 1], p);
}

const struct fake_text *text_of(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_text);
    return &text;
}

int text_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

int text_host(void)
{
    int rank = text_rank();

    for (int i = 0; i < text_of()->hosts; i++)
        if (rank >= text.host[i].from && rank <= text.host[i].to)
            return i;
    return 0;
}

const struct fake_port *text_port(struct fake_place p)
{
    return &text_of()->card[p.card].port[p.port - 1];
}

int text_lid(struct fake_place p)
{
    const struct fake_port *port = text_port(p);

    return port->layer == VERBS_LINK_INFINIBAND ? port->lid + 100 * p.host + 2 * p.card + p.port - 1
                                                : 0;
}

bool text_gid(struct fake_place p, int index, struct verbs_gid_entry *out)
{
    const struct fake_port *port = text_port(p);
    char address[128] = "";
    size_t used = 0;

    memset(out, 0, sizeof(*out));
    out->index = (uint32_t)index;
    out->port = (uint32_t)p.port;
    out->ifindex = port->layer == VERBS_LINK_ETHERNET ? (uint32_t)(2 + p.card) : 0;
    if (index < 0 || index >= port->gids || index >= FAKE_GIDS || !port->gid[index].text[0])
        return false;
    for (const char *c = port->gid[index].text; *c && used < sizeof(address) - 16; c++)
        if (*c == '%' && c[1])
            used += (size_t)snprintf(address + used, 16, "%d", *++c == 'h' ? p.host : p.card);
        else
            address[used++] = *c;
    address[used] = '\0';
    if (inet_pton(AF_INET6, address, out->gid.raw) != 1)
        refuse("no address:", address);
    out->type = (uint32_t)port->gid[index].type;
    return true;
}

bool text_ipv4(const union verbs_gid *gid)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid->raw, mapped, sizeof(mapped));
}
