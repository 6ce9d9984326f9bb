"""Small clients and throttles that passes of several kinds use."""
