"""Everything that reads language: words, names, denials, secrets. It knows values only."""
