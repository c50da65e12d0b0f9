"""What follows: proofs."""
