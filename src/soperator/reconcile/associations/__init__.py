"""The reconcilers of SlurmAccounts and SlurmQOS."""
