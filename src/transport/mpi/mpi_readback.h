/* mpi_readback.h - find out what MPI really uses, by inspecting this process.
 *
 *   pml, mtl        the selected component of Open MPI: mca_pml_base_selected_component and
 *                   ompi_mtl_base_selected_component of libmpi (pml.h, mtl.h of 4.1 and 5.0), which
 *                   begin with the names of project, framework and component
 *   within, between a TCP connection with its ends in two ranks, and the interface of its address;
 *                   shared memory segments mapped by several ranks (of vader, called sm in Open
 *                   MPI 5; of MPICH); UCX's log of its endpoints
 *   ucx             lines "cfg...: tag(transport/device ...)" that UCX writes at level info
 *   provider        provider that libfabric was told to open: fi_fabric(), which this program
 *                   defines too
 *   devices         NICs whose device files are open
 *
 * A component that is only loaded is not reported as used.  Facts that were not seen are left
 * out. */
#ifndef RG_MPI_READBACK_H
#define RG_MPI_READBACK_H

#include "base/err.h"
#include "topo/topo.h"
#include "watch/world.h"

/* Call before MPI_Init(), because UCX reads its variables when it is loaded.  Its log goes to a
 * file in memory, unless the user set UCX_LOG_LEVEL or UCX_LOG_FILE, or UCX was loaded with the
 * program.  On a host without adapters MPI is kept from loading components that search for them,
 * unless the user set OMPI_MCA_pml, OMPI_MCA_mtl or HWLOC_COMPONENTS. */
void mpi_readback_open(void);
/* Call after MPI_Init(): restores the environment for processes started later. */
void mpi_readback_opened(void);
/* Collective, after traffic.  Rank 0 stores the result in t->mpi, with one line of words in
 * "text".  If no traffic is visible, the result of an earlier part of the campaign in t is kept.
 * EXIT_CONFIG: "asked OMPI_MCA_pml=ucx, used ob1"; likewise for btl, mtl, interfaces, UCX and
 * libfabric. */
int mpi_readback_learn(struct world *w, struct topo *t, struct err *err);

#endif
