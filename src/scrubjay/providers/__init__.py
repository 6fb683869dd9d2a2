"""What answers in a conversation: a language model that someone else runs."""
