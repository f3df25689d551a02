// User names and passwords of access rules, as Basic authentication (RFC 7617) can carry them.

export const BASIC_AUTH_LIMITS = { userCharsMax: 64, passwordCharsMin: 8, passwordCharsMax: 128 }

/** The rules in words, for messages. */
export const BASIC_AUTH_USER_RULE = `1 to ${BASIC_AUTH_LIMITS.userCharsMax} characters without a colon`
export const BASIC_AUTH_PASSWORD_RULE = `${BASIC_AUTH_LIMITS.passwordCharsMin} to ${BASIC_AUTH_LIMITS.passwordCharsMax} characters`

/** Keyboards differ in how they compose characters, and RFC 7617 asks for the composed form. */
export const normalizeText = (text: string): string => text.normalize('NFC')

/** The length as the limits count it: in code points of the composed form. */
export const basicAuthLength = (text: string): number => [...normalizeText(text)].length

/** Control characters cannot be sent; a lone surrogate has no UTF-8 form. */
const isText = (text: string) => !/\p{Cc}/u.test(text) && text.isWellFormed()

export const isBasicAuthUser = (text: string): boolean =>
  isLength(text, 1, BASIC_AUTH_LIMITS.userCharsMax) && !text.includes(':') && isText(text)

export const isBasicAuthPassword = (text: string): boolean =>
  isLength(text, BASIC_AUTH_LIMITS.passwordCharsMin, BASIC_AUTH_LIMITS.passwordCharsMax) && isText(text)

function isLength(text: string, min: number, max: number): boolean {
  const length = basicAuthLength(text)
  return length >= min && length <= max
}
