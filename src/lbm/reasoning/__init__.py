"""What follows: proofs, counts, models and probabilities."""
