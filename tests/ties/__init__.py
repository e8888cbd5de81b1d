"""States exactly between two branches, by subject, and the judge of their derivatives."""
