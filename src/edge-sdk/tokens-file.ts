// The tokens file of a self-hosted edge, which has no control plane: JSON with the hashes of keys and whose they are.
// No key can be made from it.
import { readFileSync, statSync } from 'node:fs'

export interface Token {
  /** Names the token without giving it away. */
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

/** Throws a TokensFileError that names the file, the place in it and what is wrong there. */
export function readTokensFile(path: string): Token[] {
  return parseTokens(path, readText(path))
}

function readText(path: string): string {
  try {
    const found = statSync(path)
    if (!found.isFile()) throw new Error('it is no file')
    if (found.size > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT')
      throw new TokensFileError(`There is no tokens file ${path}. "adit tokens-file add" makes one.`)
    throw new TokensFileError(`The tokens file ${path} cannot be read: ${message}.`)
  }
}

function parseTokens(path: string, text: string): Token[] {
  const refuse = (what: string): never => {
    throw new TokensFileError(`The tokens file ${path} is refused: ${what}.`)
  }
  let given: { tokens?: unknown }
  try {
    given = JSON.parse(text)
  } catch (error) {
    return refuse(`it is no valid JSON${placeOf(error as Error, text)}`)
  }
  const list = given?.tokens
  if (!Array.isArray(list)) return refuse('it must be an object with a list "tokens"')
  const seen = new Set<string>()
  return list.map((token, index) => {
    const flaw = validationError(token)
    if (flaw) refuse(`tokens[${index}].${flaw}`)
    const { id, hash, workspace, label = '', createdAt } = token as Token
    for (const [member, value] of Object.entries({ id, hash })) {
      if (seen.has(value)) refuse(`tokens[${index}].${member} is there twice`)
      seen.add(value)
    }
    return { id, hash, workspace, label, createdAt }
  })
}

/** Where the JSON breaks off, without its words: they would quote what stands there. */
function placeOf({ message }: Error, text: string): string {
  const [, position] = /position (\d+)/.exec(message) ?? []
  if (position === undefined) return text.trim() === '' ? ': it is empty' : ''
  return `, in line ${text.slice(0, Number(position)).split('\n').length}`
}

/** What is wrong with a token, if anything: its member and what that must be. */
export function validationError(token: unknown): string | undefined {
  const given = (token ?? {}) as Record<string, unknown>
  for (const [member, { form, words, optional }] of Object.entries(forms)) {
    const value = given[member]
    if (value === undefined && optional) continue
    if (typeof value !== 'string' || !form.test(value)) return `${member} must be ${words}`
  }
  return undefined
}

const forms: Record<keyof Token, { form: RegExp; words: string; optional?: true }> = {
  id: { form: /^[\x21-\x7e]{1,100}$/, words: 'text of 1 to 100 characters without spaces' },
  hash: { form: /^[0-9a-f]{64}$/, words: 'the SHA-256 of a key, 64 characters in lower-case hex' },
  workspace: {
    form: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    words: 'lower-case letters, digits and inner hyphens, at most 63',
  },
  label: {
    form: /^[^\p{Cc}\p{Cs}]{0,80}$/u,
    words: 'text of at most 80 characters without control characters',
    optional: true,
  },
  createdAt: {
    form: /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/,
    words: 'a moment such as 2026-11-15T10:02:11.000Z',
    optional: true,
  },
}
