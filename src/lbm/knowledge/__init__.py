"""What is said: formulae, the text format, theories."""
