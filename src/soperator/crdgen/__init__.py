"""Files that are generated from the models and checked in, so that they cannot diverge: CRDs, the chart's schema, reference pages."""
