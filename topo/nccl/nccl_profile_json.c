/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "topo/nccl/nccl_profile.h"
#include "topo/nccl/nccl_profile_file.h"

const char *const nccl_seat_columns[] = {"endpoint", "net", "busid", "nvls"};
const char *const nccl_port_columns[] = {"seat", "number", "name", "gdr"};
const char *const nccl_comm_columns[] = {"id",    "ranks",    "rank",     "nodes",
                                         "local", "mnnvl",    "coll",     "nvls",
                                         "p2p",   "p2p_peer", "complete", "endpoints"};
const char *const nccl_graph_columns[] = {"comm",      "kind",      "pattern",    "channels",
                                          "intra_Bps", "inter_Bps", "type_intra", "type_inter"};
const char *const nccl_ring_columns[] = {"comm", "ranks"};
const char *const nccl_link_columns[] = {"comm",    "from", "to",     "via",      "nic",
                                         "through", "gdr",  "shared", "receives", "channels"};
const char *const nccl_choice_columns[] = {"comm", "op", "bytes", "algo", "proto", "channels"};
const char *const nccl_dump_columns[] = {"comm"};
const char *const nccl_gpu_columns[] = {"dump",  "rank", "dev",     "sm",   "host",
                                        "busid", "gdr",  "nvlinks", "paths"};
const char *const nccl_net_columns[] = {"dump", "dev", "host", "name",
                                        "Bps",  "gdr", "rail", "plane"};

static json_t *index_or_null(int i)
{
    return i < 0 ? json_null() : json_integer(i);
}

static json_t *flag_or_null(int i)
{
    return i < 0 ? json_null() : json_boolean(i);
}

static json_t *number_or_null(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

static json_t *text_or_null(const char *s)
{
    json_t *j = *s ? json_string(s) : NULL;

    return j ? j : json_null();
}

static json_t *id_text(uint64_t x)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, x);
    return json_string(text);
}

static json_t *texts(char *const *list, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, text_or_null(list[i]));
    return out;
}

/* An empty table in `into`; its rows are returned (borrowed). */
static json_t *table(json_t *into, const char *name, const char *const *columns, int count)
{
    json_t *names = json_array(), *rows = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(names, json_string(columns[i]));
    json_object_set_new(into, name, json_pack("{s:o, s:o}", "columns", names, "rows", rows));
    return rows;
}

static void put_seats(json_t *out, const struct nccl_profile *p)
{
    json_t *seats = table(out, "seats", nccl_seat_columns, SEAT_COLUMNS);
    json_t *ports = table(out, "ports", nccl_port_columns, PORT_COLUMNS);

    for (int i = 0; i < p->seats; i++) {
        const struct nccl_seat *s = &p->seat[i];
        json_array_append_new(seats, json_pack("[o, o, o, o]", index_or_null(s->endpoint),
                                               text_or_null(s->net), text_or_null(s->busid),
                                               flag_or_null(s->nvls)));
        for (int k = 0; k < s->nics; k++)
            json_array_append_new(
                ports, json_pack("[i, o, o, o]", i, index_or_null(s->nic[k].number),
                                 text_or_null(s->nic[k].name), flag_or_null(s->nic[k].gdr)));
    }
}

static json_t *ring_row(const struct nccl_comm_profile *c, int ring)
{
    int each = c->endpoint ? c->ranks : 2;
    json_t *row = json_array();

    for (int i = 0; i < each; i++)
        json_array_append_new(row, json_integer(c->ring[ring * each + i]));
    return row;
}

static json_t *members(const struct nccl_comm_profile *c)
{
    json_t *out = json_array();

    for (int i = 0; i < c->ranks; i++)
        json_array_append_new(out, index_or_null(c->endpoint[i]));
    return out;
}

static void put_comms(json_t *out, const struct nccl_profile *p)
{
    json_t *comms = table(out, "comms", nccl_comm_columns, COMM_COLUMNS);
    json_t *graphs = table(out, "graphs", nccl_graph_columns, GRAPH_COLUMNS);
    json_t *rings = table(out, "rings", nccl_ring_columns, RING_COLUMNS);

    for (int i = 0; i < p->comms; i++) {
        const struct nccl_comm_profile *c = &p->comm[i];
        json_array_append_new(
            comms, json_pack("[o, i, o, o, o, o, o, o, o, o, b, o]", id_text(c->hash), c->ranks,
                             index_or_null(c->rank), index_or_null(c->nodes ? c->nodes : -1),
                             index_or_null(c->local ? c->local : -1), flag_or_null(c->mnnvl),
                             index_or_null(c->coll), index_or_null(c->nvls), index_or_null(c->p2p),
                             index_or_null(c->p2p_peer), c->complete,
                             c->endpoint ? members(c) : json_null()));
        for (int k = 0; k < NCCL_GRAPH_COUNT; k++) {
            const struct nccl_graph *g = &c->graph[k];
            if (g->pattern)
                json_array_append_new(
                    graphs, json_pack("[i, s, i, i, o, o, o, o]", i, nccl_graph_name[k], g->pattern,
                                      g->channels, number_or_null(g->intra_Bps),
                                      number_or_null(g->inter_Bps), text_or_null(g->type_intra),
                                      text_or_null(g->type_inter)));
        }
        for (int k = 0; k < c->rings; k++)
            json_array_append_new(rings, json_pack("[i, o]", i, ring_row(c, k)));
    }
}

static void put_links(json_t *out, const struct nccl_profile *p)
{
    json_t *links = table(out, "links", nccl_link_columns, LINK_COLUMNS);
    json_t *choices = table(out, "choices", nccl_choice_columns, CHOICE_COLUMNS);

    for (int i = 0; i < p->links; i++) {
        const struct nccl_link *k = &p->link[i];
        json_array_append_new(links, json_pack("[i, i, i, s, o, o, b, b, b, i]", p->link_comm[i],
                                               k->from, k->to, nccl_via_name[k->via],
                                               index_or_null(k->net), index_or_null(k->through),
                                               k->gdr, k->shared, k->receives, k->channels));
    }
    for (int i = 0; i < p->choices; i++) {
        const struct nccl_choice *c = &p->choice[i];
        json_array_append_new(choices, json_pack("[i, o, I, s, s, o]", c->comm, text_or_null(c->op),
                                                 (json_int_t)c->bytes, c->algo, c->proto,
                                                 index_or_null(c->channels)));
    }
}

/* The routes of a GPU: [[type, Bps], ...] to the GPUs, then to the NICs of the dump. */
static json_t *routes(const struct nccl_paths *p, int g)
{
    json_t *out = json_array();

    for (int i = 0; i < p->gpus + p->nets; i++) {
        const struct nccl_route *r =
            i < p->gpus ? &p->pair[g * p->gpus + i] : &p->nic[g * p->nets + i - p->gpus];
        json_array_append_new(
            out, json_pack("[s, o]", nccl_path_type_name[r->type], number_or_null(r->Bps)));
    }
    return out;
}

static void put_paths(json_t *out, const struct nccl_profile *p)
{
    json_t *dumps = table(out, "dumps", nccl_dump_columns, DUMP_COLUMNS);
    json_t *gpus = table(out, "gpus", nccl_gpu_columns, GPU_COLUMNS);
    json_t *nets = table(out, "nets", nccl_net_columns, NET_COLUMNS);

    for (int i = 0; i < p->n_paths; i++) {
        const struct nccl_paths *d = &p->paths[i];
        json_array_append_new(dumps, json_pack("[o]", index_or_null(p->paths_comm[i])));
        for (int k = 0; k < d->gpus; k++) {
            const struct nccl_xml_gpu *g = &d->gpu[k];
            json_array_append_new(gpus, json_pack("[i, o, i, i, o, o, b, i, o]", i,
                                                  index_or_null(g->rank), g->dev, g->sm,
                                                  id_text(g->host), text_or_null(g->busid), g->gdr,
                                                  g->nvlinks, routes(d, k)));
        }
        for (int k = 0; k < d->nets; k++) {
            const struct nccl_xml_net *n = &d->net[k];
            json_array_append_new(nets,
                                  json_pack("[i, i, o, o, o, b, o, o]", i, n->dev, id_text(n->host),
                                            text_or_null(n->name), number_or_null(n->Bps), n->gdr,
                                            index_or_null(n->rail), index_or_null(n->plane)));
        }
    }
}

json_t *nccl_profile_json(const struct nccl_profile *p)
{
    json_t *out = json_pack("{s:o, s:I, s:I, s:o, s:o, s:o}", "version", text_or_null(p->version),
                            "lines", (json_int_t)p->lines, "dropped", (json_int_t)p->dropped,
                            "findings", texts(p->finding, p->findings), "env",
                            texts(p->env, p->envs), "warnings", texts(p->warn, p->warns));

    put_seats(out, p);
    put_comms(out, p);
    put_links(out, p);
    put_paths(out, p);
    return out;
}
