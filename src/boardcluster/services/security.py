"""What closes the engines of a cluster: properties per configuration file. Pure.

The first line of defence is each board's firewall. What stands here is the second: it holds where
the firewall does not, and against what a browser can be made to do. What each control was seen to
do, and what does not work, is in docs/explanation/security.md.
"""

from __future__ import annotations

from boardcluster.records import Security
from boardcluster.services.layout import Layout
from boardcluster.spec.cluster import address_of

__all__ = [
    "INSECURE_WARNING",
    "LOCAL_WARNING",
    "ROOT_WARNING",
    "WEB_USER",
    "security_properties",
]

INSECURE_WARNING = "INSECURE LAB: anyone in its network can take over this cluster and its boards"

LOCAL_WARNING = "LOCAL NODE: while it is up, every user of this machine can run commands as you"
"""For a local node that an ordinary user brings up."""

ROOT_WARNING = (
    "LOCAL NODE OF ROOT: daemons and jobs run as root, and every user of this machine reaches them"
)
"""For a local node that root brings up; nothing puts another user between it and the machine."""

WEB_USER = "nobody"
"""Whoever opens a web page of a closed cluster is this user: an account without any right."""

_NOBODY = " "
"""An access list without users; an empty one would mean Hadoop's default, which is everybody."""


def security_properties(layout: Layout) -> dict[str, dict[str, str]]:
    """Return what the cluster's security sets on every node: file without suffix to properties.

    They win over a profile's. No list of users is on the protocols of application masters,
    containers and tasks: these present the id of an attempt as their user's name.
    """
    if layout.spec.security is Security.INSECURE_LAB:
        return {}
    members = ",".join(str(address_of(layout.spec, node.name)) for node in layout.spec.nodes)
    controls = _against_web_pages(members)
    if layout.spec.security is Security.EMULATED:
        return controls
    more: dict[str, dict[str, str]] = {
        "core-site": {
            # Calls with a token are encrypted: so containers get Spark's secret.
            "hadoop.rpc.protection": "privacy",
        },
        "hdfs-site": {
            "dfs.block.access.token.enable": "true",
        },
        "yarn-site": {
            "yarn.acl.enable": "true",
            "yarn.admin.acl": layout.user,
        },
        "mapred-site": {
            "mapreduce.cluster.acls.enabled": "true",
            "mapreduce.job.acl-view-job": WEB_USER,
            "mapreduce.jobhistory.admin.acl": layout.user,
        },
        "capacity-scheduler": {
            # A right on a queue holds for the queues below it, so the root gives none.
            "yarn.scheduler.capacity.root.acl_submit_applications": _NOBODY,
            "yarn.scheduler.capacity.root.acl_administer_queue": _NOBODY,
            "yarn.scheduler.capacity.root.default.acl_submit_applications": layout.user,
            "yarn.scheduler.capacity.root.default.acl_administer_queue": layout.user,
        },
        "spark-defaults": {
            "spark.authenticate": "true",
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.ui.view.acls": WEB_USER,
        },
    }
    return {file: controls.get(file, {}) | more.get(file, {}) for file in controls | more}


def _against_web_pages(members: str) -> dict[str, dict[str, str]]:
    """Return what keeps a page in the user's browser from working on any cluster.

    It is all that emulated nodes need. They are this machine's own programs: nobody else reaches
    them, but a page may, if it makes the browser take a node's address for its own host. What
    encrypts or asks for tokens takes time, and holds off nobody there.
    """
    return {
        "core-site": {
            # Who may connect, by address. In this file, and not in hadoop-policy.xml, because from
            # here it gets into the configuration of jobs, and so into their application masters.
            "hadoop.security.authorization": "true",
            "security.service.authorization.default.hosts": members,
            "hadoop.http.staticuser.user": WEB_USER,
        },
        "hdfs-site": {"dfs.webhdfs.rest-csrf.enabled": "true"},
        "yarn-site": {
            "yarn.webapp.enable-rest-app-submissions": "false",
            "yarn.resourcemanager.webapp.ui-actions.enabled": "false",
            "yarn.resourcemanager.webapp.rest-csrf.enabled": "true",
        },
        "spark-defaults": {"spark.ui.killEnabled": "false"},
    }
