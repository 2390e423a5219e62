"""Swap for one training: a file on the disk, or compressed memory. Off again and gone at the end."""

import os
import signal
import subprocess

from memory_group import Unavailable, number, write

CLUSTER = "/proc/sys/vm/page-cluster"
ZRAM = "/sys/block/zram0"


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")


def quietly(*command):
    # In a session of its own, so that Ctrl-C does not stop the removal in the middle.
    subprocess.run(command, capture_output=True, check=False, start_new_session=True)


class Undisturbed:
    """Signals wait until the block is over: what it undoes is undone."""

    SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

    def __enter__(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)

    def __exit__(self, *_):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.SIGNALS)


class SwapFile:
    def __init__(self, folder, size, cluster):
        self.path = os.path.join(folder, f"tidepool-bench-swap-{os.getpid()}")
        self.size, self.cluster, self.before = size, cluster, None

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("swap needs root")
        with open("/proc/swaps", encoding="ascii") as file:
            if "tidepool-bench-swap" in file.read():
                raise Unavailable("another bench has its swap on")
        try:
            with open(self.path, "wb") as file:
                os.chmod(self.path, 0o600)
                os.posix_fallocate(file.fileno(), 0, self.size)
            call("mkswap", self.path)
            # Above whatever else there is.
            call("swapon", "--priority", "100", self.path)
            self.before = number(CLUSTER)
            write(CLUSTER, self.cluster)
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"{self.path}: {error}") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with Undisturbed():
            if self.before is not None:
                write(CLUSTER, self.before)
            quietly("swapoff", self.path)
            if os.path.exists(self.path):
                os.unlink(self.path)

    def memory_outside(self):
        """Bytes of memory that it takes now, which the group does not count."""
        return 0


class CompressedCache(SwapFile):
    """zswap: what goes to the swap file is kept compressed in memory as long as there is room."""

    SWITCH = "/sys/module/zswap/parameters/enabled"

    def __enter__(self):
        if not os.path.exists(self.SWITCH):
            raise Unavailable("this kernel has no zswap")
        with open(self.SWITCH, encoding="ascii") as file:
            self.was = file.read().strip()
        super().__enter__()
        write(self.SWITCH, "Y")
        return self

    def __exit__(self, *what):
        with Undisturbed():
            write(self.SWITCH, self.was)
        super().__exit__(*what)

    def memory_outside(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("Zswap:"):
                    return int(line.split()[1]) * 1024
        return None


class CompressedMemory:
    """zram: the kernel's compressed block device in memory."""

    def __init__(self, size, algorithm="lz4"):
        self.size, self.algorithm, self.made, self.before = size, algorithm, False, None

    def __enter__(self):
        if not os.path.exists(ZRAM):
            quietly("modprobe", "zram")
        if not os.path.exists(ZRAM):
            raise Unavailable("this kernel has no zram")
        if number(ZRAM + "/disksize") != 0:
            raise Unavailable("zram0 is in use")
        self.before = number(CLUSTER)
        try:
            write(ZRAM + "/comp_algorithm", self.algorithm)
            self.made = True
            write(ZRAM + "/disksize", self.size)
            call("mkswap", "/dev/zram0")
            call("swapon", "--priority", "100", "/dev/zram0")
            write(CLUSTER, 0)  # nothing is gained by reading ahead
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"zram0: {error}") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with Undisturbed():
            if self.made:
                quietly("swapoff", "/dev/zram0")
                write(ZRAM + "/reset", 1)
                self.made = False
            write(CLUSTER, self.before)

    def memory_outside(self):
        """The most it ever took."""
        try:
            with open(ZRAM + "/mm_stat", encoding="ascii") as file:
                return int(file.read().split()[4])
        except (OSError, ValueError, IndexError):
            return None
