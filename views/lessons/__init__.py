"""What each lesson shows and says: one file a lesson, its controls' limits, its picture and its words. No layout."""
