/* gather.h - the topology of a whole job: every rank tells what it is, rank 0 gets the whole.
 *
 * The only header of topo/ that needs MPI. */
#ifndef RG_GATHER_H
#define RG_GATHER_H

#include <mpi.h>

#include "base/err.h"
#include "topo/topo.h"

/* Collective over comm.  One rank is one endpoint and endpoint id == rank in comm.  Ranks are on
 * the same host when MPI_Get_processor_name() says the same (hosts may be namespaces of one kernel,
 * so shared memory says nothing); the lowest rank of each host reads its facts below `root` ("" is
 * the live machine), the others only tell which core or GPU they are on.  busid is the
 * PCI address of the GPU that this rank uses ("0000:1b:00.0"; the case and the width of the domain
 * do not matter), which its endpoint becomes; NULL: the GPU of its place among the ranks of its
 * host.  An address that nothing on its host shows is believed: a GPU of
 * which no more is known.  On rank 0 *out is
 * complete with default tiers; on the others it is empty.  All ranks return the same: an error
 * anywhere is an error everywhere, named by its rank. topo_free(out) in any case. */
int topo_gather(struct topo *out, MPI_Comm comm, const char *root, const char *busid,
                struct err *err);

#endif
