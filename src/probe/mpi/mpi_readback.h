/* mpi_readback.h - what MPI really used, read back from where it shows: this process.
 *
 *   pml, mtl        the selected component of Open MPI: mca_pml_base_selected_component and
 *                   ompi_mtl_base_selected_component of libmpi (pml.h, mtl.h of 4.1 and 5.0), which
 *                   begin with the names of project, framework and component
 *   within, between a TCP connection that two ranks hold the two ends of, and the interface of its
 *                   address; segments of shared memory that several ranks have mapped (vader's, or
 *                   sm's as Open MPI 5 calls it; MPICH's); what UCX logs of its endpoints
 *   ucx             lines "cfg...: tag(transport/device ...)" that UCX writes at level info
 *   provider        what libfabric was asked to open: fi_fabric(), which this program defines too
 *   devices         adapters whose device files are open
 *
 * A component that is only loaded is not called used.  What was not seen stays out. */
#ifndef RG_MPI_READBACK_H
#define RG_MPI_READBACK_H

#include "base/err.h"
#include "probe/world.h"
#include "topo/topo.h"

/* Before MPI_Init(): UCX reads its variables when it is loaded.  Its log goes to a file in memory,
 * unless UCX_LOG_LEVEL or UCX_LOG_FILE is the user's, or UCX was loaded with the program.  On a host
 * without adapters MPI is kept from loading what looks for them, unless OMPI_MCA_pml, OMPI_MCA_mtl or
 * HWLOC_COMPONENTS is the user's. */
void mpi_readback_open(void);
/* After MPI_Init(): who is started from here on finds the environment as it was. */
void mpi_readback_opened(void);
/* Collective, after traffic: on rank 0 into t->mpi, one line of words in its "text".  Nothing is
 * kept where no traffic shows and t has what an earlier part of the campaign found.  EXIT_CONFIG:
 * "asked OMPI_MCA_pml=ucx, used ob1", also of btl, mtl, interfaces, UCX's and libfabric's. */
int mpi_readback_learn(struct world *w, struct topo *t, struct err *err);

#endif
