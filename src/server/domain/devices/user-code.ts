// User codes of device authorization: eight letters that users read on one screen and may type on another.
// Only consonants, as RFC 8628 recommends (section 6.1): they do not form words, and none looks like a digit.
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8
/** Larger random bytes would make the first letters more likely. */
const BYTE_LIMIT = 256 - (256 % ALPHABET.length)

export function createUserCode(random: (bytes: number) => Uint8Array): string {
  let code = ''
  while (code.length < LENGTH)
    for (const byte of random(LENGTH))
      if (byte < BYTE_LIMIT && code.length < LENGTH) code += ALPHABET[byte % ALPHABET.length]
  return code
}

/** `BCDFGHJK` → `BCDF-GHJK`. */
export const formatUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

const CODE = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)

/** Ignores case, spaces and hyphens. Undefined if it cannot be a code. */
export function parseUserCode(text: string): string | undefined {
  const code = text.replace(/[ -]/g, '').toUpperCase()
  return CODE.test(code) ? code : undefined
}
