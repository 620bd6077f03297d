/* gpu.h - facts about a GPU from NVML (or nvidia-smi, hwloc, NCCL): NVLinks, fabric, rack,
 * counters.  -1 (texts: "") means "unknown" everywhere. */
#ifndef RG_GPU_H
#define RG_GPU_H

#include "topo/topo.h"

enum { GPU_LINKS = 36, GPU_PEERS = 32 }; /* maximum of NVLinks per GPU, of GPUs per host */

enum link_end { LINK_END_GPU, LINK_END_CPU, LINK_END_SWITCH, LINK_END_UNKNOWN };
enum gpu_path { PATH_SELF, PATH_PIX, PATH_PXB, PATH_PHB, PATH_NODE, PATH_SYS };
enum fabric_state { FABRIC_NONE, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED };
/* NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED */
enum { GPU_LOST = 15, GPU_TO_RESET = 16 };
enum remap { REMAP_NONE, REMAP_PENDING, REMAP_FAILED };

struct gpu_remote { /* other end of `links` of its NVLinks */
    enum link_end kind;
    char busid[16]; /* "": hidden */
    int links;
};

struct gpu {
    int host, index; /* index: NVML's order, which is that of PCI addresses */
    char busid[16], uuid[48], model[48], driver[32];
    int links;               /* number of NVLinks; 0: none */
    unsigned long long down; /* bit i: link i exists and is not active */
    bool counted;            /* `links` counts active links only; others are unknown */
    double link_Bps;         /* per direction of one link, of the slowest active one; 0: unknown */
    struct gpu_remote remote[GPU_LINKS];
    int remotes;
    int path[GPU_PEERS]; /* enum gpu_path to GPU i of its host */
    int paths;
    /* Registration with the NVLink fabric.  status (an NVML return code) is valid once the state
     * is completed; a cluster of zeros means that there is no domain across hosts. */
    int state;  /* enum fabric_state */
    int status; /* 0: success; GPU_LOST, GPU_TO_RESET without a state: no question is answered */
    char cluster[40];
    long long clique, health; /* health: bit mask, see nvml_health_words() */
    int summary;              /* 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity */
    /* Place in a rack. */
    char chassis[20]; /* serial number */
    int slot, tray, node, module;
    int pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
    int sm_MHz, sm_MHz_max;
    /* State at the time of reading: bit mask, see nvml_throttle_words(). */
    long long throttle;
    long long ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    long long retired_pages, remapped_rows, pcie_replays, link_errors;
    int remap;    /* enum remap: outstanding repair of bad rows */
    int recovery; /* action that the driver requests, see nvml_recovery_word(); 0: none */
    /* Facts of its host: IMEX channels that this user may open, and lines of IMEX's
     * nodes_config.cfg. */
    int imex_channels, imex_nodes;
    bool split; /* MIG is on; not stored, host_mig() notes it */
};

void gpu_init(struct gpu *g); /* everything unknown */
/* True if the driver lists the GPU, and answers every question with GPU_LOST or GPU_TO_RESET. */
static inline bool gpu_is_lost(const struct gpu *g)
{
    return g->state < 0 && (g->status == GPU_LOST || g->status == GPU_TO_RESET);
}
int gpu_links_up(const struct gpu *g);
enum { GPU_LINKS_TEXT = 32 };
/* "17 of 18 NVLinks", or "17 NVLinks" if the source only counts. */
char *gpu_links_text(const struct gpu *g, char buf[GPU_LINKS_TEXT]);

/* Result of a trial on a host, if one was made: memory with a FABRIC handle allocated, exported,
 * imported by another host (1 works, 0 fails, -1 not tried), and measured bandwidth between hosts
 * of the domain (B/s; 0: not measured).  At most one per host. */
struct mnnvl_trial {
    int host;
    int allocate, export, import;
    double Bps;
    char why[96]; /* message of the failed call */
};

#endif
