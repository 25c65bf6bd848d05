"""A replicated database behind a balancer: MariaDB with Galera on workers, HAProxy on the master.

It runs beside the cluster's daemons and only while a workload measures it. Source: C. Baun,
"Mobile clusters of single board computers: an option for providing resources to student projects
and researchers", SpringerPlus 5, 2016, section "Useful applications".
"""
