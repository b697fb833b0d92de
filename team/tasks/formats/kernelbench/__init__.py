"""KernelBench: a problem file with ``Model``, ``get_inputs`` and ``get_init_inputs``; the answer is a ``ModelNew``."""
