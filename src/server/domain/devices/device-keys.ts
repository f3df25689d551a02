// The API key of an approved device (see authorizations.ts). The poll that returns it creates it: its
// secret is never stored, and whether the user may create it is checked at that moment.
import { hashSecret, isSecret } from '../../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import { findUser } from '../../store/accounts/users.ts'
import { type DeviceRow, findDevice, lockDevice, updateDevice } from '../../store/device-authorizations.ts'
import type { Tx } from '../../store/engine/store.ts'
import { findRequest } from '../../store/keys/requests.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import { userActor } from '../accounts/sign-ins.ts'
import { reauthorize } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Services } from '../context.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../encryption.ts'
import { Fault } from '../fault.ts'
import { addKey, newKey } from '../keys/lifecycle.ts'
import { createRequestedKey, stateAt } from '../keys/requests.ts'
import { toIso } from '../timestamps.ts'
import { isUnexpired } from './authorizations.ts'
import { formatUserCode } from './user-code.ts'

/** How long the response with the key is repeated, in case it was lost. */
const REPEAT_MS = MINUTE_MS

interface Poll {
  deviceCode: string
  /** Client IP address of the device, for the audit log. */
  address: string
}

export interface GrantedKey {
  id: string
  token: string
  label: string
  expiresAt: string | null
  workspace: string
  approvedBy: string
}

export type PollResult =
  | { state: 'pending' | 'expired' | 'unknown' }
  /** An admin or owner has not approved the request for the key yet. */
  | { state: 'requested'; isExpired: boolean; reason: string }
  | { state: 'denied' | 'failed'; reason: string }
  | { state: 'granted'; key: GrantedKey }

const UNKNOWN = { state: 'unknown' } as const
const NO_LONGER_VALID = 'The approval is no longer valid.'

/** Reads only, except for the one poll that creates the key. */
export async function pollDevice(services: Services, poll: Poll): Promise<PollResult> {
  if (!isSecret('device', poll.deviceCode)) return UNKNOWN
  const row = await findDevice(services.store.db, hashSecret(poll.deviceCode))
  const result = row ? pollResult(row, services, poll) : UNKNOWN
  const waiting = row?.request_id && (await findWaiting(services, row.request_id, result))
  if (waiting) return waiting
  if (result !== 'approved') return result
  return services.store.transaction((db) => consumeApproval(db, services, poll))
}

/** What a device is told while the request of its user is not decided. */
async function findWaiting(
  { store, clock }: Services,
  requestId: string,
  result: PollResult | 'approved',
): Promise<PollResult | undefined> {
  const isExpired = result !== 'approved'
  if (isExpired && result.state !== 'expired') return undefined
  const request = await findRequest(store.db, requestId)
  if (!request || stateAt(request, clock()) !== 'pending') return undefined
  return { state: 'requested', isExpired, reason: isExpired ? REQUEST_OPEN : WAITING }
}

const WAITING = 'Requested an API key. Waiting for an admin or owner of the workspace to approve it.'
const REQUEST_OPEN =
  'Your request for an API key is not approved yet. Run `adit login` again when it is; the dashboard shows it ' +
  'under API keys.'

/** `approved` if the key has to be created. */
function pollResult(row: DeviceRow, services: Services, poll: Poll): PollResult | 'approved' {
  switch (row.state) {
    case 'consumed':
      return repeatResponse(row, services, poll)
    case 'denied':
      return { state: 'denied', reason: 'The request was denied.' }
    case 'failed':
      return { state: 'failed', reason: row.failure ?? NO_LONGER_VALID }
    default:
      if (!isUnexpired(row, services)) return { state: 'expired' }
      return row.state === 'approved' ? row.state : { state: 'pending' }
  }
}

/** The device code is the encryption key, so only the device can read the stored response. */
const responseKey = ({ deviceCode }: Poll) => deriveEncryptionKey('device authorization', deviceCode)

function repeatResponse(
  { consumed_at: consumedAt, encrypted_response: encrypted }: DeviceRow,
  { clock }: Services,
  poll: Poll,
): PollResult {
  if (consumedAt === null || encrypted === null || clock() >= consumedAt + REPEAT_MS) return UNKNOWN
  return { state: 'granted', key: decrypt<GrantedKey>(responseKey(poll), encrypted) }
}

/** If several polls arrive at once, one creates the key; the others return the same response. */
async function consumeApproval(db: Tx, services: Services, poll: Poll): Promise<PollResult> {
  const row = await lockDevice(db, { hash: hashSecret(poll.deviceCode) })
  if (!row) return UNKNOWN
  const result = pollResult(row, services, poll)
  if (result !== 'approved') return result
  try {
    const key = await createApprovedKey(db, services, row, poll.address)
    await updateDevice(db, row.hash, {
      state: 'consumed',
      consumed_at: services.clock(),
      encrypted_response: encrypt(responseKey(poll), key, services.random),
    })
    return { state: 'granted', key }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const reason = `${NO_LONGER_VALID} ${failureReason(error)}`
    await recordFailure(db, services, row, { reason, address: poll.address })
    return { state: 'failed', reason }
  }
}

/** For the device, the page of the user who has approved, and the audit log. */
async function recordFailure(
  db: Tx,
  services: Services,
  row: DeviceRow,
  { reason, address }: { reason: string; address: string },
): Promise<void> {
  await updateDevice(db, row.hash, { state: 'failed', failure: reason })
  const user = row.user_id === null ? undefined : await findUser(db, row.user_id)
  await writeAudit(db, services, {
    workspaceId: row.workspace_id,
    actor: user ? userActor(user, address) : { kind: 'anonymous', id: address },
    action: 'device.failed',
    target: { id: formatUserCode(row.user_code), name: row.device_name },
    changes: changesBetween(null, { reason }),
  })
}

/** Acts as the user who has approved, who must still be signed in and have the required role. */
async function createApprovedKey(
  db: Tx,
  services: Services,
  row: DeviceRow,
  address: string,
): Promise<GrantedKey> {
  const { workspace_id: workspaceId, user_id: userId, session_id: sessionId } = row
  const user = userId === null ? undefined : await findUser(db, userId)
  if (!user || user.disabled_at !== null || workspaceId === null || sessionId === null)
    throw new Fault('unauthorized')
  const session = { id: sessionId, needs: 'member' as const }
  const ctx = { ...services, workspaceId, actor: { ...userActor(user, address), session } }
  const workspace = await reauthorize(db, ctx)
  const expiry = row.key_expires_at === null ? undefined : toIso(row.key_expires_at)
  const input = { label: row.device_name, expiresAt: expiry, userId: user.id }
  const { id, token, label, expiresAt, approvedBy } =
    row.request_id === null
      ? { ...(await addKey(db, ctx, workspace, newKey(ctx, workspace, input))), approvedBy: user.name }
      : await createRequestedKey(db, ctx, workspace, { id: row.request_id, expiresAt: expiry })
  const { slug } = await getWorkspace(db, workspaceId)
  return { id, token, label, expiresAt, workspace: slug, approvedBy }
}

/** Why the user who has approved can no longer create the key. */
export function failureReason({ code, message }: Fault): string {
  switch (code) {
    case 'unauthorized':
      return 'The session of the user who approved it has ended.'
    case 'not_found':
      return 'The user who approved it is no longer a member of the workspace.'
    default:
      return message
  }
}
