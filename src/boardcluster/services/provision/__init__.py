"""Turn a bare board into what the cluster needs, and back (decision 0017).

``desired`` says what a node is to have, ``plan`` what that would change, ``provision`` does it on
all nodes, ``uninstall`` takes it back exactly. ``managers_of`` starts and stops daemons.
"""
