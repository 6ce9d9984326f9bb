#!/bin/bash
# Times steps in the pod, a plain one and one in the jail in turn, in microseconds: `steps.sh KIND COUNT` prints `PLAIN JAILED` COUNT times.
# slurmstepd reads plugstack.conf for each step, so that file is the switch. KIND: first, later, many (64 tasks).
set -eu
kind=$1 count=$2
timed() {
	if [[ $1 == jail ]]; then cp /plugstack.jail /etc/slurm/plugstack.conf; else cp /plugstack.none /etc/slurm/plugstack.conf; fi
	begin=${EPOCHREALTIME/./}
	"${@:2}" </dev/null >/dev/null 2>&1 || echo failed
	end=${EPOCHREALTIME/./}
	echo $((end - begin))
}
loop() {
	for ((i = 0; i < count; i++)); do
		if ((i % 2)); then
			jailed=$(timed jail "$@") plain=$(timed plain "$@")
		else
			plain=$(timed plain "$@") jailed=$(timed jail "$@")
		fi
		echo "$plain $jailed"
	done
	cp /plugstack.jail /etc/slurm/plugstack.conf
}
export -f timed loop
export count
case $kind in
first) loop srun -Q true ;;
later) salloc -Q -n1 bash -c 'loop srun -Q true' ;;
many) salloc -Q -n4 bash -c 'loop srun -Q -n64 --overcommit true' ;;
esac
