def loops():
    import os
    if os.environ.get("PLAIN"):
        from lbm.reasoning.engine import plain
        return plain
    from lbm.reasoning.engine import kernels
    return kernels
