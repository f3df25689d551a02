// Which host names tunnels have: one label under the base of their workspace, so that no name reaches into another's.
import { randomInt } from 'node:crypto'

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789'
const RANDOM_LETTERS = 8

export const isName = (name: unknown): name is string => typeof name === 'string' && LABEL.test(name)

export const NAME_WORDS = 'lower-case letters, digits and inner hyphens, at most 63 of them'

export const randomName = () =>
  Array.from({ length: RANDOM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join('')

/** The host that a `Host` header names, as tunnels are kept by it: without a port, the final dot or capitals. */
export const hostOf = (header: string) =>
  header
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
    .toLowerCase()
