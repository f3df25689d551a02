// The table of operations that the response cache serves, one row each. A row either stores whole responses
// with a validator that decides how long they are fresh, or stores the response head and renders the body for
// each request.
import type { IncomingHttpHeaders } from 'node:http'
import { verifyKey } from '../../../contract/edge/operations.ts'
import { startOfDay, startOfSecond } from '../../../lib/time.ts'
import type { Context } from '../../domain/context.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import type { EdgeWorkspaces } from '../../verification/edge-workspaces.ts'
import type { CredentialVerifier, ValidKey } from '../../verification/verify.ts'
import { describeValidKey } from '../api/valid-key.ts'
import { serializerFor } from '../operations/serialize.ts'

/** Returns whether the operation would still return what it returned when the validator was created. */
export type Validator = () => boolean

export type CacheableOperation = StoredResponse | RenderedResponse

interface Cacheable {
  /** The operation's id in the contract. */
  readonly id: string
  /** Whether the headers are those of an ordinary request to this operation. */
  hasOrdinaryHeaders(headers: IncomingHttpHeaders): boolean
  /** Called for each response: counts the credentials that `authenticate` and `render` have found valid. */
  countVerified(): void
}

export interface StoredResponse extends Cacheable {
  /** Finds the caller in the verifier's cache, by the hash of the secret; undefined is a miss. */
  authenticate(hash: string): { id: string; workspaceId: string } | undefined
  cacheKey(workspaceId: string, url: string): string
  /** Called before the operation reads anything. Undefined if a change could go unnoticed: do not store. */
  createValidator(ctx: Context): Validator | undefined
}

export interface RenderedResponse extends Cacheable {
  authenticate(hash: string): { id: string } | undefined
  /** The response body for the caller, from caches alone; undefined is a miss. */
  render(requestBody: string, callerId: string): string | undefined
}

interface CacheableOperationsOptions {
  readonly verifier: CredentialVerifier
  readonly edgeWorkspaces: Pick<EdgeWorkspaces, 'isKnown'>
  readonly describeWorkspace: (row: WorkspaceRow) => WorkspaceView
  /** False on PostgreSQL, where responses that depend on the data version are not stored. */
  readonly hasDataVersion: boolean
  /** Requests with a key count against a rate limit, and its headers differ from response to response. */
  readonly isRateLimited: boolean
}

export function cacheableOperations(options: CacheableOperationsOptions): CacheableOperation[] {
  const { verifier, hasDataVersion, isRateLimited } = options
  const read = {
    hasOrdinaryHeaders: (headers: IncomingHttpHeaders) => headers['content-length'] === undefined,
    authenticate(hash: string) {
      const key = verifier.cachedKey(hash)
      return key && { id: key.keyId, workspaceId: key.workspaceId }
    },
    countVerified() {
      verifier.keyVerdicts.hit.valid += 1
    },
    cacheKey: (workspaceId: string, url: string) => `${workspaceId} ${url}`,
  }
  const readWorkspace: StoredResponse = {
    id: 'workspace.read',
    ...read,
    createValidator: (ctx) => sameWorkspaceRow(verifier, ctx),
  }
  const readData: StoredResponse[] = [
    { id: 'tokens.list', ...read, createValidator: (ctx) => sameDataVersionAnd(startOfSecond, ctx) },
    { id: 'usage.read', ...read, createValidator: (ctx) => sameDataVersionAnd(startOfDay, ctx) },
  ]
  const reads = [readWorkspace, ...(hasDataVersion ? readData : [])]
  return [...(isRateLimited ? [] : reads), verification(options)]
}

/** The verifier evicts the row of a workspace that changes, and caches another one. */
function sameWorkspaceRow(verifier: CredentialVerifier, { workspaceId }: Context): Validator | undefined {
  const row = verifier.cachedWorkspace(workspaceId)
  return row && (() => verifier.cachedWorkspace(workspaceId) === row)
}

/** Fresh until the next commit to the database. */
function sameDataVersion({ store }: Context): Validator | undefined {
  const version = store.dataVersion?.()
  return version === undefined ? undefined : () => store.dataVersion?.() === version
}

/** For responses that also change with time: usage ends with the current day, and keys expire. */
function sameDataVersionAnd(startOf: (ms: number) => number, ctx: Context): Validator | undefined {
  const isUnchanged = sameDataVersion(ctx)
  const period = startOf(ctx.clock())
  return isUnchanged && (() => isUnchanged() && startOf(ctx.clock()) === period)
}

/** The body as client libraries write it; any other spelling is parsed by Fastify. */
const BODY_START = '{"key":"'
const BODY_END = '"}'
/** Well above a body with a key: anything longer is none. */
const VERIFY_BODY_BYTES_MAX = 220

/** Placeholder for the id of a key. It comes first in the text, before any name that a user has chosen. */
const KEY_ID = '{keyId}'

/** Rendered for each request: a stored response for each key would take more memory than the keys. */
function verification(options: CacheableOperationsOptions): RenderedResponse {
  const { verifier, edgeWorkspaces, describeWorkspace } = options
  const serialize = serializerFor(verifyKey.response.schema)
  const describe = (key: ValidKey, row: WorkspaceRow) =>
    serialize({ ...describeValidKey(verifier, key), workspace: describeWorkspace(row) })
  /** The text of a response before and after the key id: the same for all keys of a workspace. */
  const texts = new WeakMap<WorkspaceRow, { start: string; end: string }>()
  function renderAround(key: ValidKey, row: WorkspaceRow) {
    const known = texts.get(row)
    if (known) return known
    const text = describe({ ...key, keyId: KEY_ID }, row)
    const at = text.indexOf(KEY_ID)
    const rendered = { start: text.slice(0, at), end: text.slice(at + KEY_ID.length) }
    texts.set(row, rendered)
    return rendered
  }
  return {
    id: verifyKey.id,
    hasOrdinaryHeaders: (headers) =>
      headers['x-adit-edge'] === undefined &&
      headers['content-type'] === 'application/json' &&
      Number(headers['content-length']) > 0 &&
      Number(headers['content-length']) <= VERIFY_BODY_BYTES_MAX,
    authenticate(hash) {
      const edge = verifier.cachedEdge(hash)
      return edge && { id: edge.edgeId }
    },
    countVerified() {
      verifier.edgeVerdicts.hit.valid += 1
      verifier.keyVerdicts.hit.valid += 1
    },
    render(requestBody, edgeId) {
      if (!requestBody.startsWith(BODY_START) || !requestBody.endsWith(BODY_END)) return undefined
      // The text needs no check: if its hash is in the cache, it is a key, which has no JSON escapes.
      const secret = requestBody.slice(BODY_START.length, -BODY_END.length)
      const key = verifier.cachedKey(verifier.hashCredential(secret))
      const row = key && verifier.cachedWorkspace(key.workspaceId)
      if (!row || !edgeWorkspaces.isKnown(edgeId, row)) return undefined
      if (key.expiresAt !== null) return describe(key, row)
      const { start, end } = renderAround(key, row)
      return start + key.keyId + end
    },
  }
}
