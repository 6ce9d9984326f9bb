"""OpenTofu and a Helm provider for the tests of infra/, built from their Go modules.

The module is written for Helm provider 3 and later. The newest one that is to be had as a Go module is 1.3.2; what infra/ uses of it is the
same in both (docs/decisions/0180). A development override puts it in place without a registry and without a check of its version.
"""

from pathlib import Path

from local import goprogram

_HERE = Path(__file__).resolve().parent
_TOFU = (_HERE / "tofu", "tofu", "tofu")
_HELM = (_HERE / "helm-provider", "terraform-provider-helm", "terraform-provider-helm")


def find() -> tuple[Path, Path] | None:
    """Return the paths of OpenTofu and of the provider; None if one is not built."""
    tofu, helm = goprogram.find(*_TOFU), goprogram.find(*_HELM)
    return (tofu, helm) if tofu and helm else None


def build() -> tuple[Path, Path]:
    """Return the paths of OpenTofu and of the provider, and build what is missing."""
    tofu = goprogram.build(*_TOFU, "the first build takes minutes", "github.com/opentofu/opentofu/cmd/tofu")
    helm = goprogram.build(*_HELM, "the first build takes minutes", "github.com/hashicorp/terraform-provider-helm")
    return tofu, helm


def cli_configuration(helm: Path) -> str:
    """Return a configuration of OpenTofu by which this provider is used, without a look at any registry."""
    return f'provider_installation {{\n  dev_overrides {{\n    "hashicorp/helm" = "{helm.parent}"\n  }}\n}}\n'
