// Hashes of the passwords in access rules, which people choose and others may guess: scrypt, in the PHC
// string format, so that the cost can be raised later. Hashing takes a thread of libuv's pool and 16 MiB;
// callers limit how many run at the same time.
import { scrypt, timingSafeEqual } from 'node:crypto'
import { normalizeText } from './basic-auth.ts'

interface Cost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

/** A stored hash has the cost that OWASP's Password Storage Cheat Sheet recommends; one in memory a fifth. */
const COSTS = { stored: { ln: 14, r: 8, p: 5 }, memory: { ln: 14, r: 8, p: 1 } }
/** Limit of N · p for hashes from elsewhere: as much as OWASP's strongest setting. */
const COST_MAX = 2 ** 17
const SALT_BYTES = 16
const HASH_BYTES = 32
const FORMAT = /^\$scrypt\$ln=(1\d),r=(8),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

interface ParsedHash {
  readonly cost: Cost
  readonly salt: Buffer
  readonly hash: Buffer
}

/** `memory` is for a hash that is never stored. Edges that forward to each other exchange it. */
export async function hashPassword(
  password: string,
  random: (bytes: number) => Uint8Array,
  storage: keyof typeof COSTS = 'stored',
): Promise<string> {
  const salt = Buffer.from(random(SALT_BYTES))
  const { ln, r, p } = COSTS[storage]
  const hash = await derive(password, salt, COSTS[storage])
  return `$scrypt$ln=${ln},r=${r},p=${p}$${toUnpaddedBase64(salt)}$${toUnpaddedBase64(hash)}`
}

/** Takes the same time for a wrong password as for the right one. Throws if `hash` is not a password hash. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const parsed = parse(hash)
  if (!parsed) throw new Error('Not a password hash')
  return timingSafeEqual(await derive(password, parsed.salt, parsed.cost), parsed.hash)
}

/** Whether `verifyPassword` accepts it: the format is right, and the cost within the limit. */
export const isPasswordHash = (text: string): boolean => parse(text) !== undefined

function parse(text: string): ParsedHash | undefined {
  const [, ln, r, p, salt = '', hash = ''] = FORMAT.exec(text) ?? []
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
  if (!(cost.p >= 1 && 2 ** cost.ln * cost.p <= COST_MAX)) return undefined
  return { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}

const toUnpaddedBase64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

function derive(password: string, salt: Buffer, { ln, r, p }: Cost): Promise<Buffer> {
  const options = { N: 2 ** ln, r, p, maxmem: 2 * 128 * r * (2 ** ln + p) }
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  scrypt(normalizeText(password), salt, HASH_BYTES, options, (error, hash) =>
    error ? reject(error) : resolve(hash),
  )
  return promise
}
