// Authorization codes of agents, and the keys that they are exchanged for. A code contains what was approved,
// encrypted with a key that is derived from ADIT_SECRET, so nothing of it is stored. It works once, because
// it also contains the id of the key that it is exchanged for: if that key exists, the code was used.
import { hash } from 'node:crypto'
import { createSecret } from '../../../lib/credentials/secret.ts'
import { DAY_MS, SECOND_MS } from '../../../lib/time.ts'
import { findUser, type UserRow } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { findKeyById } from '../../store/keys/rows.ts'
import { lockWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { userActor } from '../accounts/sign-ins.ts'
import { reauthorize } from '../actors.ts'
import type { Context, Services, UserActor } from '../context.ts'
import { failureReason } from '../devices/device-keys.ts'
import { decrypt, encrypt } from '../encryption.ts'
import { Fault } from '../fault.ts'
import { addKey, newKey, revokeActive } from '../keys/lifecycle.ts'
import { toIso } from '../timestamps.ts'
import { keyDaysMaxFor } from '../workspaces/policy.ts'
import { describeTarget } from './redirect-uris.ts'
import { type AgentSignIn, type AuthorizationRequest, invalidTarget, isResource } from './requests.ts'

/** The agent exchanges the code as soon as the browser has passed it on. */
const CODE_MS = 60 * SECOND_MS
/** There are no refresh tokens: the agent signs in again. */
const AGENT_KEY_DAYS = 30

/** What a code contains. */
interface Approved {
  keyId: string
  workspaceId: string
  userId: string
  sessionId: string
  expiresAt: number
  /** Hash of the client and the redirect URI: the exchange must send the same. */
  binding: string
  codeChallenge: string
  name: string
  host: string
  managesKeys: boolean
}

interface ApprovedAgent {
  request: AuthorizationRequest
  keyId: string
  managesKeys: boolean
}

export function createCode(
  { workspaceId, actor, clock, random }: Context & { actor: UserActor },
  { codeKey }: AgentSignIn,
  { request, keyId, managesKeys }: ApprovedAgent,
): string {
  const { client, clientId, redirectUri, codeChallenge } = request
  const approved: Approved = {
    keyId,
    workspaceId,
    userId: actor.id,
    sessionId: actor.session?.id ?? '',
    expiresAt: clock() + CODE_MS,
    binding: bind(clientId, redirectUri),
    codeChallenge,
    name: client.name,
    host: client.host ?? describeTarget(redirectUri),
    managesKeys,
  }
  return Buffer.from(encrypt(codeKey, approved, random), 'base64').toString('base64url')
}

const bind = (clientId: string, redirectUri: string) => sha256(JSON.stringify([clientId, redirectUri]))

const sha256 = (text: string) => hash('sha256', text, 'base64url')

interface CodeExchange {
  code: string
  clientId: string
  redirectUri: string
  codeVerifier: string
  resource?: string | undefined
  /** IP address of the agent. */
  address: string
}

type ExchangeResult =
  | { key: { token: string; expiresAt: string; managesKeys: boolean } }
  | { error: 'invalid_grant' | 'invalid_target'; description: string }

const invalidGrant = (description: string) => ({ error: 'invalid_grant', description }) as const

const UNKNOWN = invalidGrant(
  'The code is unknown, or belongs to another client_id, redirect_uri or code_verifier. Sign in again.',
)
const EXPIRED = invalidGrant('The code has expired. Sign in again.')
const REUSED = invalidGrant('The code was used before, so the key that it was exchanged for is revoked.')

/** If several requests have the same code, the first gets a key and the next one revokes it. */
export async function exchangeCode(
  services: Services,
  signIn: AgentSignIn,
  exchange: CodeExchange,
): Promise<ExchangeResult> {
  const approved = readCode(signIn, exchange.code)
  if (!approved || !isBound(approved, exchange)) return UNKNOWN
  const { resource } = exchange
  if (resource !== undefined && !isResource(resource, signIn.publicUrl()))
    return invalidTarget(signIn.publicUrl())
  const user = await findUser(services.store.db, approved.userId)
  if (!user) return UNKNOWN
  const ctx = createContext(services, approved, user, exchange.address)
  try {
    const { result, change } = await services.store.transaction(async (db) => {
      // Exchanges of the same code wait for each other here.
      await lockWorkspace(db, approved.workspaceId)
      if (await findKeyById(db, approved.keyId))
        return { result: REUSED, change: await revokeReused(db, ctx, approved) }
      return {
        result: services.clock() < approved.expiresAt ? await createKey(db, ctx, user, approved) : EXPIRED,
      }
    })
    if (change) await awaitPropagation(services, change)
    return result
  } catch (error) {
    if (error instanceof Fault && !RETRIED.has(error.code))
      return invalidGrant(`The approval is no longer valid. ${failureReason(error)}`)
    throw error
  }
}

/** After these, the same code may still be exchanged. */
const RETRIED: ReadonlySet<Fault['code']> = new Set(['unavailable', 'internal', 'rate_limited'])

function readCode({ codeKey }: AgentSignIn, code: string): Approved | undefined {
  try {
    return decrypt<Approved>(codeKey, code)
  } catch {
    return undefined
  }
}

const isBound = (
  { binding, codeChallenge }: Approved,
  { clientId, redirectUri, codeVerifier }: CodeExchange,
): boolean => binding === bind(clientId, redirectUri) && codeChallenge === sha256(codeVerifier)

/** Acts as the user who approved. They must still be signed in and have the required role. */
const createContext = (
  services: Services,
  { workspaceId, sessionId }: Approved,
  user: UserRow,
  address: string,
): Context & { actor: UserActor } => ({
  ...services,
  workspaceId,
  actor: { ...userActor(user, address), session: { id: sessionId, needs: 'member' } },
})

async function createKey(
  db: Tx,
  ctx: Context & { actor: UserActor },
  user: UserRow,
  { keyId, name, host, managesKeys }: Approved,
): Promise<ExchangeResult> {
  if (user.disabled_at !== null) throw new Fault('unauthorized')
  const workspace = await reauthorize(db, ctx)
  const days = Math.min(AGENT_KEY_DAYS, keyDaysMaxFor(workspace, ctx.actor) ?? AGENT_KEY_DAYS)
  const expiresAt = toIso(ctx.clock() + days * DAY_MS)
  const draft = newKey(ctx, workspace, { label: name, expiresAt, userId: ctx.actor.id })
  const created = { ...draft, id: keyId, token: createSecret('agent', ctx.random) }
  await addKey(db, ctx, workspace, created, { agent: { host, managesKeys } })
  return { key: { token: created.token, expiresAt: created.expiresAt ?? expiresAt, managesKeys } }
}

/** One of the two exchanges may be an attacker's, and the key went to the first. */
async function revokeReused(db: Tx, ctx: Context, { keyId }: Approved) {
  const change = await revokeActive(db, ctx, keyId, { detail: 'code-reused' })
  return change && publishChange(db, ctx, change)
}
