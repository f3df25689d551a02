// The tokens file of a self-hosted edge without a control plane: JSON with the SHA-256 of each API key and
// its workspace. The keys themselves cannot be recovered from it.
import { readFileSync, statSync } from 'node:fs'
import { DNS_LABEL_RULE, isDnsLabel } from '../../lib/net/hostname.ts'

export interface Token {
  /** Public identifier of the key. */
  readonly id: string
  /** SHA-256 of the raw key, in hex. */
  readonly hash: string
  readonly workspace: string
  readonly label: string
  readonly createdAt: string | undefined
}

const FILE_BYTES_MAX = 16 * 1024 * 1024

export class TokensFileError extends Error {
  override name = 'TokensFileError'
}

/** Throws a TokensFileError that names the file, the position in it and the problem. */
export function readTokensFile(path: string): Token[] {
  return parseTokens(path, readText(path))
}

function readText(path: string): string {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw new Error('not a regular file')
    if (stats.size > FILE_BYTES_MAX) throw new Error(`larger than ${FILE_BYTES_MAX} bytes`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT')
      throw new TokensFileError(`Tokens file ${path} not found. Create it with \`adit tokens-file add\`.`)
    throw new TokensFileError(`Cannot read the tokens file ${path}: ${message}.`)
  }
}

function parseTokens(path: string, text: string): Token[] {
  const reject = (problem: string): never => {
    throw new TokensFileError(`Invalid tokens file ${path}: ${problem}.`)
  }
  let document: { tokens?: unknown }
  try {
    document = JSON.parse(text)
  } catch (error) {
    return reject(`not valid JSON${describeLocation(error as Error, text)}`)
  }
  const list = document?.tokens
  if (!Array.isArray(list)) return reject('it must be an object with a list "tokens"')
  const seen = new Set<string>()
  return list.map((token, index) => {
    const error = validationError(token)
    if (error) reject(`tokens[${index}].${error}`)
    const { id, hash, workspace, label = '', createdAt } = token as Token
    for (const [field, value] of Object.entries({ id, hash })) {
      if (seen.has(value)) reject(`tokens[${index}].${field} is a duplicate`)
      seen.add(value)
    }
    return { id, hash, workspace, label, createdAt }
  })
}

/**
 * The line of a syntax error. The parser's own message is not used: it quotes the text, which may be a
 * secret.
 */
function describeLocation({ message }: Error, text: string): string {
  const [, position] = /position (\d+)/.exec(message) ?? []
  if (position === undefined) return text.trim() === '' ? ': the file is empty' : ''
  return ` (line ${text.slice(0, Number(position)).split('\n').length})`
}

/** The first invalid field of a token and its rule; undefined if the token is valid. */
export function validationError(token: unknown): string | undefined {
  const fields = (token ?? {}) as Record<string, unknown>
  for (const [field, { isValid, rule, optional }] of Object.entries(rules)) {
    const value = fields[field]
    if (value === undefined && optional) continue
    if (typeof value !== 'string' || !isValid(value)) return `${field} must be ${rule}`
  }
  return undefined
}

interface Rule {
  isValid(value: string): boolean
  rule: string
  optional?: true
}

const matches = (pattern: RegExp) => (value: string) => pattern.test(value)

const rules: Record<keyof Token, Rule> = {
  id: { isValid: matches(/^[\x21-\x7e]{1,100}$/), rule: 'text of 1 to 100 characters without spaces' },
  hash: {
    isValid: matches(/^[0-9a-f]{64}$/),
    rule: 'the SHA-256 of a key, 64 characters in lower-case hex',
  },
  workspace: { isValid: isDnsLabel, rule: DNS_LABEL_RULE },
  label: {
    isValid: matches(/^[^\p{Cc}\p{Cs}]{0,80}$/u),
    rule: 'text of at most 80 characters without control characters',
    optional: true,
  },
  createdAt: {
    isValid: matches(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/),
    rule: 'a timestamp such as 2026-11-15T10:02:11.000Z',
    optional: true,
  },
}
