"""Pure decisions: from what is observed to what is done. No clock, no network, no chance."""
