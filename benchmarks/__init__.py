"""Accuracy, speed and scaling of mujacobian beside mjd_transitionFD and Pinocchio: `make bench`."""
