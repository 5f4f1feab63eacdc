"""NVIDIA's and the frameworks' own error catalogues, as data with typed access."""
