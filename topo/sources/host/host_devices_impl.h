/* host_devices_impl.h - finds or adds GPUs and NICs of one host by the names that a source uses.
 * Shared by readers of files about one host; inside topo/ only.
 *
 * Several sources may describe the same host: existing facts stay, unknown ones are filled in.
 * Pointers are valid until the next call. */
#ifndef RG_HOST_DEVICES_H
#define RG_HOST_DEVICES_H

#include "topo/nic.h"
#include "topo/topo.h"

/* Read a file of at most `bytes` and pass its text to parse() for this host. */
int host_read(struct topo *t, int host, const char *path, size_t bytes,
              int (*parse)(struct topo *t, int host, const char *text, size_t len, const char *path,
                           struct err *err),
              struct err *err);

/* Note that GPUs of a host are split by MIG (0: none). */
static inline void host_mig(struct topo *t, int host, int split)
{
    if (split)
        topo_unseen(
            t, "GPU instances",
            "MIG is on at %d GPU%s of %.60s: their instances are not listed, and have neither "
            "NVLink nor PCIe to each other (NVIDIA, MIG User Guide)",
            split, split == 1 ? "" : "s", t->host[host].name);
}

/* True if the machine below root has a file or folder of this path, with `more` appended. */
bool host_has_file(const char *root, const char *path, const char *more);
/* Normalise "00000008:06:00.0" or "0008:06:00.0" to the latter, in lower case; false: no
 * address. */
bool host_busid(char to[16], const char *from);

/* Entry of a GPU: with this PCI address ("": unknown), else with this index (-1: unknown) and no
 * address yet, else a new one.  NULL: more than GPU_PEERS. */
struct gpu *host_gpu(struct topo *t, int host, int index, const char *busid);
/* NIC with this name.  A new one gets rdma and source, and counts as up, because these sources
 * list usable devices. */
struct nic *host_nic(struct topo *t, int host, const char *name, bool rdma, enum source source);
int host_find_nic(const struct topo *t, int host, const char *name); /* index, or -1 */

/* Complete a host after entries were added: endpoints for the GPUs if there are none, addresses
 * and models known on either side, and NVLink domain and rack if unknown. */
void host_finish(struct topo *t, int host, enum source source);

#endif
