// Limits of inputs as plain constants: the schemas, the dashboard and the help of commands use the same ones.

/** Names, labels and searches, in Unicode code points. */
export const TEXT_CHARS_MAX = 80

/** A DNS label: the slug of a workspace, the name of a tunnel. */
export const DNS_LABEL_CHARS_MAX = 63

/** A new password. */
export const PASSWORD_CHARS = { min: 8, max: 128 } as const

/** A code of the authenticator app, or a recovery code. */
export const CODE_CHARS = { min: 6, max: 20 } as const

/** The code that a device shows, as typed. */
export const USER_CODE_CHARS_MAX = 20

/** The query string of an authorization request of an agent. */
export const AUTHORIZATION_CHARS_MAX = 12_000

/** Maximum lifetime of a key. */
export const KEY_DAYS_MAX = 3_650

/** A page of keys, and the part of the whole list that is sent at once. */
export const KEYS_PER_PAGE_MAX = 1_000

/** A page of other lists. */
export const PAGE_ITEMS = { max: 200, default: 50 } as const

/** Days of usage, including today. */
export const USAGE_DAYS = { max: 365, default: 30 } as const

/** The public URL of an edge. */
export const EDGE_URL_CHARS_MAX = 300

export const WEBHOOKS_MAX = 10
export const WEBHOOK_URL_CHARS_MAX = 1_000
