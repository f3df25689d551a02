// Cookies, and the parts of a request that sign-in uses.

export interface Browser {
  cookie: string
  address: string
  agent: string
}

/** A result and the cookies to set. */
export interface WithCookies<T> {
  result: T
  cookies: string[]
}

const TOKEN_BYTES = 32
const TOKEN = /^[\w-]{43}$/

/** A value that cannot be guessed. Only its hash is stored. */
export const createToken = (random: (bytes: number) => Uint8Array): string =>
  Buffer.from(random(TOKEN_BYTES)).toString('base64url')

/** With https, the prefix `__Host-` keeps other hosts of the same domain from setting the cookie. */
export function createCookie(suffix: string, { https, maxAgeS }: { https: boolean; maxAgeS: number }) {
  const name = `${https ? '__Host-' : ''}adit.${suffix}`
  const assign = (value: string, ageS: number) =>
    `${name}=${value}; Max-Age=${ageS}; Path=/; HttpOnly${https ? '; Secure' : ''}; SameSite=Lax`

  const read = (cookie: string): string | undefined =>
    cookie
      .split(/; */)
      .find((pair) => pair.startsWith(`${name}=`))
      ?.slice(name.length + 1)

  return {
    set: (value: string): string => assign(value, maxAgeS),
    clear: assign('', 0),
    /** The value in a Cookie header. */
    read,
    /** Undefined also if the value cannot be a token. */
    readToken(cookie: string): string | undefined {
      const value = read(cookie)
      return value !== undefined && TOKEN.test(value) ? value : undefined
    },
  }
}
