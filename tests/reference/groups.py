"""Chains that are offered no group of atoms to flip together."""

import numpy as np

NO_GROUPS = (np.zeros(0, np.int32), np.zeros(1, np.int32))
"""Members and starts, as ``groups_of`` returns them."""
