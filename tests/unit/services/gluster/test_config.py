"""Which bricks keep the same files, and what a glusterd is told, without nodes."""

import pytest

from boardcluster.services.gluster.config import (
    client_of,
    place_bricks,
    render_daemon,
    render_member,
    render_peer,
    version_number,
)


def test_workers_that_divide_have_one_brick_each() -> None:
    bricks = place_bricks(["a", "b", "c", "d"], 2)

    assert [(brick.worker, brick.group) for brick in bricks] == [
        *(("a", 0), ("b", 0)),
        *(("c", 1), ("d", 1)),
    ]
    assert client_of(bricks, "c") == ("boardcluster-client-2",)


@pytest.mark.parametrize(("workers", "replicas"), [(3, 2), (4, 3), (5, 2), (5, 3), (7, 3)])
def test_workers_that_do_not_divide_are_used_alike_and_no_set_has_one_twice(
    workers: int, replicas: int
) -> None:
    names = [f"w{number}" for number in range(workers)]

    bricks = place_bricks(names, replicas)

    assert {sum(brick.worker == name for brick in bricks) for name in names} == {replicas}
    for group in range(workers):
        held = [brick.worker for brick in bricks if brick.group == group]
        assert len(held) == len(set(held)) == replicas
    # Bricks of a set stand beside each other, as `volume create` takes them.
    assert [brick.group for brick in bricks] == sorted(brick.group for brick in bricks)


def test_a_daemon_listens_at_its_own_address_alone() -> None:
    lines = render_daemon("198.18.7.3").splitlines()

    assert "    option transport.socket.bind-address 198.18.7.3" in lines
    assert "    option transport.socket.listen-port 24007" in lines


def test_a_member_of_the_pool_is_written_as_gluster_keeps_it() -> None:
    assert render_member("u", 100000) == "UUID=u\noperating-version=100000\n"
    assert render_peer("u", "198.18.7.4") == "uuid=u\nstate=3\nhostname1=198.18.7.4\n"


def test_the_number_of_a_version_is_that_of_its_first_part() -> None:
    assert version_number("glusterfs 10.3\nRepository revision: git\n") == 100_000
    assert version_number("glusterfs 9.2\n") == 90_000
    with pytest.raises(ValueError, match="no version of GlusterFS"):
        version_number("command not found")
