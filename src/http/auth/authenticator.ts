// Who is asking. A secret comes in a header and nowhere else.
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type InvalidCredential, type MaybePromise, thenMaybe } from '../../directory/directory.ts'
import { inactiveKeyMessages } from '../../domain/actors.ts'
import { Fault } from '../../domain/fault.ts'

const BEARER = /^bearer +([^ ]+) *$/i

export const bearerToken = ({ headers }: { headers: IncomingHttpHeaders }): string | undefined =>
  BEARER.exec(headers.authorization ?? '')?.[1]

/** What to tell whom. Whoever presents a whole secret has it, so telling that it was revoked gives nothing away. */
type RefusalMessages = Record<InvalidCredential['reason'] | 'missing', string>

export const keyMessages: RefusalMessages = {
  missing: 'Send an API key in the header: Authorization: Bearer adit_…',
  malformed: 'This is not a whole API key: it was mistyped, cut off or is of another kind.',
  unknown: 'This API key is not known here.',
  ...inactiveKeyMessages,
}

export const edgeMessages: RefusalMessages = {
  missing:
    'Send an edge credential in the header: Authorization: Bearer adit_edge_… (or X-Adit-Edge, where that one is taken).',
  malformed: 'This is not a whole edge credential: it was mistyped, cut off or is of another kind.',
  unknown: 'This edge credential is not known here.',
  revoked: 'This edge credential was revoked. Ask the operator for another one.',
}

/** Lets through whom `verify` finds good, and tells the others why not; each refusal is logged and counted. */
export function createAuthenticator<G extends { valid: true }>(
  verify: (secret: string) => MaybePromise<G | InvalidCredential>,
  words: RefusalMessages,
) {
  let refused = 0

  function refuse(request: FastifyRequest, reason: keyof RefusalMessages): never {
    refused += 1
    request.log.warn({ reason, refused }, 'authentication refused')
    throw new Fault('unauthorized', { message: words[reason] })
  }

  return (request: FastifyRequest, secret: string | undefined): MaybePromise<G> => {
    if (secret === undefined) return refuse(request, 'missing')
    return thenMaybe(verify(secret), (verdict) => (verdict.valid ? verdict : refuse(request, verdict.reason)))
  }
}
