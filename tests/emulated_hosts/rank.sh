#!/bin/sh
# One rank under mpirun, for tests: rank.sh FOLDER COMMAND... writes what the command says on standard error to
# FOLDER/errors.RANK and its exit status to FOLDER/status.RANK. SIGTERM reaches the command as well, whose end counts.
folder=$1
shift
trap : TERM
"$@" 2>"$folder/errors.$OMPI_COMM_WORLD_RANK"
status=$?
echo $status >"$folder/status.$OMPI_COMM_WORLD_RANK"
exit $status
