"""Programs that run inside the pods. Identity and populate use the standard library alone: they start in a blink and stay small."""
