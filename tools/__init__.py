"""Programs to run by hand: doctor, kit, recorder. They may import every other package; none imports them."""
