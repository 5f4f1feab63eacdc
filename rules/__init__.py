"""What to conclude: rule model, three-valued conditions, engine and proofs."""
