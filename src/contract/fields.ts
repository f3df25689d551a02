// Fields that are shared by several operations.

import Type, { type Static, type TObject, type TProperties, type TSchemaOptions } from 'typebox'
import { DNS_LABEL_CHARS_MAX, EDGE_URL_CHARS_MAX, TEXT_CHARS_MAX, USAGE_DAYS } from './limits.ts'
import { DISPLAY_NAME, DISPLAY_TEXT } from './text.ts'

/** The error message for a value that does not match the pattern. */
const rule = (text: string) => ({ 'x-rule': text })

const NO_CONTROLS = '^[^\\p{Cc}\\p{Cs}]*$'

const NO_CONTROLS_RULE = 'must be well-formed text without control characters'

export const Instant = Type.String({
  format: 'date-time',
  description: 'ISO 8601 timestamp in UTC, with milliseconds.',
  examples: ['2026-11-15T10:02:11.000Z'],
})

/** A timestamp in a request: in UTC, with at most milliseconds. */
export const UtcTimestamp = (options: TSchemaOptions = {}) =>
  Type.String({
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?Z$',
    examples: ['2026-11-15T10:02:11.000Z'],
    ...options,
    ...rule('must be a UTC timestamp such as 2026-11-15T10:02:11.000Z'),
  })

/** A list of types instead of a union: valid in OpenAPI 3.1, and faster to serialize. */
export const InstantOrNull = (description?: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description })
export const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })
export const IntegerOrNull = Type.Unsafe<number | null>({ type: ['integer', 'null'] })
export const ObjectOrNull = <T extends TObject>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: ['object', 'null'] })

export const OneOf = <const V extends string>(values: readonly V[], description?: string) =>
  Type.Unsafe<V>({ type: 'string', enum: [...values], ...(description && { description }) })

/** A count that may exceed 2^53: a bigint in code, an integer in JSON. */
export const Count = (description?: string) =>
  Type.Unsafe<bigint>({ type: 'integer', minimum: 0, description })

/** Displayed text. Characters that could break a line or a terminal, or mislead readers, are rejected. */
const DisplayText = (options: TSchemaOptions = {}) =>
  Type.String({
    maxLength: TEXT_CHARS_MAX,
    pattern: DISPLAY_TEXT,
    ...options,
    ...rule('must be well-formed text without control or invisible characters'),
  })

export const Label = DisplayText({
  description:
    `At most ${TEXT_CHARS_MAX} characters (Unicode code points), without control, bidirectional or invisible ` +
    'characters. U+200C and U+200D may join emoji, and letters of scripts that need them.',
  examples: ['ci'],
})

/** What a user types to find something by its name or label. */
export const SearchText = DisplayText

/** Like `DisplayText`, and not blank. */
const DisplayName = (options: TSchemaOptions) =>
  Type.String({
    minLength: 1,
    maxLength: TEXT_CHARS_MAX,
    pattern: DISPLAY_NAME,
    ...options,
    ...rule('must not be blank'),
  })

export const WorkspaceName = DisplayName({
  description: 'Display name of the workspace.',
  examples: ['Acme'],
})

export const EdgeName = DisplayName({
  description: 'Name of the edge.',
  examples: ['fra-1'],
})

export const EdgeGroupName = Type.String({
  minLength: 1,
  maxLength: DNS_LABEL_CHARS_MAX,
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  description: 'Name of a group of edges.',
  examples: ['default'],
  ...rule('must be lower-case letters, digits and hyphens between them'),
})

export const EdgeUrl = Type.String({
  maxLength: EDGE_URL_CHARS_MAX,
  pattern: '^https?://[^\\s@?#\\\\]+$',
  description: 'Public URL of the edge, where tunnel clients connect.',
  examples: ['https://edge.example.com'],
  ...rule('must be a URL such as https://edge.example.com, without user, query or fragment'),
})

export const UserName = DisplayName({
  description: 'Display name of the user.',
  examples: ['Ann Example'],
})

/** ASCII only, which every mail server accepts. */
const EMAIL =
  "^([A-Za-z0-9_'+-]+\\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$"
const EMAIL_CHARS_MAX = 254

export const Email = Type.String({
  maxLength: EMAIL_CHARS_MAX,
  pattern: EMAIL,
  description: 'Email address, case-insensitive.',
  examples: ['ann@example.com'],
  ...rule('must be an email address, such as ann@example.com'),
})

const emailPattern = new RegExp(EMAIL)

export const isEmail = (text: string): boolean => text.length <= EMAIL_CHARS_MAX && emailPattern.test(text)

export const UsageDays = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: USAGE_DAYS.max,
    default: USAGE_DAYS.default,
    description: 'Number of days, including today.',
  }),
)

/** A DNS label (RFC 1123), because it is part of the host names of tunnels. */
export const Slug = Type.String({
  minLength: 1,
  maxLength: DNS_LABEL_CHARS_MAX,
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  description: 'Short identifier of the workspace; a DNS label.',
  examples: ['acme'],
  ...rule('must be lower-case letters, digits and hyphens between them'),
})

/** Without `format: hostname`: code generators for zod turn that into a URL. */
export const HostName = (options: TSchemaOptions = {}) =>
  Type.String({ pattern: '^[a-z0-9.-]+$', ...options })

/** An id in a path. Control characters are rejected with 400; an unknown id is 404. */
export const Id = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NO_CONTROLS,
  description: 'Identifier of the resource.',
  ...rule(NO_CONTROLS_RULE),
})

export const TokenId = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NO_CONTROLS,
  description: 'Identifier of the API key: `tok_` and a suffix that sorts by creation time.',
  examples: ['tok_01k9x2m4q7r8s9t0v1w2x3y4z5'],
  ...rule(NO_CONTROLS_RULE),
})

/** The response of most operations of the dashboard: 200, and an object with these fields. */
export const ok = <P extends TProperties>(fields: P) =>
  ({ status: 200, schema: Type.Object(fields) }) as const
