"""The product proves its own sensitivity: every fault of the catalogue is launched, and must be caught and named."""
