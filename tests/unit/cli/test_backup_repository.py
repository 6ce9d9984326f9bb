"""The options of `soperator restore` describe the same repository as the spec of a SlurmBackup."""

import pytest

from soperator.api.backup import Repository
from soperator.cli.backup.repository import repository_of
from soperator.cli.support.errors import CliError

STORE = {
    "--password-secret": "restic",
    "--s3-endpoint": "https://s3.example.com",
    "--s3-bucket": "backups",
    "--s3-credentials-secret": "keys",
    "--s3-ca-key": "ca.crt",
}


def test_options_are_the_fields_of_the_spec():
    """A store with everything, and a claim with what an option has by default."""
    more = {"--s3-prefix": "slurm/one", "--s3-region": "eu-1", "--s3-ca-secret": "ca", "--path": "demo"}
    spec = {
        "endpoint": "https://s3.example.com",
        "bucket": "backups",
        "prefix": "slurm/one",
        "region": "eu-1",
        "credentialsSecretName": "keys",
        "ca": {"secretName": "ca"},
    }
    wanted = Repository.model_validate({"s3": spec, "path": "demo", "password": {"secretName": "restic"}})
    assert repository_of(STORE | more) == wanted
    claim = {"--claim": "backups", "--password-secret": "restic", "--path": "restic", "--s3-ca-key": "ca.crt"}
    assert repository_of(claim) == Repository.model_validate(
        {"claimName": "backups", "password": {"secretName": "restic"}}
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"--password-secret": "restic"}, "give either --claim or --s3-endpoint"),
        (STORE | {"--claim": "backups"}, "not --claim and --s3-bucket"),
        (STORE | {"--s3-bucket": ""}, r"--s3-bucket is missing: give what spec\.repository\.s3\.bucket"),
        (STORE | {"--s3-endpoint": "s3.example.com"}, r"--s3-endpoint s3\.example\.com: it cannot be a value of"),
        (STORE | {"--s3-ca-key": "other"}, "give --s3-ca-secret too"),
    ],
)
def test_an_option_that_is_wrong_is_named(options, words):
    """With what it has to have; nothing is guessed."""
    with pytest.raises(CliError, match=words):
        repository_of(options)
