"""From a divergence to its cause: the module that makes it, the package that brings it."""
