"""``python -m lbm``: the command line, for when ``lbm`` is not on the path."""

import sys

from lbm.views.entry import main

if __name__ == "__main__":
    sys.exit(main())
