"""Explanations: a prediction as the terms it is the sum of, and a machine as the rules it stands for."""
