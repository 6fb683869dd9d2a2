"""Five vocabularies over one memory."""
