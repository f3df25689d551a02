// Verifies ID tokens: OpenID Connect Core 1.0, 3.1.3.7 and 3.1.3.8.
import { createHash } from 'node:crypto'
import { type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'

export type Claims = JWTPayload & Record<string, unknown>

/** The provider's response was rejected. The message is for the operator's log and contains no secrets. */
export class OidcError extends Error {
  override name = 'OidcError'
}

interface Expected {
  issuer: string
  clientId: string
  nonce: string
  accessToken: string | undefined
  now: number
}

/** Asymmetric algorithms only, and the hash function of `at_hash` for each. */
const HASH_OF_ALGORITHM: Record<string, string> = {
  RS256: 'sha256',
  PS256: 'sha256',
  ES256: 'sha256',
  RS384: 'sha384',
  PS384: 'sha384',
  ES384: 'sha384',
  RS512: 'sha512',
  PS512: 'sha512',
  ES512: 'sha512',
  EdDSA: 'sha512',
  Ed25519: 'sha512',
}

/** Tolerated clock skew between the provider and this server. */
const CLOCK_TOLERANCE_S = 60
/** Tokens are verified right after they are issued. */
const TOKEN_AGE_MAX_S = 10 * 60

export async function verifyIdToken(
  token: string,
  keys: JWTVerifyGetKey,
  { issuer, clientId, nonce, accessToken, now }: Expected,
): Promise<Claims> {
  const { payload, protectedHeader } = await jwtVerify<Claims>(token, keys, {
    algorithms: Object.keys(HASH_OF_ALGORITHM),
    issuer,
    audience: clientId,
    requiredClaims: ['sub', 'exp', 'iat'],
    clockTolerance: CLOCK_TOLERANCE_S,
    maxTokenAge: TOKEN_AGE_MAX_S,
    currentDate: new Date(now),
  }).catch((cause) => {
    throw new OidcError(`invalid ID token: ${(cause as Error).message}`, { cause })
  })
  const { aud, azp } = payload
  if (Array.isArray(aud) && aud.length > 1 && azp === undefined)
    throw new OidcError('the ID token has several audiences and no azp claim')
  if (azp !== undefined && azp !== clientId)
    throw new OidcError('the azp claim of the ID token names another client')
  if (payload.nonce !== nonce) throw new OidcError('the nonce of the ID token does not match')
  const hash = HASH_OF_ALGORITHM[protectedHeader.alg] as string
  if (payload.at_hash !== undefined && payload.at_hash !== leftHalf(hash, accessToken))
    throw new OidcError('the at_hash of the ID token does not match the access token')
  return payload
}

function leftHalf(hash: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const digest = createHash(hash).update(text).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
