"""Files that are generated from the models and checked in: CRDs, the chart's schema, reference pages."""
