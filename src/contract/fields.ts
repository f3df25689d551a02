// The building blocks of the wire: fields that more than one resource uses.
import Type, { type TSchemaOptions } from 'typebox'
import { DISPLAY_NAME, DISPLAY_TEXT } from './text.ts'

/** What a value must be, in words; shown instead of a bare pattern when the value is refused. */
const rule = (text: string) => ({ 'x-rule': text })

const NO_CONTROLS = '^[^\\p{Cc}\\p{Cs}]*$'

const NO_CONTROLS_RULE = 'must be well-formed text without control characters'

export const Instant = Type.String({
  format: 'date-time',
  description: 'ISO 8601 in UTC with milliseconds.',
  examples: ['2026-11-15T10:02:11.000Z'],
})

/** A moment as callers send it: in UTC, to the millisecond at the most. */
export const UtcMoment = (options: TSchemaOptions) =>
  Type.String({
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?Z$',
    examples: ['2026-11-15T10:02:11.000Z'],
    ...options,
    ...rule('must be a moment in UTC such as 2026-11-15T10:02:11.000Z'),
  })

/** A type list rather than a union: it is valid OpenAPI 3.1 and is written out without trying alternatives. */
export const InstantOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description })

/** A count that stays exact past 2^53: bigint in the program, plain digits on the wire. */
export const Count = (description: string) =>
  Type.Unsafe<bigint>({ type: 'integer', minimum: 0, description })

/** Text that is displayed: nothing in it can break a line, a terminal or a database, or mislead a reader. */
const DisplayText = (options: TSchemaOptions) =>
  Type.String({
    maxLength: 80,
    pattern: DISPLAY_TEXT,
    ...options,
    ...rule('must be well-formed text without control or invisible characters'),
  })

export const Label = DisplayText({
  description:
    'Free text of at most 80 characters (Unicode code points), without control, bidirectional or invisible characters.',
  examples: ['ci'],
})

/** The same, and not blank. */
const DisplayName = (options: TSchemaOptions) =>
  Type.String({
    minLength: 1,
    maxLength: 80,
    pattern: DISPLAY_NAME,
    ...options,
    ...rule('must not be blank'),
  })

export const WorkspaceName = DisplayName({
  description: 'Display name of the workspace.',
  examples: ['Acme'],
})

export const EdgeName = DisplayName({
  description: 'What people call the edge.',
  examples: ['fra-1'],
})

export const UserName = DisplayName({
  description: 'What a person wants to be called.',
  examples: ['Ann Example'],
})

/** The rule of better-auth's own validation: no other address could sign in there. ASCII only. */
const EMAIL =
  "^(?!\\.)(?!.*\\.\\.)[A-Za-z0-9_'+.-]*[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$"
const EMAIL_CHARS_MAX = 254

export const Email = Type.String({
  maxLength: EMAIL_CHARS_MAX,
  pattern: EMAIL,
  description: 'An e-mail address; upper and lower case are the same.',
  examples: ['ann@example.com'],
  ...rule('must be an e-mail address, such as ann@example.com'),
})

const emailPattern = new RegExp(EMAIL)

export const isEmail = (text: string): boolean => text.length <= EMAIL_CHARS_MAX && emailPattern.test(text)

/** A slug is a label of a host name (RFC 1123), because tunnels live under it. */
export const Slug = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  description: 'Short identifier of the workspace, usable as one label of a host name.',
  examples: ['acme'],
  ...rule('must be lower-case letters, digits and inner hyphens'),
})

export const HostName = (options: TSchemaOptions) => Type.String({ format: 'hostname', ...options })

/** An id in a path. One that no id could be is refused; one that does not exist is not found. */
export const Id = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NO_CONTROLS,
  description: 'Identifier of the one that is meant.',
  ...rule(NO_CONTROLS_RULE),
})

export const TokenId = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NO_CONTROLS,
  description: 'Key identifier, `tok_` and a suffix that sorts by time of creation.',
  examples: ['tok_01k9x2m4q7r8s9t0v1w2x3y4z5'],
  ...rule(NO_CONTROLS_RULE),
})
