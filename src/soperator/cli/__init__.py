"""The command `soperator`, with one module per verb."""
