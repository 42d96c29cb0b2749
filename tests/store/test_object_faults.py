"""Failed requests to object stores, and killed clients: the old state, or the new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.fault_proxy import FAULTS, Fault, FaultProxy, fault_proxy
from tests.helpers.object_services import SERVICES, Service, service

OLD, NEW = np.arange(200_000.0), np.arange(200_000.0) + 1


@pytest.fixture(scope="module", params=["moto", *SERVICES[2:]])
def direct(request: pytest.FixtureRequest) -> Iterator[Service]:
    with service(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def proxied(direct: Service) -> Iterator[tuple[Service, FaultProxy]]:
    with fault_proxy(direct.endpoint) as (endpoint, proxy):
        yield direct.at(endpoint), proxy


def write(server: Service, name: str, values: np.ndarray, mode: Any) -> None:
    """Write values, in several chunks and two commits."""
    with ambar.create(
        server.url(name), mode, profile="raw", storage_options=server.options
    ) as writer:
        writer.create_array("x", values, chunks=(50_000,))
        writer.commit()
        writer.create_array("sum", np.array([values.sum()]))


def state(server: Service, name: str) -> str:
    """Whether a store has the old or the new values, or is absent."""
    try:
        store = ambar.open_store(server.url(name), storage_options=server.options)
    except FileNotFoundError:
        return "absent"
    store.verify()
    found = store["x"][...]
    total = store["sum"][0] if "sum" in store else None
    for text, values in (("old", OLD), ("new", NEW)):
        if np.array_equal(found, values):
            # The first commit of the new values, in a directory.
            assert total in (values.sum(), None, OLD.sum())
            return text
    raise AssertionError("the values are neither old nor new")


@pytest.mark.parametrize("name", ["x.ambar", "x/"])
def test_requests_that_fail_are_repeated(
    direct: Service, proxied: tuple[Service, FaultProxy], name: str
) -> None:
    server, proxy = proxied
    name = f"faults-{name}"
    write(direct, name, OLD, "w")
    proxy.restart()
    write(server, name, NEW, "w")
    total = proxy.count
    # In continuous integration, the fault that a repetition alone does not repair.
    writes: tuple[Fault, ...] = ("lost",) if direct.name == "moto" else FAULTS[:4]
    for fault in writes:
        for number in range(total):
            write(direct, name, OLD, "w")
            proxy.restart()
            proxy.faults = {number: fault}
            write(server, name, NEW, "w")
            assert state(direct, name) == "new", (fault, number)
    for fault in FAULTS[2:]:
        proxy.restart()
        assert state(server, name) == "new"
        for number in range(proxy.count):
            proxy.restart()
            proxy.faults = {number: fault}
            assert state(server, name) == "new", (fault, number)
    assert direct.uploads() == 0


def in_child(action: Callable[[], None], proxy: FaultProxy, at: int, *, before: bool) -> bool:
    """Run `action` in a process that is killed at a request. Return whether it has ended before."""
    proxy.restart()
    is_ready, make_ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(is_ready, 1)
            action()
            os._exit(0)
        except BaseException:
            os._exit(1)
    proxy.victim, proxy.kill_before, proxy.kill_at = child, before, at
    os.write(make_ready, b".")
    _, status = os.waitpid(child, 0)
    with proxy.lock:
        proxy.victim = None
    proxy.wait_until_idle()
    for end in (is_ready, make_ready):
        os.close(end)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


@pytest.mark.parametrize("name", ["x.ambar", "x/"])
def test_a_killed_writer_leaves_the_old_or_the_new_state(
    direct: Service, proxied: tuple[Service, FaultProxy], name: str
) -> None:
    server, proxy = proxied
    name = f"kills-{name}"
    seen = set()
    for at in count():
        ends = True
        for before in (True, False):
            write(direct, name, OLD, "w")
            ended = in_child(lambda: write(server, name, NEW, "w"), proxy, at, before=before)
            ends &= ended
            found = state(direct, name)
            assert found == ("new" if ended else found) != "absent"
            seen.add(found)
            # The next writer is not disturbed.
            write(direct, name, OLD, "w")
            assert state(direct, name) == "old"
        if ends:
            break
    assert seen == {"old", "new"}
    assert at >= 5
