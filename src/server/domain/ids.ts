// Ids that sort by time of creation: 48 bits of milliseconds and 80 random bits, in 26 characters. Within one
// process they strictly increase, so "newest first" holds even for keys created in the same millisecond.
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARS = 10
const RANDOM_BITS = 80n
const RANDOM_CHARS = 16

type Prefix =
  | 'tok'
  | 'ws'
  | 'edge'
  | 'node'
  | 'aud'
  | 'usr'
  | 'idn'
  | 'ses'
  | 'lnk'
  | 'dig'
  | 'evt'
  | 'dlv'
  | 'whk'
  | 'clm'
  | 'req'

export type Ids = (prefix: Prefix) => string

export function createIds(clock: () => number, random: (bytes: number) => Uint8Array): Ids {
  let lastMs = -1
  let randomBits = 0n
  return (prefix) => {
    const ms = Math.max(clock(), lastMs)
    if (ms === lastMs) {
      randomBits += 1n
    } else {
      // The top bit stays clear, so that increments within a millisecond cannot overflow.
      randomBits = BigInt(`0x${Buffer.from(random(10)).toString('hex')}`) & ((1n << (RANDOM_BITS - 1n)) - 1n)
    }
    lastMs = ms
    return `${prefix}_${base32(BigInt(ms), TIME_CHARS)}${base32(randomBits, RANDOM_CHARS)}`
  }
}

/** An id that sorts before every id created since a time, and after all earlier ones. */
export const firstIdSince = (prefix: Prefix, ms: number): string =>
  `${prefix}_${base32(BigInt(Math.max(0, ms)), TIME_CHARS)}`

function base32(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest >>= 5n) text = DIGITS[Number(rest & 31n)] + text
  return text
}
