/* k8s.h - a topology as Kubernetes can hold it: names of nodes, levels as labels, trees.
 *
 * Names of nodes are RFC 1123 subdomains (lower case, digits, '-', '.', at most 253 characters):
 * upper case becomes lower case, anything else is refused.  Values of labels have at most 63
 * characters [A-Za-z0-9._-] that begin and end with a letter or digit: runs of other characters
 * become one '-'; what is longer then, or not unique, becomes "x" and the FNV-1a 64 of the name in
 * hexadecimal, as topograph writes long names (NVIDIA/topograph 1.0, pkg/engines/k8s/labeler.go).
 *
 * Labels are topograph's: accelerator.topograph.run/domain and sub-domain (racks that lie inside
 * NVLink domains), fabric.topograph.run/tier-0 (leaf, or racks where no leaf is known) and tier-1
 * (spine); before 1.0 network.topology.nvidia.com/{accelerator,leaf,spine}. */
#ifndef RG_K8S_H
#define RG_K8S_H

#include <stdio.h>

#include "topo/topo.h"

enum { K8S_LEVELS = 4, K8S_VALUE = 63, K8S_NAME = 253 };

struct k8s_level {
    enum level level;
    const char *key; /* of the label; NULL: there is none for it */
    int *of;         /* group of each host, -1: not known */
    char **name;     /* of each group, as the topology calls it */
    char **value;    /* as the value of a label */
    int groups;
};

struct k8s {
    const struct topo *t;
    char **node;                        /* name of each host's node */
    struct k8s_level level[K8S_LEVELS]; /* those that are visible; the most groups first */
    int levels;
    char *left[K8S_LEVELS]; /* "rack: groups hosts as domain does": what k8s_tree() left out */
    int lefts;
};

/* release: of topograph ("0.5", "1.0"), NULL: the newest.  EXIT_UNJUDGED: no level is visible. */
int k8s_make(struct k8s *k, const struct topo *t, const char *release, struct err *err);
void k8s_free(struct k8s *k); /* also after an error */

/* Leave out levels until the rest is a tree in which each one says something: groups of more than
 * one host, other groups than the level below, each group of the level below inside one group.
 * labels: levels also need a label and a group for each host, because Kueue and KAI do not see
 * nodes that lack one. */
void k8s_tree(struct k8s *k, bool labels);

struct export_ask;
/* export_complete() for hosts without a group at any level that is left; labels: that has one. */
int k8s_complete(const struct k8s *k, const struct export_ask *ask, bool labels, struct err *err);

/* Name of an object: ask or "railgauge".  Not RFC 1123: EXIT_USAGE. */
int k8s_object_name(const char **name, const char *ask, struct err *err);
/* Names of groups as names of objects; all of them are unique.  [levels][groups]; the caller frees
 * with k8s_object_names_free() before k8s_free(). */
char ***k8s_object_names(const struct k8s *k);
void k8s_object_names_free(const struct k8s *k, char ***names);

/* A comment on top: what this is, what to do with it, what was left out. */
void k8s_comment(FILE *out, const struct k8s *k, const char *what);

#endif
