"""Git for a campaign: a bare hub, one worktree per agent, one for landing; the user's checkout is never touched."""
