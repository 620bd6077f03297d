/* k8s_labels.h - labels for nodes, as a List that kubectl applies.
 *
 * Every visible level that has a label (k8s.h), of every host that has a group there.  Applied on
 * the server's side nothing else of a node changes; nodes that the cluster lacks would be made. */
#ifndef RG_K8S_LABELS_H
#define RG_K8S_LABELS_H

#include "emit/export/export.h"
#include "emit/export/k8s.h"

int k8s_labels_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err);

/* One Node of a List with its labels; keys without a value are not written.  list_begin first. */
struct k8s_label {
    const char *key, *value;
};
void k8s_list_begin(FILE *out);
void k8s_list_node(FILE *out, const char *node, const struct k8s_label *label, int labels);

#endif
