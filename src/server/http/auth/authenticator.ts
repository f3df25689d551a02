// Authenticates requests by API key or edge credential, sent in a header.
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { inactiveKeyMessages } from '../../domain/actors.ts'
import { Fault } from '../../domain/fault.ts'
import { type InvalidCredential, type MaybePromise, thenMaybe } from '../../verification/verify.ts'

const BEARER = /^bearer +([^ ]+) *$/i

export const bearerToken = ({ headers }: { headers: IncomingHttpHeaders }): string | undefined =>
  BEARER.exec(headers.authorization ?? '')?.[1]

/** Saying that a secret was revoked reveals nothing: the caller has presented all of it. */
type RejectionMessages = Record<InvalidCredential['reason'] | 'missing', string>

export const keyMessages: RejectionMessages = {
  missing: 'Send an API key in the header: Authorization: Bearer adit_…',
  malformed: 'Malformed API key (wrong length, prefix or checksum).',
  other_kind: 'This is an edge credential, or the key of an agent for /mcp. Send an API key of a workspace.',
  unknown: 'Unknown API key.',
  ...inactiveKeyMessages,
}

export const edgeMessages: RejectionMessages = {
  missing:
    'Send an edge credential in the header: Authorization: Bearer adit_edge_… ' +
    '(or X-Adit-Edge, if a proxy uses Authorization).',
  malformed: 'Malformed edge credential (wrong length, prefix or checksum).',
  other_kind: 'This is an API key. Send an edge credential, which `adit admin edge create <name>` creates.',
  unknown: 'Unknown edge credential.',
  revoked: 'This edge credential was revoked. Ask the operator for a new one.',
  expired: 'This edge credential has expired. Ask the operator for a new one.',
  archived: 'This edge credential is archived. Ask the operator for a new one.',
}

/** Returns the result for a valid secret; rejects, logs and counts all others. */
export function createAuthenticator<G extends { valid: true }, C extends readonly unknown[]>(
  verify: (secret: string, ...context: C) => MaybePromise<G | InvalidCredential>,
  messages: RejectionMessages,
) {
  let rejections = 0

  function reject(request: FastifyRequest, reason: keyof RejectionMessages): never {
    rejections += 1
    request.log.warn({ reason, rejections }, 'authentication failed')
    throw new Fault('unauthorized', { message: messages[reason] })
  }

  return (request: FastifyRequest, secret: string | undefined, ...context: C): MaybePromise<G> => {
    if (secret === undefined) return reject(request, 'missing')
    return thenMaybe(verify(secret, ...context), (result) =>
      result.valid ? result : reject(request, result.reason),
    )
  }
}
