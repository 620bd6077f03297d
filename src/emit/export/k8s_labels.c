/* SPDX-License-Identifier: BSD-3-Clause */
/* k8s_labels.c - labels for nodes, as a List that kubectl applies.
 *
 * Every visible level that has a label (k8s.h), of every host that has a group there.  Applied on
 * the server's side nothing else of a node changes; nodes that the cluster lacks would be made. */
#include "emit/export/export_impl.h"

/* Labels of host h, the nearest level first. */
static int labels_of(const struct k8s *k, int h, struct k8s_label label[K8S_LEVELS])
{
    int n = 0;

    for (int l = 0; l < k->levels; l++) {
        const struct k8s_level *v = &k->level[l];
        if (v->key && v->of[h] >= 0)
            label[n++] = (struct k8s_label){v->key, v->value[v->of[h]]};
    }
    return n;
}

int k8s_labels_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err)
{
    struct k8s k;
    int rc = k8s_make(&k, &m->topo, ask->release, err);

    (void)second;
    if (rc == 0)
        rc = k8s_complete(&k, ask, true, err);
    if (rc == 0) {
        k8s_comment(out, &k,
                    "kubectl apply --server-side --field-manager=railgauge -f THIS (makes nodes "
                    "that the cluster lacks)");
        for (int l = 0; l < k.levels; l++)
            if (!k.level[l].key)
                fprintf(out, "# left out: %s: topograph has no label for it\n",
                        level_name[k.level[l].level]);
        k8s_list_begin(out);
    }
    for (int h = 0; rc == 0 && h < m->topo.hosts; h++) {
        struct k8s_label label[K8S_LEVELS];
        int n = labels_of(&k, h, label);
        if (n)
            k8s_list_node(out, k.node[h], label, n);
    }
    k8s_free(&k);
    return rc;
}
