/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_profile_dumps.c - the tables of NCCL's topology dumps: their GPUs, their NICs and the paths
 * between them. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "topo/nccl/nccl_log.h"
#include "topo/nccl/nccl_profile_file.h"

int nccl_cell_id(const struct topo_table *b, int col, uint64_t *out)
{
    const char *text;
    char *end;

    if (cell_text(b, col, 18, false, &text) < 0)
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 16);
    return errno || *end || text[0] != '0' || text[1] != 'x'
               ? cell_bad(b, col, "not a number like 0x1f")
               : 0;
}

int nccl_read_dumps(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, comm;

    while (topo_table_next(b, DUMP_COLUMNS, &rc)) {
        if (cell_index(b, 0, p->comms, true, &comm) < 0)
            return -1;
        int at = p->n_paths;
        MEM_PUSH(p->paths_comm, at) = comm;
        MEM_PUSH(p->paths, p->n_paths) = (struct nccl_paths){.gpus = 0};
    }
    return rc;
}

int nccl_read_gpus(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, dump;

    while (topo_table_next(b, GPU_COLUMNS, &rc)) {
        struct nccl_xml_gpu g = {0};
        if (cell_index(b, 0, p->n_paths, false, &dump) < 0 ||
            cell_index(b, 1, NCCL_RANKS_MAX + 1, true, &g.rank) < 0 ||
            cell_index(b, 2, NCCL_SMALL_MAX + 1, false, &g.dev) < 0 ||
            cell_index(b, 3, NCCL_SMALL_MAX, false, &g.sm) < 0 || nccl_cell_id(b, 4, &g.host) < 0 ||
            cell_copy(b, 5, true, g.busid, sizeof(g.busid)) < 0 || cell_flag(b, 6, &g.gdr) < 0 ||
            cell_index(b, 7, INT32_MAX, false, &g.nvlinks) < 0)
            return -1;
        if (p->paths[dump].gpus >= NCCL_XML_KIND_MAX)
            return cell_bad(b, 0, "a dump of more GPUs than are possible");
        MEM_PUSH(p->paths[dump].gpu, p->paths[dump].gpus) = g;
    }
    return rc;
}

int nccl_read_nets(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, dump;

    while (topo_table_next(b, NET_COLUMNS, &rc)) {
        struct nccl_xml_net n = {0};
        if (cell_index(b, 0, p->n_paths, false, &dump) < 0 ||
            cell_index(b, 1, NCCL_SMALL_MAX + 1, false, &n.dev) < 0 ||
            nccl_cell_id(b, 2, &n.host) < 0 || cell_copy(b, 3, true, n.name, sizeof(n.name)) < 0 ||
            cell_number(b, 4, 1e15, &n.Bps) < 0 || cell_flag(b, 5, &n.gdr) < 0 ||
            cell_index(b, 6, NCCL_SMALL_MAX + 1, true, &n.rail) < 0 ||
            cell_index(b, 7, NCCL_SMALL_MAX + 1, true, &n.plane) < 0)
            return -1;
        if (p->paths[dump].nets >= NCCL_XML_KIND_MAX)
            return cell_bad(b, 0, "a dump of more NICs than are possible");
        MEM_PUSH(p->paths[dump].net, p->paths[dump].nets) = n;
    }
    return rc;
}

static int read_route(struct nccl_route *r, const json_t *from)
{
    const char *name = json_string_value(json_array_get(from, 0));
    const json_t *Bps = json_array_get(from, 1);
    int type = nccl_path_type_find(name);

    if (type < 0 || json_array_size(from) != 2 ||
        !(json_is_null(Bps) || json_number_value(Bps) > 0))
        return -1;
    r->type = (unsigned char)type;
    r->Bps = json_number_value(Bps);
    return 0;
}

int nccl_read_routes(struct nccl_profile *p, struct topo_table *b)
{
    int *next = mem_calloc((size_t)p->n_paths + 1, sizeof(*next)), rc = 0, dump;

    for (int i = 0; i < p->n_paths; i++) {
        struct nccl_paths *d = &p->paths[i];
        d->pair = mem_calloc((size_t)d->gpus * (size_t)d->gpus + 1, sizeof(*d->pair));
        d->nic = mem_calloc((size_t)d->gpus * (size_t)d->nets + 1, sizeof(*d->nic));
    }
    b->at = 0;
    while (topo_table_next(b, GPU_COLUMNS, &rc)) {
        const json_t *list = json_array_get(b->row, GPU_COLUMNS - 1);
        cell_index(b, 0, p->n_paths, false, &dump);
        struct nccl_paths *d = &p->paths[dump];
        int g = next[dump]++;
        if (!json_is_array(list) || json_array_size(list) != (size_t)(d->gpus + d->nets))
            rc = cell_bad(b, GPU_COLUMNS - 1, "not one path for each GPU and NIC of the dump");
        for (int i = 0; rc == 0 && i < d->gpus + d->nets; i++)
            if (read_route(i < d->gpus ? &d->pair[g * d->gpus + i]
                                       : &d->nic[g * d->nets + i - d->gpus],
                           json_array_get(list, (size_t)i)) < 0)
                rc = cell_bad(b, GPU_COLUMNS - 1, "with an entry that is no [type, Bps or null]");
    }
    free(next);
    return rc;
}
