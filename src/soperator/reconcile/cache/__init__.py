"""What the operator knows: informers, and what is read from them once for all passes."""
