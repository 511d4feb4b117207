# SPDX-License-Identifier: Apache-2.0
"""Former names, which work for one more release with a deprecation warning."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from nearside._native import NearsideError

Called = TypeVar("Called", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[Called], Called]:
    """Makes a function or class accept former keywords, too: `renamed(engine="model")`."""

    def decorate(called: Called) -> Called:
        target: Any = called
        function = target.__init__ if isinstance(called, type) else called

        @functools.wraps(function)
        def wrapper(*args: Any, **given: Any) -> Any:
            for former, name in names.items():
                if former not in given:
                    continue
                warnings.warn(f"{called.__qualname__}: {former} is {name} now", DeprecationWarning, stacklevel=2)
                value = given.pop(former)
                if name in given and given[name] != value:
                    raise NearsideError(f"{name} = {given[name]!r}, {former} = {value!r}: {former} is {name} now")
                given[name] = value
            return function(*args, **given)

        if isinstance(called, type):
            target.__init__ = wrapper
            return called
        return cast("Called", wrapper)

    return decorate


def former_names(module: str, **names: str) -> Callable[[str], Any]:
    """A module's `__getattr__` for former names: `former_names(__name__, standing="resident")`."""

    def lookup(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return lookup


def former_method(name: str, present: str) -> Callable[..., Any]:
    """A method under its former name: `rest = former_method("rest", "advance_time")`."""

    def call(self: Any, *args: Any, **given: Any) -> Any:
        kind = type(self).__qualname__
        warnings.warn(f"{kind}.{name} is {present} now", DeprecationWarning, stacklevel=2)
        return getattr(self, present)(*args, **given)

    call.__doc__ = f"The former name of `{present}`."
    return call


def former(attribute: str, name: str) -> property:
    """An attribute under its former name: `engine = former("engine", "model")`."""

    def read(self: Any) -> Any:
        kind = type(self).__qualname__
        warnings.warn(f"{kind}.{attribute} is {name} now", DeprecationWarning, stacklevel=2)
        return getattr(self, name)

    return property(read, doc=f"The former name of `{name}`.")
