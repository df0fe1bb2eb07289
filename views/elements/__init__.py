"""What any page may draw: charts and tables with the same in words, tokens, boxes for text."""
