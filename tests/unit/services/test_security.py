"""What closes a cluster stands in the files, wins over profiles, and is left out where it must."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.services.test_conf import rows_of, spark_rows

from boardcluster.records import ClusterSpec, Security
from boardcluster.services.conf import render_node
from boardcluster.services.layout import Layout
from boardcluster.services.profile import profile_names
from boardcluster.services.security import WEB_USER, security_properties

MakeSpec = Callable[..., ClusterSpec]
MakeLayout = Callable[[ClusterSpec], Layout]
ADDRESSES = ("192.168.1.20", "192.168.1.31", "192.168.1.32")


@pytest.fixture
def boards(make_spec: MakeSpec, make_layout: MakeLayout) -> Callable[..., Layout]:
    def make(security: Security, *, profile: str = "default") -> Layout:
        spec = make_spec(workers=2, profile=profile)
        nodes = tuple(
            replace(node, address=address)
            for node, address in zip(spec.nodes, ADDRESSES, strict=True)
        )
        spec = replace(spec, kind="boards", security=security, nodes=nodes)
        return replace(make_layout(spec), user="boardcluster")

    return make


@pytest.fixture
def closed(boards: Callable[..., Layout]) -> Layout:
    return boards(Security.CLOSED)


def rendered(layout: Layout) -> list[dict[str, dict[str, str]]]:
    """Every node's properties, by file without suffix."""
    found = []
    for node in layout.spec.nodes:
        files = render_node(layout, node)
        rows = {
            name.removesuffix(".xml"): dict(rows_of(text))
            for name, text in files.items()
            if name.endswith(".xml")
        }
        rows["spark-defaults"] = dict(spark_rows(files["spark-defaults.conf"]))
        found.append(rows)
    return found


@pytest.mark.parametrize("profile", profile_names())
def test_every_property_gets_into_the_files_of_every_node(
    profile: str, boards: Callable[..., Layout]
) -> None:
    layout = boards(Security.CLOSED, profile=profile)

    for rows in rendered(layout):
        for file, properties in security_properties(layout).items():
            assert properties.items() <= rows[file].items()


def test_it_wins_over_the_profile_and_each_property_stands_once(closed: Layout) -> None:
    properties = {file: dict(rows) for file, rows in closed.profile.properties.items()}
    properties["yarn-site"]["yarn.acl.enable"] = "false"
    properties["spark-defaults"]["spark.authenticate"] = "false"
    layout = replace(closed, profile=replace(closed.profile, properties=properties))

    files = render_node(layout, layout.spec.master)

    yarn = [row for row in rows_of(files["yarn-site.xml"]) if row[0] == "yarn.acl.enable"]
    spark = [row for row in spark_rows(files["spark-defaults.conf"]) if "authenticate" in row[0]]
    assert yarn == [("yarn.acl.enable", "true")]
    assert spark == [("spark.authenticate", "true")]


def test_only_the_nodes_addresses_may_call(closed: Layout) -> None:
    for rows in rendered(closed):
        hosts = rows["core-site"]["security.service.authorization.default.hosts"]
        assert hosts == ",".join(ADDRESSES)


def test_no_list_of_users_is_on_any_protocol(closed: Layout) -> None:
    # Tokens present the id of an attempt as user: such a list would refuse every job.
    for rows in rendered(closed):
        for properties in rows.values():
            assert not [name for name in properties if re.match(r"security\..*\.acl$", name)]


def test_the_root_of_the_queues_gives_nobody_a_right(closed: Layout) -> None:
    queues = security_properties(closed)["capacity-scheduler"]
    rights = {name.rsplit("root.", 1)[1]: value for name, value in queues.items()}

    assert rights == {
        "acl_submit_applications": " ",
        "acl_administer_queue": " ",
        "default.acl_submit_applications": "boardcluster",
        "default.acl_administer_queue": "boardcluster",
    }


def test_white_space_as_a_value_survives_the_file(closed: Layout) -> None:
    text = render_node(closed, closed.spec.master)["capacity-scheduler.xml"]

    assert "<value> </value>" in text


def test_whoever_opens_a_page_is_not_the_owner_of_everything(closed: Layout) -> None:
    rows = rendered(closed)[0]

    assert rows["core-site"]["hadoop.http.staticuser.user"] == WEB_USER != closed.user
    assert rows["mapred-site"]["mapreduce.job.acl-view-job"] == WEB_USER


def test_no_secret_stands_in_a_file(closed: Layout) -> None:
    for rows in rendered(closed):
        for properties in rows.values():
            assert not [name for name in properties if "secret" in name or "password" in name]


def test_an_open_laboratory_has_none_of_it(boards: Callable[..., Layout]) -> None:
    layout = boards(Security.INSECURE_LAB)
    names = {
        (file, name)
        for file, properties in security_properties(boards(Security.CLOSED)).items()
        for name in properties
    }

    assert security_properties(layout) == {}
    for rows in rendered(layout):
        assert not names & {(file, name) for file, found in rows.items() for name in found}


def test_emulated_nodes_are_closed_to_pages_and_pay_for_nothing_else(
    layout: Layout, closed: Layout
) -> None:
    emulated, whole = security_properties(layout), security_properties(closed)
    rows = [(file, *row) for file, properties in emulated.items() for row in properties.items()]
    assert ("yarn-site", "yarn.webapp.enable-rest-app-submissions", "false") in rows
    assert ("core-site", "hadoop.http.staticuser.user", WEB_USER) in rows
    for file, name, value in rows:
        assert name in whole[file]
        assert value == whole[file][name] or name.endswith("default.hosts")
    assert not [row for row in rows if "token" in row[1] or "protection" in row[1]]


@pytest.mark.parametrize("security", list(Security))
def test_a_person_can_read_which_security_it_is(
    security: Security, boards: Callable[..., Layout]
) -> None:
    text = render_node(boards(security), boards(security).spec.master)["yarn-site.xml"]

    said = f"who may do what: security {security}, docs/explanation/security.md"
    assert (said in text) == (security is not Security.INSECURE_LAB)
