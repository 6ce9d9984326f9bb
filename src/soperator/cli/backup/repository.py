"""The repository of a restoration from the options of the command line: each option is a field of `spec.repository` of a SlurmBackup."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from soperator.cli.support.errors import CliError

if TYPE_CHECKING:
    from soperator.api.backup import Repository

#: The option of each field.
OPTIONS: Mapping[tuple[str, ...], str] = {
    ("claimName",): "--claim",
    ("path",): "--path",
    ("password", "secretName"): "--password-secret",
    ("password", "key"): "--password-key",
    ("s3", "endpoint"): "--s3-endpoint",
    ("s3", "bucket"): "--s3-bucket",
    ("s3", "prefix"): "--s3-prefix",
    ("s3", "region"): "--s3-region",
    ("s3", "credentialsSecretName"): "--s3-credentials-secret",
    ("s3", "ca", "secretName"): "--s3-ca-secret",
    ("s3", "ca", "key"): "--s3-ca-key",
}
#: Options with a default say nothing by themselves.
_DEFAULTS = {"--s3-ca-key": "ca.crt"}


def repository_of(options: Mapping[str, str]) -> "Repository":
    """Return the repository that the options describe; raises CliError with the option that is missing or wrong."""
    from pydantic import ValidationError

    from soperator.api.backup import Repository

    given = {option: text for option, text in options.items() if text and text != _DEFAULTS.get(option)}
    of_store = sorted(option for option in given if option.startswith("--s3-"))
    if bool(of_store) == ("--claim" in given):
        raise CliError(
            f"the repository has one place: give either --claim or --s3-endpoint{f', not --claim and {of_store[0]}' if of_store else ''}"
        )
    if "--s3-ca-key" in given and "--s3-ca-secret" not in given:
        raise CliError("--s3-ca-key is an entry of a Secret: give --s3-ca-secret too")
    fields: dict[str, Any] = {}
    for path, option in OPTIONS.items():
        if option in given:
            inner = fields
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = given[option]
    try:
        return Repository.model_validate(fields)
    except ValidationError as error:
        raise CliError("; ".join(_fault(each["loc"], each["type"], given) for each in error.errors())) from None


def _fault(loc: tuple[int | str, ...], kind: str, given: Mapping[str, str]) -> str:
    option = OPTIONS[tuple(str(each) for each in loc)]
    field = f"spec.repository.{'.'.join(str(each) for each in loc)} of the SlurmBackup"
    if kind == "missing":
        return f"{option} is missing: give what {field} has"
    return f"{option} {given.get(option, '')}: it cannot be a value of {field}: correct it"
