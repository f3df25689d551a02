// Archived workspaces, whose API keys are rejected.

/** How long the operator can restore one. */
export const RESTORABLE_DAYS = 30

export const ARCHIVED_KEY = `The workspace of this API key is archived. The operator can restore it within ${RESTORABLE_DAYS} days.`
