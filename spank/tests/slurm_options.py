#!/usr/bin/env python3
"""Prints the options of srun, sbatch, salloc and scrontab from Slurm's own library: `{"name": [takes a value, [commands]]}`.

It runs in a root with Slurm, with a configuration that the library can read, and uses the standard library only. The commands parse their
arguments with the table that slurm_option_table_create returns (src/common/slurm_opt.h), options of plugins included. `--help` leaves some
options out, so it is not used. The table depends on the pointers at the beginning of slurm_opt_t: they select the command.
"""

import ctypes
import json
import sys
from pathlib import Path

COMMANDS = ("salloc", "sbatch", "scrontab", "srun")


class Option(ctypes.Structure):
    """struct option of getopt.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("has_arg", ctypes.c_int),
        ("flag", ctypes.c_void_p),
        ("val", ctypes.c_int),
    ]


def main() -> None:
    found: dict[str, tuple[bool, list[str]]] = {}
    (path,) = Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so")
    slurm = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    slurm.slurm_conf_init(None)
    if slurm.spank_init_allocator() != 0:
        sys.exit("Slurm cannot read its plugins")
    slurm.slurm_option_table_create.restype = ctypes.POINTER(Option)
    part = ctypes.create_string_buffer(64 * 1024)  # larger than any command's part
    for position, command in enumerate(COMMANDS):
        whole = (ctypes.c_void_p * 4096)()
        whole[position] = ctypes.addressof(part)
        table = slurm.slurm_option_table_create(whole, ctypes.byref(ctypes.c_char_p()))
        row = 0
        while table[row].name:
            entry = found.setdefault(table[row].name.decode(), (table[row].has_arg != 0, []))
            entry[1].append(command)
            row += 1
    print(json.dumps(found))


if __name__ == "__main__":
    main()
