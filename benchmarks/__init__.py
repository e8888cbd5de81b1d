"""Compare accuracy, speed and scaling with mjd_transitionFD and Pinocchio: `make bench`."""
