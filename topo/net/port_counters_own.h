/* port_counters_own.h - the inside of port_counters.h: which counters there are. */
#ifndef RG_PORT_COUNTERS_OWN_H
#define RG_PORT_COUNTERS_OWN_H

#include "topo/net/port_counters.h"

/* Folders; PORT_TOTAL: in PORT_STATISTICS, and includes what the row before counts. */
enum port_folder { PORT_PMA, PORT_HARDWARE, PORT_STATISTICS, PORT_TOTAL, PORT_INTERFACE };

struct port_counter {
    const char *file;
    enum port_folder folder;
    enum port_kind kind;
    int bits;          /* at the end of which it stays (PORT_PMA) or wraps (32); 0: neither */
    const char *words; /* "*": an s, unless it is 1 */
};

enum { PORT_COUNTERS = 46 };
extern const struct port_counter port_counter[PORT_COUNTERS];

#endif
