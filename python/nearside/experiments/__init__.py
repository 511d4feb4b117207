"""Experiments: the figures and tables of the papers, measured here. A figure is one file of this package.

A module that defines `EXPERIMENT` is found by itself; docs/experiments.md says how to write one.
"""

from nearside.experiments.registry import Experiment, Run, all_experiments, figure, find, plot

__all__ = ["Experiment", "Run", "all_experiments", "figure", "find", "plot"]
