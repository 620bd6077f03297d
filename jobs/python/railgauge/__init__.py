# SPDX-License-Identifier: BSD-3-Clause
"""railgauge - read what railgauge measured: points, topology, plan, cost matrix, predictions and verdicts.

    from railgauge import Campaign, Matrix

    c = Campaign("demo")
    c.points().where(op="pair_bw", tier="rail").frame()     # pandas, where it is installed; else rows are dicts
    c.parts()                                               # what to act on

    m = Matrix("demo")                                      # or matrix.json itself
    m.pair(m.find("r00n00", 0), m.find("r01n00", 0), 1 << 20)       # seconds

    # by the C library, librailgauge.so.0 or $LIBRAILGAUGE:
    m.collective("all_gather", range(72), 64 << 20)                 # seconds
    m.collective_ranges("all_gather", [m.hosts_range(0, 18)], 64 << 20)     # large groups in no time
    with m.job("model=llama3.1-70b layout=tp=4,dp=auto") as job:
        job.cost(["r00n00", "r00n01", "r00n02", "r00n03"])

Reading, and prices of pairs, need the standard library only.  Sizes are bytes, times seconds, GBps 1e9 bytes a second of one direction.
Files are checked as the programs check them: format, version, checksum, schema; what is wrong raises Error.
"""

from .campaign import Campaign, Prediction, Verdict, read_accept, read_predictions
from .files import Error, Table, read_json
from .matrix import Matrix
from .places import Endpoint, Topology
from .points import read_plan, read_points

__version__ = "0.1.0"
__all__ = ["Campaign", "Endpoint", "Error", "Matrix", "Prediction", "Table", "Topology", "Verdict", "read_accept",
           "read_json", "read_plan", "read_points", "read_predictions"]
