/* gpu.h - what NVML (or nvidia-smi, hwloc, NCCL) tells of a GPU: NVLinks, fabric, rack, counters.
 * -1 (texts: "") is "not told" everywhere. */
#ifndef RG_GPU_H
#define RG_GPU_H

#include "topo/topo.h"

enum { GPU_LINKS = 36, GPU_PEERS = 32 }; /* NVLinks of a GPU, GPUs of a host: at most */

enum link_end { LINK_END_GPU, LINK_END_CPU, LINK_END_SWITCH, LINK_END_UNKNOWN };
enum gpu_path { PATH_SELF, PATH_PIX, PATH_PXB, PATH_PHB, PATH_NODE, PATH_SYS };
enum fabric_state { FABRIC_NONE, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED };
enum remap { REMAP_NONE, REMAP_PENDING, REMAP_FAILED };

struct gpu_remote { /* what `links` of its NVLinks lead to */
    enum link_end kind;
    char busid[16]; /* "": hidden */
    int links;
};

struct gpu {
    int host, index; /* index: in NVML's order, which is that of the PCI addresses */
    char busid[16], uuid[48], model[48], driver[32];
    int links;               /* NVLinks it has; 0: none */
    unsigned long long down; /* bit i: link i is there and not active */
    bool counted;            /* `links` is a number of active ones, without a word of others */
    double link_Bps;         /* per direction of a link, of the slowest active one; 0: not told */
    struct gpu_remote remote[GPU_LINKS];
    int remotes;
    int path[GPU_PEERS]; /* enum gpu_path to GPU i of its host */
    int paths;
    /* Registration with the NVLink fabric.  status (an NVML return code) counts once the state is
     * completed; a cluster of zeros says that there is no domain across hosts. */
    int state;  /* enum fabric_state */
    int status; /* 0: success */
    char cluster[40];
    long long clique, health; /* health: mask of nvml_health_words() */
    int summary;              /* 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity */
    /* Its place in a rack */
    char chassis[20]; /* serial number */
    int slot, tray, node, module;
    int pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
    int sm_MHz, sm_MHz_max;
    long long throttle;                       /* mask of nvml_throttle_words() when it was read */
    long long ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    long long retired_pages, remapped_rows, pcie_replays, link_errors;
    int remap;    /* enum remap: what still has to be done about bad rows */
    int recovery; /* what the driver asks for, see nvml_recovery_word(); 0: nothing */
    /* Of its host: channels that this user may open, and lines of IMEX's nodes_config.cfg. */
    int imex_channels, imex_nodes;
};

void gpu_init(struct gpu *g); /* nothing told */
int gpu_links_up(const struct gpu *g);
enum { GPU_LINKS_TEXT = 32 };
/* "17 of 18 NVLinks", or "17 NVLinks" where a source tells no more than a count. */
char *gpu_links_text(const struct gpu *g, char buf[GPU_LINKS_TEXT]);

#endif
