"""Everything that is computed from the models and checked in, written at once: `make crds`."""

from soperator.crd import generate, reference, values


def main() -> None:
    """Write the CRDs, the chart's values schema and the reference pages below the working directory."""
    values.PATH.parent.mkdir(parents=True, exist_ok=True)
    values.PATH.write_text(values.text(), encoding="utf-8")
    for path in (*generate.write(generate.CHART), values.PATH, *reference.write(reference.FOLDER)):
        print(path)


if __name__ == "__main__":
    main()
