"""Deep networks with a theory on top: what they are trained on, how, and what comes out."""
