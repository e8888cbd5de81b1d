"""Compare mujacobian.rods in left perturbations and in rotation vectors: `make bench-rods`."""
