// Flags and help text that several commands share.

/** Options of every command that calls the API. */
export const apiOptions = {
  url: { value: '<url>', summary: 'server (default: ADIT_URL, or that of the profile)' },
  profile: { value: '<name>', summary: 'profile to use (default: the current one)' },
} as const

export const API_ACCESS =
  'The server and the API key come from ADIT_URL and ADIT_API_KEY, or from the profile saved by `adit ' +
  'login`. Flags take precedence over the environment, and the environment over the profile.'

export const labelOption = { value: '<text>', summary: 'what the key is for, up to 80 characters' } as const

export const yesOption = { summary: 'do not ask for confirmation' } as const

export const forceOption = { summary: 'override the policy of the workspace; the audit log says so' } as const

export const workspaceOption = { value: '<slug>', summary: 'workspace' } as const

export const dayOption = { value: '<day>', summary: 'a UTC day, e.g. 2026-11-15' } as const
