/* kueue.h - levels of labels for topology-aware scheduling: Kueue's Topology and ResourceFlavor,
 * KAI-Scheduler's Topology.
 *
 * Rules (kueue.x-k8s.io_topologies.yaml and _resourceflavors.yaml of kubernetes-sigs/kueue 0.17,
 * kai.scheduler_topologies.yaml of NVIDIA/KAI-Scheduler): 1..16 levels from the widest to the
 * nearest, each label once, kubernetes.io/hostname only as the last one; a flavor that names a
 * topology needs a node label.  Levels are a tree (k8s_tree()) below topograph's labels, which
 * format k8s-labels writes.  The flavor takes nodes with GPUs (nvidia.com/gpu.present, written by
 * GPU feature discovery); without GPUs nodes with kubernetes.io/os: linux.
 * release of Kueue: 0.15 and later speak v1beta2, 0.14 v1beta1, 0.9 to 0.13 v1alpha1. */
#ifndef RG_KUEUE_H
#define RG_KUEUE_H

#include "emit/export/export.h"

int kueue_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                struct err *err);
int kai_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err);

#endif
