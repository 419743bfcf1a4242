#!/bin/sh
# Runs a command whose mpirun has a session folder of its own: that of other tests would go when their mpirun ends.
OMPI_MCA_orte_tmpdir_base=$(mktemp -d /tmp/vitrail-mpi-XXXXXX) || exit 1
export OMPI_MCA_orte_tmpdir_base
"$@"
code=$?
rm -rf "$OMPI_MCA_orte_tmpdir_base"
exit $code
