"""Writes all generated files at once, so that none is forgotten: `make crds`."""

from soperator.crdgen import generate, reference, values
from soperator.observe import grafana


def main() -> None:
    """Write the CRDs, the chart's values schema, the reference pages and the dashboards below the working directory."""
    values.PATH.parent.mkdir(parents=True, exist_ok=True)
    values.PATH.write_text(values.text(), encoding="utf-8")
    crds, pages = generate.write(generate.CHART, generate.files()), generate.write(reference.FOLDER, reference.files())
    for path in (*crds, values.PATH, *pages, *grafana.write()):
        print(path)


if __name__ == "__main__":
    main()
