// Tokens of HTTP, such as methods and names of headers (RFC 9110).

/** One character, for other patterns. */
export const TOKEN_CHARACTER = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]"
const TOKEN = new RegExp(`^${TOKEN_CHARACTER}+$`)

export const isToken = (text: string, charsMax = Number.POSITIVE_INFINITY): boolean =>
  text.length <= charsMax && TOKEN.test(text)
