"""Where memories are kept: rows, words, vectors, history and events; SQL lives here and only here."""
