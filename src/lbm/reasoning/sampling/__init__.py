"""Sampling: what chains run on, their steps, what they allow one to say, and the paper's pool of chains."""
