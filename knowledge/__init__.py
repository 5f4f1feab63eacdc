"""What things are: the fact vocabulary, observations, identity, catalogues and runbooks."""
