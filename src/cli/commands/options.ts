// Flags and help text that several commands share.
import { TEXT_CHARS_MAX } from '../../contract/limits.ts'

/** Options of every command that calls the API. */
export const apiOptions = {
  url: { value: '<url>', summary: 'URL of the server (default: ADIT_URL or the profile)' },
  profile: { value: '<name>', summary: 'profile to use (default: the current one)' },
} as const

export const API_ACCESS =
  'Uses the server and API key from ADIT_URL and ADIT_API_KEY, or from the profile that `adit ' +
  'login` saved. Flags override the environment, which overrides the profile.'

export const labelOption = {
  value: '<text>',
  summary: `what the key is for, up to ${TEXT_CHARS_MAX} characters`,
  alias: 'name',
} as const

export const yesOption = { summary: 'do not ask for confirmation' } as const

export const forceOption = { summary: 'override the workspace policy; recorded in the audit log' } as const

export const workspaceOption = { value: '<slug>', summary: 'workspace' } as const

export const dayOption = { value: '<day>', summary: 'a UTC day, e.g. 2026-11-15' } as const
