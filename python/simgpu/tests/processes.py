"""Runs functions of tests in processes of their own, in which torch is loaded already."""

import concurrent.futures
import multiprocessing

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["sim_training"])


def in_process_of_its_own(work, *arguments):
    """What work(*arguments) returns; BrokenProcessPool where it ends its process."""
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=processes) as one:
        return one.submit(work, *arguments).result()
