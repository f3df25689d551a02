// The format of secrets: a prefix, 256 random bits in base62 and a checksum, so that a typo or a scanner's false
// hit is told apart from a secret without a look-up. At rest only the SHA-256 is kept: with 256 random bits there
// is nothing to guess, so a slow hash would only slow down every request.
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIXES = { key: 'adit_', edge: 'adit_edge_' } as const
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_BYTES = 32
const RANDOM_CHARS = 43
const CHECK_CHARS = 6

export type SecretKind = keyof typeof PREFIXES

const shapes: Record<SecretKind, RegExp> = {
  key: shape(PREFIXES.key),
  edge: shape(PREFIXES.edge),
}

export function mintSecret(kind: SecretKind, random: (bytes: number) => Uint8Array): string {
  const chance = BigInt(`0x${Buffer.from(random(RANDOM_BYTES)).toString('hex')}`)
  const stem = PREFIXES[kind] + base62(chance, RANDOM_CHARS)
  return stem + checksum(stem)
}

/** Whether the text can be a secret of that kind at all: its form and its checksum are right. */
export function isSecret(kind: SecretKind, text: string): boolean {
  return shapes[kind].test(text) && checksum(text.slice(0, -CHECK_CHARS)) === text.slice(-CHECK_CHARS)
}

export const hashSecret = (secret: string): string => hash('sha256', secret, 'hex')

function shape(prefix: string): RegExp {
  return new RegExp(`^${prefix}[0-9A-Za-z]{${RANDOM_CHARS + CHECK_CHARS}}$`)
}

function checksum(stem: string): string {
  let text = ''
  for (let rest = crc32(stem); text.length < CHECK_CHARS; rest = Math.floor(rest / 62))
    text = DIGITS[rest % 62] + text
  return text
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text
  return text
}
