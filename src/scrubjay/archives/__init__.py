"""Places outside the store where packed memories are put away."""
