"""Rooms: one presenter, many attendees, one shared engine. Everything of a room lives in the server's memory."""
