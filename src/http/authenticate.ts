// Who is asking. The key comes in the Authorization header and nowhere else.
import type { FastifyRequest } from 'fastify'
import type { Directory } from '../directory/directory.ts'
import { Fault } from '../domain/fault.ts'

export interface Caller {
  keyId: string
  workspaceId: string
  /** The raw key, for what is sealed under it. Never logged, never kept past the request. */
  apiKey: string
}

const BEARER = /^bearer +([^ ]+) *$/i

/** Whoever presents a whole key has it, so telling that it was revoked gives nothing away. */
const messages = {
  missing: 'Send an API key in the header: Authorization: Bearer adit_…',
  malformed: 'This is not a whole API key: it was mistyped, cut off or is of another kind.',
  unknown: 'This API key is not known here.',
  revoked: 'This API key was revoked. Use another one.',
}

export function createAuthenticator(directory: Directory) {
  let refused = 0

  function refuse(request: FastifyRequest, reason: keyof typeof messages): never {
    refused += 1
    request.log.warn({ reason, refused }, 'authentication refused')
    throw new Fault('unauthorized', { message: messages[reason] })
  }

  return async function authenticate(request: FastifyRequest): Promise<Caller> {
    const apiKey = BEARER.exec(request.headers.authorization ?? '')?.[1]
    if (apiKey === undefined) refuse(request, 'missing')
    const verdict = await directory.verify(apiKey)
    if (!verdict.valid) refuse(request, verdict.reason)
    return { keyId: verdict.keyId, workspaceId: verdict.workspaceId, apiKey }
  }
}
