/* probe_args.h - the command line of railgauge-probe.  Every rank parses it; only one prints. */
#ifndef RG_PROBE_ARGS_H
#define RG_PROBE_ARGS_H

#include "probe/gpu/gpu_opts.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/probe_opts.h"
#include "probe/transport.h"

struct probe_args {
    const char *output; /* NULL: the command's default */
    const char *root, *transport, *topology, *plan, *format;
    bool quiet, dry_run;
    bool json, check, look; /* discover */
    bool done;              /* help or version was asked for: nothing else is to be done */
    struct probe_opts probe;
    const char
        *discover;     /* which ranks end when topology.json is written: "all", "gpus", or NULL */
    bool compute;      /* what each GPU does alone, instead of a plan */
    const char *model; /* --model: whose products */
    struct device_choice device;
};

static inline void probe_args_defaults(struct probe_args *a)
{
    *a = (struct probe_args){.output = NULL};
    probe_opts_defaults(&a->probe);
}

/* The lines of railgauge-probe, into a struct probe_args with the defaults.  They never exit:
 * MPI_Finalize comes first. */
extern const struct opt_line probe_discover_line, probe_probe_line;

/* The options of the second, for a command line whose struct probe_args lies at `base`; those of
 * the transports are transport_options(). */
extern const struct opt probe_file_options[];
#define PROBE_SET(base, table, member, place)                                                      \
    {                                                                                              \
        .rows = (table), .at = (base) + offsetof(struct probe_args, member), .group = (place)      \
    }
#define PROBE_SETS(base)                                                                           \
    {.rows = probe_file_options, .at = (base), .group = 1},                                        \
        PROBE_SET(base, probe_options, probe, 20), PROBE_SET(base, device_options, device, 46),    \
        PROBE_SET(base, opt_help, done, 49), PROBE_SET(base, nccl_tests_options, probe, 70)

#endif
