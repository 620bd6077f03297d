/* probe_args.h - the command line of railgauge-probe.  Every rank parses it; only one prints. */
#ifndef RG_PROBE_ARGS_H
#define RG_PROBE_ARGS_H

#include <stdbool.h>

#include "probe/gpu/gpu_opts.h"
#include "probe/mpi/mpi_opts.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/probe_opts.h"

struct probe_args {
    const char *output; /* NULL: the command's default */
    const char *root, *transport, *topology, *plan, *format;
    bool quiet, dry_run;
    bool json, check, look; /* discover */
    bool done;              /* help or version was asked for: nothing else is to be done */
    struct probe_opts probe;
    struct nccl_opts nccl;
    struct mpi_opts mpi;
    struct copy_opts copy;
    bool compute;      /* what each GPU does alone, instead of a plan */
    const char *model; /* --model: whose products */
    struct device_choice device;
};

/* argv[0] is "railgauge-probe NAME"; argp is one of the first two below.  Never exits (MPI_Finalize
 * comes first); a rank that does not speak prints nothing.  Wrong usage: EXIT_USAGE, already
 * printed. */
int probe_args_parse(struct probe_args *a, const struct argp *argp, int argc, char **argv,
                     bool speak, struct err *err);

/* The same for any argp whose children hold probe_common_argp. */
int probe_argp_parse(const struct argp *argp, int argc, char **argv, bool speak, void *input,
                     struct err *err);
/* --help, --usage and --version without exit(); its input is a bool that says one was asked for. */
extern const struct argp probe_common_argp;

extern const struct argp probe_discover_argp, probe_probe_argp;
/* The options of probe_probe_argp with its own --help, as a child for railgauge probe; the input is
 * a struct probe_args with the defaults of probe_opts and nccl_opts, and the parent's flags hold
 * ARGP_NO_HELP. */
extern const struct argp probe_files_argp;

#endif
