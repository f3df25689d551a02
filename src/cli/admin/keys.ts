import { isOverlap, overlaps } from '../../lib/credentials/rotation.ts'
import { findWorkspaceOfLastKey } from '../../server/domain/accounts/last-access.ts'
import { readExpiry } from '../../server/domain/keys/expiry.ts'
import { createKey } from '../../server/domain/keys/lifecycle.ts'
import { listForOperator, revokeAsOperator, rotateAsOperator } from '../../server/domain/keys/operator.ts'
import { getBySlug } from '../../server/domain/workspaces/manage.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { printState } from '../workspace/key-state.ts'
import { confirm, withServices } from './with-services.ts'

interface NewKey {
  workspace: string
  label: string | undefined
  expires: string | undefined
  force: boolean
}

export async function create(input: NewKey, io: Io): Promise<void> {
  const expiresAt = input.expires === undefined ? undefined : parseExpires(input.expires)
  const key = await withServices(async (services, actor) => {
    const { id: workspaceId } = await getBySlug(services, input.workspace)
    const ctx = { ...services, actor: { ...actor, force: input.force }, workspaceId }
    return createKey(ctx, { label: input.label, expiresAt })
  })
  io.info(`Created API key ${key.id} for workspace "${input.workspace}". ${adviceFor(key)}`)
  io.data(key, key.token)
}

const adviceFor = ({ expiresAt }: { expiresAt: string | null }) =>
  `${expiresAt === null ? '' : `It expires at ${expiresAt}. `}Store it in your secret manager; it is not shown again.`

function parseExpires(text: string): string {
  const at = readExpiry(text, Date.now())
  if (at !== undefined && at <= Date.now()) throw new UsageError(`--expires ${text} is in the past.`)
  if (at !== undefined) return new Date(at).toISOString()
  throw new UsageError(
    `Invalid --expires "${text}" (expected days or hours such as 90d or 12h, or a UTC day or time such as 2027-01-31 or 2027-01-31T12:00:00Z).`,
  )
}

export async function list(workspace: string | undefined, io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listForOperator(services, workspace), {
      columns: {
        ID: (key) => key.id,
        WORKSPACE: (key) => key.workspace,
        'ENDS WITH': (key) => key.lastFour,
        LABEL: (key) => key.label,
        CREATED: (key) => io.time(key.createdAt),
        'LAST USED': (key) => io.time(key.lastUsedAt),
        EXPIRES: (key) => (key.state === 'active' && key.expiresAt ? io.time(key.expiresAt) : ''),
        STATE: (key) => printState(key, io),
      },
      empty: 'No API keys.',
      shrink: ['LABEL', 'WORKSPACE', 'STATE', 'EXPIRES', 'CREATED', 'LAST USED'],
    }),
  )
}

export async function revoke({ id, yes }: { id: string; yes: boolean }, io: Io): Promise<void> {
  const revoked = await withServices(async (services, actor) => {
    const workspace = await findWorkspaceOfLastKey(services, id)
    if (workspace !== undefined)
      await confirm(io, `${id} is the last active API key of workspace "${workspace}".`, yes)
    return revokeAsOperator(services, actor, id)
  })
  io.data(revoked, `Revoked ${id}.`)
}

export async function rotate(
  { id, overlap = '24h', force }: { id: string; overlap: string | undefined; force: boolean },
  io: Io,
): Promise<void> {
  if (!isOverlap(overlap))
    throw new UsageError(`Invalid --overlap "${overlap}" (expected ${overlaps.join(', ')}).`)
  const key = await withServices((services, actor) =>
    rotateAsOperator(services, { ...actor, force }, id, overlap),
  )
  const { state, expiresAt } = key.predecessor
  const old = state === 'revoked' ? 'was revoked' : `stays valid until ${expiresAt}`
  io.info(`The old key ${id} ${old}. Created API key ${key.id}. ${adviceFor(key)}`)
  io.data(key, key.token)
}
