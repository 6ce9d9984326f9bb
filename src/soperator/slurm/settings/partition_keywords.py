"""The options that a partition of Slurm 24.11 may have besides its name and its nodes, because slurmctld exits on an unknown one. Source:
slurm.conf(5), PARTITION CONFIGURATION.
"""

_NAMES = """
AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode Default DefaultTime
DenyAccounts DenyQos DisableRootJobs ExclusiveTopo ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU
MaxMemPerNode MaxNodes MaxTime MinNodes OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS
ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout TRESBillingWeights
"""
PARTITION = tuple(_NAMES.split())
