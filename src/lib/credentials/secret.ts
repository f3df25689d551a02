// The format of API keys, keys of agents, edge credentials and device codes: a prefix, 256 random bits in
// base62 and a checksum, so that a typo is detected without a database query. Only the SHA-256 is stored: 256
// random bits cannot be guessed, and a slow hash would slow down every request.
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIXES = {
  key: 'adit_',
  agent: 'adit_agent_',
  edge: 'adit_edge_',
  device: 'adit_device_',
} as const
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_BYTES = 32
const RANDOM_CHARS = 43
const CHECKSUM_CHARS = 6

type SecretKind = keyof typeof PREFIXES

const patterns: Record<SecretKind, RegExp> = {
  key: patternFor(PREFIXES.key),
  agent: patternFor(PREFIXES.agent),
  edge: patternFor(PREFIXES.edge),
  device: patternFor(PREFIXES.device),
}

export function createSecret(kind: SecretKind, random: (bytes: number) => Uint8Array): string {
  const value = BigInt(`0x${Buffer.from(random(RANDOM_BYTES)).toString('hex')}`)
  const body = PREFIXES[kind] + base62(value, RANDOM_CHARS)
  return body + checksum(body)
}

/** Whether the text has the format of that kind of secret and a correct checksum. */
export function isSecret(kind: SecretKind, text: string): boolean {
  return patterns[kind].test(text) && checksum(text.slice(0, -CHECKSUM_CHARS)) === text.slice(-CHECKSUM_CHARS)
}

/** Identifies a key in lists. It is the end of the checksum, so it reveals little of the random part. */
export const lastFour = (secret: string): string => secret.slice(-4)

export const hashSecret = (secret: string): string => hash('sha256', secret, 'hex')

function patternFor(prefix: string): RegExp {
  return new RegExp(`^${prefix}[0-9A-Za-z]{${RANDOM_CHARS + CHECKSUM_CHARS}}$`)
}

function checksum(body: string): string {
  let text = ''
  for (let rest = crc32(body); text.length < CHECKSUM_CHARS; rest = Math.floor(rest / 62))
    text = DIGITS[rest % 62] + text
  return text
}

/** The last digits of the number, padded with zeros. */
export function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text
  return text
}
