/* host.h - the name of the machine that this process runs on. */
#ifndef RG_HOST_H
#define RG_HOST_H

#include <stddef.h>

/* The kernel's name of this host into out, size bytes of it: terminated, never empty, cut to what
 * has room; "localhost" where the kernel has no name to tell.  Asked anew each time: simulated
 * ranks of one process stand on different hosts.  Returns out. */
char *host_self(char *out, size_t size);

#endif
