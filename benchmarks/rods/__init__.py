"""mujacobian.rods in left perturbations and in rotation vectors, compared: `make bench-rods`."""
