"""`python -m letitcook`."""

from letitcook.cli import main

main()
