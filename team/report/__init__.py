"""What people see of a campaign: lines, status, log, live view, one page, notes. Rendered from the ledger alone."""
