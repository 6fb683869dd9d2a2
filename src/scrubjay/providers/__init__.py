"""Who answers in a conversation: a language model that somebody else runs."""
