# SPDX-License-Identifier: Apache-2.0
"""The former name of `nearside.kv_server`; this module works for one more release."""

import warnings

from nearside import kv_server
from nearside.kv_server import LEAST_BYTES, LOOPBACK, PROTOCOLS, KvServer

__all__ = ["LEAST_BYTES", "LOOPBACK", "PROTOCOLS", "Front", "run"]

Front = KvServer
run = kv_server.serve_until_signal

warnings.warn("nearside.front is nearside.kv_server now", DeprecationWarning, stacklevel=2)
