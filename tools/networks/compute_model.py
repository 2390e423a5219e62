"""The compute model of the preset gtx1080ti (src/cost/machine.cpp), for what has no times."""

PEAK_FLOPS = 11.34e12
BANDWIDTH = 360e9
LAUNCH_NS = 10_000
MAX_EFFICIENCY = 0.84
HALF_FLOPS = 2.43e9


def time_ns(flops, traffic):
    seconds = traffic / BANDWIDTH
    if flops > 0:
        efficiency = MAX_EFFICIENCY * flops / (flops + HALF_FLOPS)
        seconds = max(seconds, flops / (efficiency * PEAK_FLOPS))
    return round(seconds * 1e9) + LAUNCH_NS
