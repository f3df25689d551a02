// Tunnel names and the host names derived from them. A name is one label under the tunnel domain of its
// workspace, so no workspace can take a host of another.
import { randomInt } from 'node:crypto'

/** Without characters that look alike: 0 and o, 1 and l. */
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789'
const RANDOM_LENGTH = 8

export const randomName = () =>
  Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')

/** Normalizes a `Host` header to the key of the registry: no port, no trailing dot, lower case. */
export const normalizeHost = (header: string) =>
  header
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
    .toLowerCase()
