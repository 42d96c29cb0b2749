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

FEW, MANY = 20_000, 2_200_000
"""The numbers of values. With many, an object is an upload of two parts."""
SHORT = ("moto", "google")
"""The servers of continuous integration, with few values and faults."""


@pytest.fixture(scope="module", params=SERVICES)
def direct(request: pytest.FixtureRequest) -> Iterator[Service]:
    with service(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def proxied(direct: Service) -> Iterator[tuple[Service, FaultProxy]]:
    with fault_proxy(direct.endpoint) as (endpoint, proxy):
        yield direct.at(endpoint), proxy


def values(server: Service, name: str, state: str) -> np.ndarray:
    """Return the values of a state; few in continuous integration, and in directories."""
    count = FEW if server.name in SHORT or name.endswith("/") else MANY
    return np.arange(count) + (0.5 if state == "new" else 0.0)


def write(server: Service, name: str, state: str, mode: Any = "w") -> None:
    """Write a state, in two chunks and two commits."""
    given = values(server, name, state)
    with ambar.create(
        server.url(name), mode, profile="raw", storage_options=server.options
    ) as writer:
        writer.create_array("x", given, chunks=(len(given) // 2,))
        writer.commit()
        writer.create_array("sum", np.array([given.sum()]))


def state_of(server: Service, name: str) -> str:
    """Whether a store has the old or the new values."""
    store = ambar.open_store(server.url(name), storage_options=server.options)
    store.verify()
    found = store["x"][...]
    state = "new" if found[0] else "old"
    np.testing.assert_array_equal(found, values(server, name, state))
    # The first commit of a directory lacks the sum.
    assert "sum" not in store or store["sum"][0] == found.sum()
    return state


@pytest.mark.parametrize("name", ["x.ambar", "x/"])
def test_requests_that_fail_are_repeated(
    direct: Service, proxied: tuple[Service, FaultProxy], name: str
) -> None:
    server, proxy = proxied
    name = f"faults-{name}"
    write(direct, name, "old")
    proxy.restart()
    write(server, name, "new")
    total = proxy.count
    is_short = direct.name in SHORT
    # A repetition alone does not repair a lost answer, and the client repeats only some requests
    # if a connection is closed.
    writes: tuple[Fault, ...] = ("lost", "closed") if is_short else FAULTS[:4]
    for fault in writes:
        for number in range(0, total, 3 if is_short and total > 10 else 1):
            write(direct, name, "old")
            proxy.restart()
            proxy.faults = {number: fault}
            write(server, name, "new")
            assert state_of(direct, name) == "new", (fault, number)
    proxy.restart()
    assert state_of(server, name) == "new"
    total = proxy.count
    reads: tuple[Fault, ...] = ("truncated",) if is_short else FAULTS
    for fault in reads:
        for number in range(total):
            proxy.restart()
            proxy.faults = {number: fault}
            assert state_of(server, name) == "new", (fault, number)
    # An upload whose number was lost cannot be aborted.
    assert direct.uploads() <= 1


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
    is_short = direct.name in SHORT
    for at in count():
        ends = True
        for before in (at % 2 == 0,) if is_short else (True, False):
            write(direct, name, "old")
            ended = in_child(lambda: write(server, name, "new"), proxy, at, before=before)
            ends &= ended
            found = state_of(direct, name)
            assert not ended or found == "new"
            seen.add(found)
            # The next writer is not disturbed.
            write(direct, name, "old")
            assert state_of(direct, name) == "old"
        if ends:
            break
    assert seen == {"old", "new"}
    assert at >= 3
