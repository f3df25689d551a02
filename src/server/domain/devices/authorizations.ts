// Sign-in from a terminal, the device authorization grant of RFC 8628. A device gets a secret device code and
// a short user code. A signed-in user enters the user code and approves, and the device, which polls with the
// device code, gets an API key (device-keys.ts).
import { createSecret, hashSecret } from '../../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import { listMemberships } from '../../store/accounts/members.ts'
import { lacksTwoFactor } from '../../store/accounts/two-factors.ts'
import {
  type DeviceRow,
  findDeviceByUserCode,
  hasUnexpiredDevices,
  insertDevice,
  lockDevice,
  updateDevice,
} from '../../store/device-authorizations.ts'
import type { Tx } from '../../store/engine/store.ts'
import { findOpenRequest, type RequestRow } from '../../store/keys/requests.ts'
import { type AuthorizedWorkspace, reauthorize, requireSession } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, Services, UserActor } from '../context.ts'
import { Fault } from '../fault.ts'
import { parseExpiry } from '../keys/expiry.ts'
import { addRequest } from '../keys/requests.ts'
import { keyObstacle, keyRights, requireMayCreateKey } from '../keys/rights.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { TWO_FACTOR_REQUIRED } from '../two-factor.ts'
import { expiryByPolicy, readPolicy } from '../workspaces/policy.ts'
import { createUserCode, formatUserCode, parseUserCode } from './user-code.ts'

const LIFETIME_MS = 10 * MINUTE_MS
/** Per deployment: keeps the table small and user codes hard to guess. */
const UNEXPIRED_MAX = 10_000
const CODE_ATTEMPTS = 5

interface DeviceCodes {
  deviceCode: string
  userCode: string
  expiresInS: number
}

export async function startDevice(
  services: Services,
  { deviceName, address }: { deviceName: string; address: string },
): Promise<DeviceCodes> {
  const now = services.clock()
  const deviceCode = createSecret('device', services.random)
  // Not under a lock: concurrent requests may exceed the limit by their number.
  if (await hasUnexpiredDevices(services.store.db, now, UNEXPIRED_MAX)) throw tooManyOpen()
  const userCode = await services.store.transaction(async (db) => {
    for (let attempt = 0; attempt < CODE_ATTEMPTS; attempt++) {
      const row = newRow({ deviceCode, userCode: createUserCode(services.random), deviceName, address, now })
      if (await insertDevice(db, row)) return row.user_code
    }
    throw tooManyOpen()
  })
  return { deviceCode, userCode: formatUserCode(userCode), expiresInS: LIFETIME_MS / 1000 }
}

const tooManyOpen = () =>
  new Fault('rate_limited', {
    message: 'Too many devices are waiting for an approval. Try again later, or sign in with an API key.',
    retryAfterS: 60,
  })

interface NewDevice {
  deviceCode: string
  userCode: string
  deviceName: string
  address: string
  now: number
}

const newRow = ({ deviceCode, userCode, deviceName, address, now }: NewDevice): DeviceRow => ({
  hash: hashSecret(deviceCode),
  user_code: userCode,
  device_name: deviceName,
  address,
  created_at: now,
  expires_at: now + LIFETIME_MS,
  state: 'pending',
  workspace_id: null,
  user_id: null,
  session_id: null,
  request_id: null,
  key_expires_at: null,
  consumed_at: null,
  encrypted_response: null,
  failure: null,
})

/** For the user who is asked to approve: what asks, from where and since when. */
export async function readDevice(services: Services, userId: string, code: string) {
  const userCode = parseUserCode(code)
  const row = userCode && (await findDeviceByUserCode(services.store.db, userCode))
  // What became of a request is shown only to the user who has decided on it.
  const isVisible = row && (row.user_id === userId || (row.state === 'pending' && isUnexpired(row, services)))
  if (!isVisible) throw unknownCode()
  return { ...describeDevice(row), workspaces: await workspacesToChoose(services, userId) }
}

/** `obstacle` says why the user cannot get a key in a workspace. The approval checks it again. */
async function workspacesToChoose(services: Services, userId: string) {
  const { db } = services.store
  const memberships = await listMemberships(db, userId)
  const withoutTwoFactor = await lacksTwoFactor(db, userId)
  return memberships
    .filter(({ archived_at }) => archived_at === null)
    .map((row) => {
      const { slug, name } = row
      const { keyDaysMax } = readPolicy(row, services.variant)
      const obstacle = keyObstacle(services, row, { userId, withoutTwoFactor })
      // In variant B, members request keys.
      const needsRequest = services.variant === 'B' && obstacle !== null && obstacle !== TWO_FACTOR_REQUIRED
      return { slug, name, keyDaysMax, obstacle: needsRequest ? null : obstacle, needsRequest }
    })
}

const describeDevice = (row: DeviceRow) => ({
  code: formatUserCode(row.user_code),
  deviceName: row.device_name,
  address: row.address,
  requestedAt: toIso(row.created_at),
  expiresAt: toIso(row.expires_at),
  state: row.state,
  failureReason: row.failure,
  awaitsKeyApproval: row.state === 'approved' && row.request_id !== null,
})

interface Approval {
  code: string
  /** A UTC timestamp; the key does not expire if it is undefined. */
  expiresAt?: string | undefined
}

export const approveDevice = (ctx: Context & { actor: UserActor }, { code, expiresAt }: Approval) =>
  ctx.store.transaction(async (db) => {
    const row = await lockPending(db, ctx, ctx.actor, code)
    const workspace = await reauthorize(db, ctx)
    const { workspaceId, actor } = ctx
    const request = await findOrAddRequest(db, ctx, workspace, row)
    if (!request) requireMayCreateKey(ctx, workspace, actor.id)
    const now = ctx.clock()
    const requested = expiresAt === undefined ? null : parseExpiry(expiresAt, now)
    const keyExpiresAt = expiryByPolicy(workspace, actor, { createdAt: now, expiresAt: requested })
    const approved = {
      state: 'approved',
      workspace_id: workspaceId,
      user_id: actor.id,
      session_id: actor.session?.id ?? null,
      request_id: request?.id ?? null,
      key_expires_at: keyExpiresAt,
    } as const
    await updateDevice(db, row.hash, approved)
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'device.approved',
      ...deviceEntry(row, { keyExpiresAt: isoOrNull(keyExpiresAt) }),
    })
    return describeDevice({ ...row, ...approved })
  })

/** In variant B, a user who may not create keys gets one by a request: the open one, or a new one. */
async function findOrAddRequest(
  db: Tx,
  ctx: Context & { actor: UserActor },
  workspace: AuthorizedWorkspace,
  { device_name: label }: DeviceRow,
): Promise<RequestRow | undefined> {
  if (ctx.variant === 'A' || keyRights(ctx, workspace, ctx.actor).creates !== 'none') return undefined
  const open = await findOpenRequest(db, ctx.workspaceId, ctx.actor.id, ctx.clock())
  return open ?? addRequest(db, ctx, workspace, label)
}

const deviceEntry = (row: DeviceRow, more: { keyExpiresAt?: string | null } = {}) => ({
  target: { id: formatUserCode(row.user_code), name: row.device_name },
  changes: changesBetween(null, { deviceAddress: row.address, ...more }),
})

export const denyDevice = (services: Services, actor: UserActor, code: string) =>
  services.store.transaction(async (db) => {
    const row = await lockPending(db, services, actor, code)
    await requireSession(db, services, actor)
    const denied = { state: 'denied', user_id: actor.id } as const
    await updateDevice(db, row.hash, denied)
    // The entry belongs to no workspace: the user has chosen none yet.
    await writeAudit(db, services, {
      workspaceId: null,
      actor,
      action: 'device.denied',
      ...deviceEntry(row),
    })
    return describeDevice({ ...row, ...denied })
  })

/** Locked before workspace, session and member in every transaction, to prevent deadlocks. */
async function lockPending(db: Tx, services: Services, { id }: UserActor, code: string): Promise<DeviceRow> {
  const userCode = parseUserCode(code)
  const row = userCode && (await lockDevice(db, { user_code: userCode }))
  if (!row || !isUnexpired(row, services)) throw unknownCode()
  if (row.state === 'pending') return row
  if (row.user_id !== id) throw unknownCode()
  throw new Fault('conflict', { message: 'This code was already approved or denied.' })
}

export const isUnexpired = ({ expires_at }: DeviceRow, { clock }: Services) => clock() < expires_at

const unknownCode = () =>
  new Fault('not_found', { message: 'This code is invalid or has expired. Check it on the terminal.' })
