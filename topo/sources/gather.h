/* gather.h - topology of a whole job: every rank describes itself, rank 0 gets the result.
 *
 * The only header of topo/ that needs MPI. */
#ifndef RG_GATHER_H
#define RG_GATHER_H

#include <mpi.h>

#include "base/err.h"
#include "topo/topo.h"

/* Collective over comm.  Each rank is an endpoint, and endpoint id == rank in comm.
 *
 * Ranks are on the same host when host_self() is equal, or MPI_Get_processor_name() where nothing
 * names the node; shared memory is no criterion, because hosts may be namespaces of the same kernel.
 * The lowest rank of each host, or of each pod where a node has several, reads the host's facts below `root` ("": the live machine); other ranks only report the core or
 * GPU in use.
 *
 * busid: PCI address of the GPU that this rank uses ("0000:1b:00.0"; case and width of the domain
 * do not matter); that GPU becomes the endpoint.  An address that no source of the host shows is
 * accepted as a GPU without further facts.  NULL: the GPU with the rank's position among the ranks
 * of the host.
 *
 * On rank 0 *out is complete with default tiers, on other ranks it is empty.  All ranks return the
 * same: an error on one rank is an error on all, with the number of that rank.  Call
 * topo_free(out) in any case. */
int topo_gather(struct topo *out, MPI_Comm comm, const char *root, const char *busid,
                struct err *err);

#endif
