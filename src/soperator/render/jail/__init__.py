"""The jail: its claims, the Job that fills it, and the mount plan of each node. Workers, login pods and slurmctld share them, so they are apart
from the roles.
"""
