/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_gid_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum family { LINK_LOCAL, GLOBAL_IPV6, IPV4, FAMILIES };
static const char *const family_text[FAMILIES] = {"link-local IPv6", "IPv6", "IPv4"};

const char *verbs_gid_type_text(int type)
{
    return type == VERBS_GID_ROCE_V2 ? "RoCE v2" : type == VERBS_GID_ROCE_V1 ? "RoCE v1" : "IB";
}

const char *verbs_gid_text(char out[VERBS_GID_TEXT], const union verbs_gid *gid)
{
    if (!inet_ntop(AF_INET6, gid->raw, out, VERBS_GID_TEXT))
        snprintf(out, VERBS_GID_TEXT, "?");
    return out;
}

static enum family family_of(const union verbs_gid *gid)
{
    return verbs_gid_is_ipv4(gid)                                ? IPV4
           : gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? LINK_LOCAL
                                                                 : GLOBAL_IPV6;
}

/* --- table of a port --- */

/* Rules 1, 2 and 4: rating of a single row. */
static int worth(const struct verbs_gid_row *r)
{
    return (r->type == VERBS_GID_ROCE_V2) * 100 + (int)family_of(&r->gid) * 10 + !r->other;
}

static bool better(const struct verbs_address *a, const struct verbs_gid_row *x,
                   const struct verbs_gid_row *y)
{
    if (a->asked >= 0 && (x->index == a->asked) != (y->index == a->asked))
        return x->index == a->asked;
    return worth(x) != worth(y) ? worth(x) > worth(y) : x->index < y->index;
}

void verbs_gid_add(struct verbs_address *a, const struct verbs_gid_row *row)
{
    int at = a->rows;

    while (at > 0 && better(a, row, &a->row[at - 1]))
        at--;
    if (at == VERBS_GIDS)
        return;
    if (a->rows < VERBS_GIDS)
        a->rows++;
    memmove(&a->row[at + 1], &a->row[at], sizeof(*row) * (size_t)(a->rows - at - 1));
    a->row[at] = *row;
}

/* --- two ports --- */

static bool same_bits(const union verbs_gid *a, const union verbs_gid *b, int bits)
{
    for (int i = 0; i < bits; i++)
        if ((a->raw[i / 8] ^ b->raw[i / 8]) & 0x80 >> i % 8)
            return false;
    return true;
}

/* The prefix counts from the first bit of the address; if the interface has none, assume the usual
 * size of a network. */
static bool same_subnet(const struct verbs_gid_row *x, const struct verbs_gid_row *y)
{
    bool ipv4 = verbs_gid_is_ipv4(&x->gid);
    int bits = x->prefix < y->prefix ? x->prefix : y->prefix;

    return same_bits(&x->gid, &y->gid, (ipv4 ? 96 : 0) + (bits ? bits : ipv4 ? 24 : 64));
}

static bool fit(const struct verbs_gid_row *x, const struct verbs_gid_row *y)
{
    return x->type == y->type && family_of(&x->gid) == family_of(&y->gid);
}

/* Rating of two rows together, by the rules in order; 0: no packet would arrive. */
static int worth_pair(const struct verbs_gid_row *x, const struct verbs_gid_row *y)
{
    if (!fit(x, y))
        return 0;
    return 1 + (x->type == VERBS_GID_ROCE_V2) * 1000 + (int)family_of(&x->gid) * 100 +
           same_subnet(x, y) * 10 + !x->other + !y->other;
}

/* Both ends must find the same two rows, so use one order for both; host names may be equal in
 * containers. */
static bool turned(const struct verbs_address *one, const struct verbs_address *two)
{
    int order = strcmp(one->host, two->host);

    if (!order)
        order = strcmp(one->who, two->who);
    for (int i = 0; i < one->rows && i < two->rows && !order; i++)
        order = memcmp(&one->row[i].gid, &two->row[i].gid, sizeof(one->row[i].gid));
    return order > 0;
}

static int find_rows(const struct verbs_address *one, const struct verbs_address *two,
                     const struct verbs_gid_row **x, const struct verbs_gid_row **y)
{
    bool turn = turned(one, two);
    int best = 0, first = 0;

    for (int i = 0; i < one->rows; i++)
        for (int k = 0; k < two->rows; k++) {
            int w = worth_pair(&one->row[i], &two->row[k]);
            int a = one->row[i].index, b = two->row[k].index;
            int place = turn ? b * 65536 + a : a * 65536 + b;
            if (w > best || (w == best && w && place < first)) {
                best = w;
                first = place;
                *x = &one->row[i];
                *y = &two->row[k];
            }
        }
    return best;
}

static void say_row(char *out, size_t size, const struct verbs_gid_row *r)
{
    char gid[VERBS_GID_TEXT];

    snprintf(out, size, "%s %s", verbs_gid_type_text(r->type), verbs_gid_text(gid, &r->gid));
}

/* The entries that the user requested do not match. */
static int refuse_asked(const struct verbs_address *mine, const struct verbs_address *theirs,
                        struct err *err)
{
    const struct verbs_gid_row *x = &mine->row[0], *y = &theirs->row[0];
    char a[80], b[80];

    say_row(a, sizeof(a), x);
    say_row(b, sizeof(b), y);
    if (fit(x, y))
        return err_config(err,
                          "GID %d of %s on %s is %s, and %s on %s has %s, in another subnet, where "
                          "other entries are in one: leave --gid-index out",
                          x->index, mine->who, mine->host, a, theirs->who, theirs->host, b);
    return err_config(err, "GID %d of %s on %s is %s; peer %s uses %s: no packet would arrive",
                      x->index, mine->who, mine->host, a, theirs->host, b);
}

static int refuse_all(const struct verbs_address *mine, const struct verbs_address *theirs,
                      struct err *err)
{
    char a[80] = "nothing", b[80] = "nothing";

    if (mine->rows)
        say_row(a, sizeof(a), &mine->row[0]);
    if (theirs->rows)
        say_row(b, sizeof(b), &theirs->row[0]);
    return err_config(err,
                      "%s on %s and %s on %s have no addresses of one type and family (%s there, "
                      "%s here): no packet would arrive",
                      theirs->who, theirs->host, mine->who, mine->host, b, a);
}

static void take_rows(struct verbs_path *out, const struct verbs_gid_row *x,
                      const struct verbs_gid_row *y, bool asked)
{
    *out = (struct verbs_path){
        .global = true, .sgid_index = x->index, .type = x->type, .sgid = x->gid, .dgid = y->gid};
    snprintf(out->why, sizeof(out->why), "%s%s, %s, %s%s", asked ? "--gid-index: " : "",
             verbs_gid_type_text(x->type), family_text[family_of(&x->gid)],
             same_subnet(x, y) ? "one subnet" : "two subnets: routed",
             x->other || y->other ? ", an interface above the port's" : "");
}

static int path_asked(struct verbs_path *out, const struct verbs_address *mine,
                      const struct verbs_address *theirs, struct err *err)
{
    const struct verbs_gid_row *x = &mine->row[0], *y = &theirs->row[0], *i = NULL, *k = NULL;

    if (!mine->rows || !theirs->rows)
        return refuse_all(mine, theirs, err);
    find_rows(mine, theirs, &i, &k);
    if (!fit(x, y) || (!same_subnet(x, y) && i && same_subnet(i, k)))
        return refuse_asked(mine, theirs, err);
    take_rows(out, x, y, true);
    return 0;
}

static int path_roce(struct verbs_path *out, const struct verbs_address *mine,
                     const struct verbs_address *theirs, struct err *err)
{
    const struct verbs_gid_row *x = NULL, *y = NULL;

    if (mine->asked >= 0)
        return path_asked(out, mine, theirs, err);
    if (!find_rows(mine, theirs, &x, &y))
        return refuse_all(mine, theirs, err);
    take_rows(out, x, y, false);
    return 0;
}

static int path_ib(struct verbs_path *out, const struct verbs_address *mine,
                   const struct verbs_address *theirs, struct err *err)
{
    bool asked = mine->asked >= 0 && mine->rows;
    const union verbs_gid *from = asked ? &mine->row[0].gid : &mine->first;
    const union verbs_gid *to = asked && theirs->rows ? &theirs->row[0].gid : &theirs->first;

    *out = (struct verbs_path){.global = from->prefix != to->prefix || asked,
                               .sgid_index = asked ? mine->row[0].index : 0,
                               .type = VERBS_GID_IB,
                               .sgid = *from,
                               .dgid = *to};
    if (!out->global && !theirs->lid)
        return err_config(err, "%s on %s has no LID: does a subnet manager run?", theirs->who,
                          theirs->host);
    snprintf(out->why, sizeof(out->why), "%s",
             asked         ? "--gid-index: global route header"
             : out->global ? "two subnets: global route header"
                           : "one subnet: LID");
    return 0;
}

int verbs_gid_path(struct verbs_path *out, const struct verbs_address *mine,
                   const struct verbs_address *theirs, struct err *err)
{
    if (mine->ethernet != theirs->ethernet)
        return err_config(err, "%s on %s is %s, %s on %s is %s: no packet would arrive", mine->who,
                          mine->host, mine->ethernet ? "Ethernet" : "InfiniBand", theirs->who,
                          theirs->host, theirs->ethernet ? "Ethernet" : "InfiniBand");
    return (mine->ethernet ? path_roce : path_ib)(out, mine, theirs, err);
}
