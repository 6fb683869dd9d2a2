"""Spaces as folders of Markdown files that people read, edit and keep in git. Only the engine calls it."""
