// Password hashes of users: scrypt, on a thread of libuv's pool. Callers limit how many run at the same time.
import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { PasswordHasher } from '../domain/context.ts'

const COST = { N: 2 ** 14, r: 16, p: 1, maxmem: 2 ** 26 }
const SALT_BYTES = 16
const HASH_BYTES = 64

const derive = promisify<string, string, number, typeof COST, Buffer>(scrypt)

/** Keyboards differ in how they compose characters. */
const hashWith = (password: string, salt: string) =>
  derive(password.normalize('NFKC'), salt, HASH_BYTES, COST)

export const createPasswordHasher = (random: (bytes: number) => Uint8Array): PasswordHasher => ({
  async hash(password) {
    const salt = Buffer.from(random(SALT_BYTES)).toString('hex')
    return `${salt}:${(await hashWith(password, salt)).toString('hex')}`
  },
  async verify({ hash, password }) {
    const [salt = '', stored = ''] = hash.split(':')
    return timingSafeEqual(await hashWith(password, salt), Buffer.from(stored, 'hex'))
  },
})
