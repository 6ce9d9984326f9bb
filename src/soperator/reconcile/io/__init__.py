"""Small clients and throttles that several reconcilers use."""
