"""The nouns and the tools that everything else is made of."""
