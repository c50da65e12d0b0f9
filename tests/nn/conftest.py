"""Layers run side by side: each keeps to one thread, or they would wait for one another."""

import torch

torch.set_num_threads(1)
