/* host_devices.h - GPUs and NICs of one host by what a source calls them: found, or made.  What the
 * readers of files about one host share; inside topo/ only.
 *
 * Several sources may tell of the same host: what is there stays, what is not told is filled in.
 * Pointers are good until the next call. */
#ifndef RG_HOST_DEVICES_H
#define RG_HOST_DEVICES_H

#include "topo/host/nic.h"
#include "topo/topo.h"

/* A file of so many bytes at the most, its text read into host by parse(). */
int host_read(struct topo *t, int host, const char *path, size_t bytes,
              int (*parse)(struct topo *t, int host, const char *text, size_t len, const char *path,
                           struct err *err),
              struct err *err);

/* Has the machine below root a file or folder of this path with `more` behind it? */
bool host_has_file(const char *root, const char *path, const char *more);
/* "00000008:06:00.0" and "0008:06:00.0" as "0008:06:00.0", in lower case; false: no PCI address. */
bool host_busid(char to[16], const char *from);

/* The row of a GPU: the one with this PCI address ("": not told), else the one with this index (-1:
 * not told) that has no address yet, else a new one.  NULL: more than GPU_PEERS. */
struct gpu *host_gpu(struct topo *t, int host, int index, const char *busid);
/* The NIC of this name; new ones have rdma and source as told and are taken as up, since these
 * sources list what can be used. */
struct nic *host_nic(struct topo *t, int host, const char *name, bool rdma, enum source source);
int host_find_nic(const struct topo *t, int host, const char *name); /* index or -1 */

/* After rows were added: endpoints for the GPUs of a host that has none, addresses and models that
 * the other side knows, and NVLink domain and rack where they are not known yet. */
void host_finish(struct topo *t, int host, enum source source);

#endif
