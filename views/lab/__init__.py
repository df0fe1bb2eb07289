"""What each experiment of the lab asks for and shows. The experiments themselves are in course/."""
