"""The keywords of `slurmd --conf` in Slurm 24.11, because slurmd exits on an unknown one. Source: slurm.conf(5), NODE CONFIGURATION, and the
library that parses it.
"""

_NAMES = """
BcastAddr Boards CoreSpecCount CoresPerSocket CPUs CPUSpecList CpuBind Feature Features Gres MemSpecLimit NodeAddr NodeHostname NodeName Port
Procs RealMemory Reason RestrictedCoresPerGPU Sockets SocketsPerBoard State ThreadsPerCore TmpDisk TRESWeights Weight
"""
NODE = tuple(_NAMES.split())
