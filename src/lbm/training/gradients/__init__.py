"""Gradients: what a batch of rows costs, and the steps that lower it."""
