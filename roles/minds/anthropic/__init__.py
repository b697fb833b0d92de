"""A mind that is a model of Anthropic, through the official SDK, which is imported when the mind is made."""
