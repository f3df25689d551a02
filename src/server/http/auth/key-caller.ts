// The caller of an operation that needs an API key.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context, KeyActor, Services } from '../../domain/context.ts'
import { type CredentialVerifier, type MaybePromise, thenMaybe } from '../../verification/verify.ts'
import type { RateLimit } from '../limits/rate-limit.ts'
import { bearerToken, createAuthenticator, keyMessages } from './authenticator.ts'
import { isMcpCall } from './mcp-calls.ts'

/** The context of an authenticated request, and the raw key that it came with. */
export interface KeyContext extends Context {
  actor: KeyActor
  apiKey: string
}

export interface KeyAuthOptions {
  services: Services
  verifier: CredentialVerifier
  rateLimit: RateLimit | undefined
}

/** Verifies the key of a request and counts the request against its limit. */
export function createKeyAuth({ services, verifier, rateLimit }: KeyAuthOptions) {
  const verify = (secret: string) => (isMcpCall() ? verifier.verifyMcpKey : verifier.verifyKey)(secret)
  const authenticateKey = createAuthenticator(verify, keyMessages)
  return (request: FastifyRequest, reply: FastifyReply): MaybePromise<KeyContext> => {
    const apiKey = bearerToken(request)
    return thenMaybe(authenticateKey(request, apiKey), ({ keyId, workspaceId, userId, managesKeys }) => {
      const address = request.clientAddress
      const actor = { kind: 'key' as const, id: keyId, userId, managesKeys, address }
      const ctx: KeyContext = { ...services, workspaceId, actor, apiKey: apiKey as string }
      // Set before the rate limit is checked, so that the access log names the key if the check fails.
      request.caller = ctx
      return rateLimit ? thenMaybe(rateLimit(keyId, reply), () => ctx) : ctx
    })
  }
}
