/* sysfs.h - reading below /sys of this machine or of a recorded one; what the parts of sysfs*.c
 * and others that read /sys share.  Inside topo/ only. */
#ifndef RG_SYSFS_H
#define RG_SYSFS_H

#include <stdbool.h>

#include "topo/host/nic.h"
#include "topo/topo.h"

/* The first line of root/path, without its newline and with '?' for control characters; false when
 * there is none. */
bool sysfs_line(char *line, int size, const char *root, const char *path);
bool sysfs_exists(const char *root, const char *path, const char *more);
/* Entries of a folder, sorted (mlx5_2 before mlx5_10); false when there is no such folder.
 * hostlist_free(). */
bool sysfs_list(char ***names, int *count, const char *root, const char *path);

/* PCI address and NUMA node of a device; virtio devices have theirs one folder up. */
void sysfs_place(struct nic *n, const char *root, const char *class_path);
/* Append a NIC; what it does not tell goes to topo.unseen. */
void sysfs_push(struct topo *t, const struct nic *n);
/* The ports below /sys/class/infiniband. */
void sysfs_rdma(struct topo *t, int host, const char *root);

#endif
