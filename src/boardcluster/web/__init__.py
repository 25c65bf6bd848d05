"""The dashboard: one page that shows what the cluster does now and what it did before."""
