"""Exact answers about the models of a theory: each component by itself, by the method that fits it."""
