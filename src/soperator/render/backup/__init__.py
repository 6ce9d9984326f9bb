"""The objects of a backup: the Job, and the ConfigMap with the objects that go into it."""
