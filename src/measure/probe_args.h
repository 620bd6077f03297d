/* probe_args.h - command line of railgauge-probe.  Every rank parses it; only one prints. */
#ifndef RG_PROBE_ARGS_H
#define RG_PROBE_ARGS_H

#include "measure/probe_opts.h"
#include "measure/transports/gpu_opts.h"
#include "measure/transports/nccl_opts.h"
#include "measure/transports/transport.h"

struct probe_args {
    const char *output; /* NULL: default of the command */
    const char *root, *transport, *topology, *plan, *format;
    bool quiet, dry_run;
    bool json, check, look; /* options of discover */
    bool done;              /* help or version was printed: nothing else to do */
    struct probe_opts probe;
    const char
        *discover;     /* ranks that exit once topology.json is written: "all", "gpus", or NULL */
    bool compute;      /* measure what each GPU does alone, instead of a plan */
    const char *model; /* --model: the model whose matrix products are measured */
    struct device_choice device;
};

static inline void probe_args_defaults(struct probe_args *a)
{
    *a = (struct probe_args){.output = NULL};
    probe_opts_defaults(&a->probe);
}

/* The command lines of railgauge-probe, parsed into a struct probe_args with defaults.  They never
 * exit, because MPI_Finalize must come first. */
extern const struct opt_line probe_discover_line, probe_probe_line;

/* Options of probe_probe_line, for a command line whose struct probe_args lies at `base`.  Options
 * of transports are in transport_options(). */
extern const struct opt probe_file_options[];
#define PROBE_SET(base, table, member)                                                             \
    {                                                                                              \
        .rows = (table), .at = (base) + offsetof(struct probe_args, member)                        \
    }
#define PROBE_SETS(base)                                                                           \
    {.rows = probe_file_options, .at = (base)}, PROBE_SET(base, probe_options, probe),             \
        PROBE_SET(base, device_options, device), PROBE_SET(base, nccl_tests_options, probe)

#endif
