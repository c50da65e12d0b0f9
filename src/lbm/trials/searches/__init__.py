"""What several parts measure: problems that are made here, and ways to look for their models."""
