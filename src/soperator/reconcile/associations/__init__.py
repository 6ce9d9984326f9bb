"""The passes of SlurmAccounts and SlurmQOS."""
