"""The static screen: reads a candidate's text before anything of it runs, and names what no kernel needs. Trusted.

A first, cheap layer that makes the usual tricks fail early and with a line number. It is never the only one: whatever
it does not see meets the sandbox, lent buffers, unpredictable inputs and the judge's own clock.
"""
