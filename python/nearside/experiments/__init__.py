# SPDX-License-Identifier: Apache-2.0
"""Experiments: figures and tables of the papers, measured here. Each figure is a module of this
package.

Modules that define `EXPERIMENT` are found automatically; docs/experiments.md says how to write one.
"""

from nearside.experiments.registry import Experiment, Run, all_experiments, figure, find, plot

__all__ = ["Experiment", "Run", "all_experiments", "figure", "find", "plot"]
