"""The technique catalog: cards with field evidence and, where mechanical, a transform of the source."""
