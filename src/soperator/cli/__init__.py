"""The command `soperator`, one module for each verb."""
