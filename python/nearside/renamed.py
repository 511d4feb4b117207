"""Former names, which work for one more release with a deprecation warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from nearside._native import NearsideError

Called = TypeVar("Called", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[Called], Called]:
    """Makes a function or class accept former keywords, too: `renamed(engine="model")`."""

    def decorate(called: Called) -> Called:
        function = called.__init__ if isinstance(called, type) else called

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
            called.__init__ = wrapper  # type: ignore[misc]
            return called
        return wrapper  # type: ignore[return-value]

    return decorate


def former(attribute: str, name: str) -> property:
    """An attribute under its former name: `engine = former("engine", "model")`."""

    def read(self: Any) -> Any:
        kind = type(self).__qualname__
        warnings.warn(f"{kind}.{attribute} is {name} now", DeprecationWarning, stacklevel=2)
        return getattr(self, name)

    return property(read, doc=f"The former name of `{name}`.")
