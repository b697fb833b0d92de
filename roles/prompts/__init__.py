"""What a model is told, as short texts made from the briefing and the law; no number is written here."""
