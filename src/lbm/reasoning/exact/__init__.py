"""Exact answers about the models of a theory: each component is solved by itself, by the method that fits it."""
