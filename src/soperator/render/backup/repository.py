"""What a pod needs for a repository: restic's environment, and the volumes with the claim, the password and the store's certificates.

The pods of a backup and of a restoration have the same. The keys of a store come as environment variables, because restic takes them so; its
other variables are in restic's manual, "Environment Variables".
"""

from collections.abc import Iterator

from soperator.api.backup import Repository
from soperator.render.parts import pod
from soperator.render.parts.model import Object

_CLAIM, _PASSWORD, _CA = "/repository", "/etc/soperator/repository", "/etc/soperator/store"
#: The entries of the Secret with the keys of a store; they are also restic's variables.
ACCESS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def location(repository: Repository) -> str:
    """Return where the repository is, as restic takes it."""
    if (store := repository.s3) is None:
        return f"{_CLAIM}/{repository.path}"
    return "/".join(each for each in (f"s3:{store.endpoint}", store.bucket, store.prefix, repository.path) if each)


def place(repository: Repository) -> str:
    """Return where the repository is, for people."""
    if repository.s3 is None:
        return f"folder {repository.path} of claim {repository.claim_name}"
    return location(repository).removeprefix("s3:")


def env(repository: Repository) -> list[Object]:
    """Return the environment that gives restic the repository, its password, and the keys of its store."""
    said = {
        "SOPERATOR_REPOSITORY": place(repository),
        "RESTIC_REPOSITORY": location(repository),
        "RESTIC_PASSWORD_FILE": f"{_PASSWORD}/{repository.password.key}",
        "TMPDIR": "/tmp",
        "HOME": "/tmp",
    }
    store = repository.s3
    if store and store.region:
        said["AWS_DEFAULT_REGION"] = store.region
    if store and store.ca:
        said["RESTIC_CACERT"] = f"{_CA}/{store.ca.key}"
    return [*pod.env(**said), *(_from_secret(key, store.credentials_secret_name) for key in ACCESS_KEYS if store)]


def volumes(repository: Repository) -> list[Object]:
    """Return the pod's volumes."""
    return [volume for volume, _ in _parts(repository)]


def mounts(repository: Repository) -> list[Object]:
    """Return the container's mounts of these volumes."""
    return [mount for _, mount in _parts(repository)]


def _parts(repository: Repository) -> Iterator[tuple[Object, Object]]:
    if repository.claim_name:
        yield pod.claim("repository", repository.claim_name), pod.mount("repository", _CLAIM)
    yield _secret("password", repository.password.secret_name), pod.mount("password", _PASSWORD, readOnly=True)
    if repository.s3 and repository.s3.ca:
        yield _secret("store", repository.s3.ca.secret_name), pod.mount("store", _CA, readOnly=True)


def _secret(name: str, of: str) -> Object:
    return {"name": name, "secret": {"secretName": of, "defaultMode": pod.ROOT_READS}}


def _from_secret(key: str, secret: str) -> Object:
    return {"name": key, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
