// Hashes of the passwords in access rules, which people choose and others may guess: scrypt, in the PHC string
// format, so that the cost can be raised later. Hashing takes a thread of libuv's pool for about 0.2 seconds
// and 16 MiB; callers limit how many run at the same time.
import { scrypt, timingSafeEqual } from 'node:crypto'

/** One of the settings that OWASP's Password Storage Cheat Sheet recommends. */
const COST = { ln: 14, r: 8, p: 5 }
/** N · p, as the cost of a hash that somebody else made: as much as OWASP's strongest setting. */
const COST_MAX = 2 ** 17
const SALT_BYTES = 16
const HASH_BYTES = 32
const FORMAT = /^\$scrypt\$ln=(1\d),r=(8),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

interface ParsedHash {
  readonly cost: typeof COST
  readonly salt: Buffer
  readonly hash: Buffer
}

export async function hashPassword(password: string, random: (bytes: number) => Uint8Array): Promise<string> {
  const salt = Buffer.from(random(SALT_BYTES))
  const hash = await derive(password, salt, COST)
  return `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${unpadded(salt)}$${unpadded(hash)}`
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

const unpadded = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

function derive(password: string, salt: Buffer, { ln, r, p }: typeof COST): Promise<Buffer> {
  const options = { N: 2 ** ln, r, p, maxmem: 2 * 128 * r * (2 ** ln + p) }
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // Keyboards differ in how they compose characters, and RFC 7617 asks for the composed form.
  scrypt(password.normalize('NFC'), salt, HASH_BYTES, options, (error, hash) =>
    error ? reject(error) : resolve(hash),
  )
  return promise
}
