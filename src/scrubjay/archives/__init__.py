"""Places outside the store where packed memories are archived."""
