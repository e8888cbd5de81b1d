"""Judges of derivatives and the reference solutions that they compare with."""
