"""What is computed from the models and checked in: CRDs, the chart's schema, reference pages."""
