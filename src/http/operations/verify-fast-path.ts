// Verifying a key is what edges ask for most. Where the edge, the key and its workspace are known by heart, the verdict is
// given before the framework is asked.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { EDGE_PREFIX, verifyKey } from '../../contract/edge.ts'
import type { Directory } from '../../directory/directory.ts'
import type { WorkspaceView } from '../../domain/workspaces.ts'
import { bearerToken } from '../auth/authenticator.ts'
import { type Head, headOf, type Shortcut } from './fast-path.ts'
import { serializerFor } from './serialize.ts'

const PATH = EDGE_PREFIX + verifyKey.path
/** The body as programs write it; however else it may be written, the framework reads it. */
const BODY_BYTES_MAX = 220
const BODY = /^\{"key":"([0-9A-Za-z_]{1,200})"\}$/

export interface QuickVerify {
  /** Looks at what the framework sends with a verdict. */
  learn(reply: FastifyReply): void
  /** Takes charge of a request and returns true; what cannot be answered here is passed to `next` as it came. */
  intercept(request: IncomingMessage, response: ServerResponse, next: RequestListener): boolean
}

export function createQuickVerify(
  directory: Directory,
  shortcut: Shortcut,
  /** Undefined where memory does not know the workspace. */
  describe: (workspaceId: string) => WorkspaceView | undefined,
): QuickVerify {
  const serialise = serializerFor(verifyKey.response.schema)
  let head: Head | undefined

  function verdictOf(body: string): string | undefined {
    const [, secret] = BODY.exec(body) ?? []
    const key = secret && directory.cachedKey(secret)
    const workspace = key && describe(key.workspaceId)
    return workspace && serialise({ valid: true, keyId: key.keyId, workspace })
  }

  return {
    learn(reply) {
      head ??= headOf(reply)
    },

    intercept(request, response, next) {
      const began = performance.now()
      const { url, method, headers } = request
      if (url !== PATH || method !== 'POST' || !head || headers['x-adit-edge'] !== undefined) return false
      if (headers['content-type'] !== 'application/json') return false
      const length = Number(headers['content-length'])
      if (!(length > 0 && length <= BODY_BYTES_MAX)) return false
      const from = shortcut.originOf(request)
      const secret = bearerToken(request)
      if (from === undefined || secret === undefined) return false
      const edge = directory.cachedEdge(secret)
      if (!edge) return false
      const known = head

      request.once('data', (chunk: Buffer) => {
        // A stop may have been asked for since it began.
        const isWhole = chunk.length === length && shortcut.originOf(request) !== undefined
        const body = isWhole ? verdictOf(chunk.toString('latin1')) : undefined
        if (body === undefined) {
          request.pause()
          request.unshift(chunk)
          next(request, response)
          return
        }
        const bytes = Buffer.byteLength(body)
        const ready = { head: known, body, bytes, encoding: 'utf8' as const, began, from, by: edge.edgeId }
        shortcut.answer(request, response, ready)
      })
      return true
    },
  }
}
