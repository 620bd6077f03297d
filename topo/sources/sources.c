/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/nccl/nccl_log.h"
#include "topo/sources/net/ibnet.h"
#include "topo/sources/net/lldp_impl.h"
#include "topo/sources/net/rails.h"
#include "topo/sources/sched/labels_impl.h"
#include "topo/sources/sched/slurm.h"

const struct source_file source_file[] = {
    {"ibnet", "FILE|live",
     "InfiniBand subnet: output of ibnetdiscover, or live[:DEVICE[:PORT]] to read it (needs root)",
     false, 0, NULL, ibnet_read},
    {"labels", "FILE", "labels of Kubernetes nodes: kubectl get nodes -o json (or -o yaml)", false,
     YAML_BYTES, labels_parse, NULL},
    {"slurm", "FILE", "Slurm's topology.conf or topology.yaml, or output of scontrol show topology",
     false, SLURM_BYTES_MAX, slurm_read, NULL},
    {"topograph", "FILE", "model (YAML) or graph (JSON) of topograph", false, YAML_BYTES,
     topograph_parse, NULL},
    {"hwloc-xml", "[HOST=]FILE", "host: XML of version 2 or 3 from hwloc's lstopo", true,
     HWLOC_XML_BYTES_MAX, hwloc_xml_parse, NULL},
    {"lldp", "[HOST=]FILE",
     "Ethernet neighbours: output of lldpcli -f keyvalue (json, json0) show neighbors, or live",
     true, 0, NULL, lldp_read},
    {"nccl-topo", "[HOST=]FILE", "topology file of NCCL or RCCL (NCCL_TOPO_DUMP_FILE)", true,
     NCCL_XML_BYTES_MAX, nccl_topo_parse, NULL},
    {"smi-xml", "[HOST=]FILE", "GPUs of a host: output of nvidia-smi -q -x", true,
     SMI_XML_BYTES_MAX, smi_xml_parse, NULL},
    {"smi-topo", "[HOST=]FILE", "paths between GPUs and NICs: output of nvidia-smi topo -m", true,
     SMI_TOPO_BYTES_MAX, smi_topo_parse, NULL},
    {NULL, NULL, NULL, false, 0, NULL, NULL},
};

/* Host that a file describes; -1: bad name.  *path is the part after "HOST=". */
static int which_host(struct topo *t, const char *text, bool another, const char **path,
                      struct err *err)
{
    const char *equal = strchr(text, '='), *slash = strchr(text, '/');
    const char *base = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    char *name;

    *path = text;
    if (equal && equal != text && (!slash || equal < slash)) {
        name = mem_printf("%.*s", (int)(equal - text), text);
        *path = equal + 1;
    } else if (t->hosts == 1 && !another) {
        return 0;
    } else if (!strcmp(text, "live")) {
        char self[256];
        name = mem_strdup(host_self(self, sizeof(self)));
    } else {
        name = mem_printf("%.*s", (int)strcspn(base, "."), base);
    }
    int host = topo_host_name_check(*name ? name : base, *path, err) < 0
                   ? -1
                   : topo_add_host(t, *name ? name : base);
    free(name);
    return host;
}

int sources_read(struct topo *t, const struct source_file *s, const char *text, bool another,
                 struct err *err)
{
    const char *path = text;
    int host = s->host ? which_host(t, text, another, &path, err) : -1;

    if (s->host && host < 0)
        return -1;
    if (!*path)
        return err_usage(err, "--%s: no file in \"%s\"", s->name, text);
    return s->read ? s->read(t, host, path, err)
                   : host_read(t, host, path, s->bytes, s->parse, err);
}

void sources_done(struct topo *t)
{
    net_apply(t);
    rails_find(t);
    groups_apply(t);
}
