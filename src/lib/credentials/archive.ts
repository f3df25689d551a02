// Archived workspaces, whose API keys are rejected.

/** How long the operator can restore one. */
export const RESTORABLE_DAYS = 30

export const WORKSPACE_OF_KEY_ARCHIVED = 'The workspace of this API key is archived.'
export const ARCHIVED_KEY = `${WORKSPACE_OF_KEY_ARCHIVED} The operator can restore it within ${RESTORABLE_DAYS} days.`
