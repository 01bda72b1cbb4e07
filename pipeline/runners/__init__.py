"""Runners of Beam: what each engine needs beside the graph of a stage."""
