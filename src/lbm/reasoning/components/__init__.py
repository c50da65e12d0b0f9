"""The components of a theory: each is solved on its own, by the method that fits it."""
