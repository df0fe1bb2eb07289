"""The Dockerfile's steps, run as they are written in a fresh root folder, where no Docker daemon runs."""
