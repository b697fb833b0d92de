"""FlashInfer-Trace: a definition and its workloads become a task folder; a landed tree becomes a solution again.

Own types and readers, so that all of it works without the package ``flashinfer-bench``: that one brings 1.7 GB of
wheels along and its released evaluators reject a correct index set in another order (``official`` asks it all the same
where it is installed).
"""
