#!/bin/bash
# Times steps in the pod, in microseconds, one a line: `steps.sh KIND COUNT`. KIND: first, later, many (64 tasks).
set -eu
kind=$1 count=$2
loop() {
	for ((i = 0; i < count; i++)); do
		begin=${EPOCHREALTIME/./}
		"$@" </dev/null >/dev/null 2>&1 || echo failed
		echo $((${EPOCHREALTIME/./} - begin))
	done
}
export -f loop
export count
case $kind in
first) loop srun -Q true ;;
later) salloc -Q -n1 bash -c 'loop srun -Q true' ;;
many) salloc -Q -n4 bash -c 'loop srun -Q -n64 --overcommit true' ;;
esac
