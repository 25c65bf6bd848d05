"""What MariaDB and HAProxy are told."""

import re

from boardcluster.services.galera.config import (
    GALERA_PORTS,
    PROVIDER,
    buffer_bytes,
    render_balancer,
    render_client,
    render_server,
)

MEMBERS = {f"worker{number}": f"198.18.0.{number + 2}" for number in (1, 2, 3)}


def server(*, dilation: float = 1.0) -> str:
    return render_server(
        root="/srv",
        node="worker2",
        address="198.18.0.4",
        members=MEMBERS,
        name="n",
        cores=4,
        memory_bytes=1 << 30,
        dilation=dilation,
    )


def test_a_server_listens_at_its_node_alone_and_keeps_everything_in_its_folder() -> None:
    text = server()

    own = re.findall(r"198\.18\.0\.4\S*", text.replace(";", " "))
    assert "bind_address = 198.18.0.4\n" in text
    assert "gmcast.listen_addr=tcp://198.18.0.4:8012;" in text
    assert "ist.recv_addr=198.18.0.4:8013;" in text
    assert "wsrep_sst_receive_address = 198.18.0.4:8014\n" in text
    assert len(own) == 6  # those, its own name in the group, and itself among the members
    assert "0.0.0.0" not in text
    places = re.findall(r"(?<![/:\w])/\w\S*", text)
    assert {place for place in places if not place.startswith("/srv/")} == {PROVIDER}


def test_times_of_the_group_follow_the_nodes() -> None:
    assert "evs.suspect_timeout=PT2S;" in server()
    assert "evs.suspect_timeout=PT7S;" in server(dilation=3.5)


def test_a_small_node_still_gets_a_buffer() -> None:
    assert buffer_bytes(1 << 30) == 128 << 20
    assert buffer_bytes(100 << 20) == 32 << 20


def test_the_balancer_asks_for_the_state_and_ends_what_goes_to_a_lost_server() -> None:
    text = render_balancer(MEMBERS, address="198.18.0.2", cores=128, dilation=2.0)
    assert "nbthread 64\n" in text

    assert "bind 198.18.0.2:8010 " in text
    assert text.count("bind ") == 1
    assert "check port 8015 inter 800ms" in text
    assert "on-marked-down shutdown-sessions" in text
    assert text.count("\n    server ") == 3
    assert "    server worker3 198.18.0.5:8011\n" in text
    assert "timeout check 2000ms" in text  # a busy server may take longer than from check to check


def test_the_password_is_in_the_files_of_clients_alone() -> None:
    sysbench, client = render_client(user="bench", password="p4ss")

    assert sysbench == "mysql-user=bench\nmysql-password=p4ss\n"
    assert client == "[client]\nuser=bench\npassword=p4ss\n"


def test_no_two_parts_share_a_port() -> None:
    assert len(set(GALERA_PORTS.values())) == len(GALERA_PORTS)
