import { readConfig } from '../../config.ts'
import { type Role, roles } from '../../contract/operation.ts'
import {
  createResetLink,
  getUserByEmail,
  inviteByOperator,
  listAllUsers,
  setDisabled,
} from '../../domain/accounts.ts'
import { type CreatedLink, linkAddress } from '../../domain/links.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

export async function create(
  { email, workspace, role }: { email: string; workspace: string; role: string },
  io: Io,
): Promise<void> {
  if (!(roles as readonly string[]).includes(role))
    throw new UsageError(`--role must be one of ${roles.join(', ')}, not "${role}".`)
  const given = { email, workspace, role: role as Role }
  const made = await withServices(io, (services, actor) => inviteByOperator(services, actor, given))
  io.info(
    `With this link ${made.email} joins the workspace "${workspace}" as ${role}, once and within 24 hours:`,
  )
  printLink(made, { workspace, role }, io)
}

export async function reset(given: { email: string; 'second-factor': boolean }, io: Io): Promise<void> {
  const made = await withServices(io, async (services, actor) =>
    createResetLink(services, actor, await getUserByEmail(services, given.email), {
      clearsSecondFactor: given['second-factor'],
    }),
  )
  io.info(`With this link ${made.email} sets another password, once and within 24 hours:`)
  printLink(made, {}, io)
}

function printLink({ email, secret, expiresAt }: CreatedLink, more: object, io: Io): void {
  const { baseUrl, host, port } = readConfig()
  const address = baseUrl ?? `http://${host}:${port}`
  const link = linkAddress(address, secret)
  if (!baseUrl)
    io.info(`(It leads to ${address}. Set ADIT_BASE_URL where people reach the server at another address.)`)
  io.data({ email, ...more, link, expiresAt }, link)
}

export async function list(io: Io): Promise<void> {
  await withServices(io, (services) =>
    io.list(listAllUsers(services), {
      'E-MAIL': (user) => user.email,
      NAME: (user) => user.name,
      WORKSPACES: ({ workspaces }) =>
        workspaces.map(({ slug, role }) => `${slug} (${role})`).join(', ') || '(none)',
      CREATED: (user) => user.createdAt,
      STATE: (user) => (user.disabledAt ? `revoked ${user.disabledAt}` : 'active'),
    }),
  )
}

export async function revoke(email: string, io: Io): Promise<void> {
  const done = await withServices(io, (services, actor) => setDisabled(services, actor, email, true))
  io.data(done, `${done.email} is signed out everywhere and cannot sign in any more.`)
}

export async function restore(email: string, io: Io): Promise<void> {
  const done = await withServices(io, (services, actor) => setDisabled(services, actor, email, false))
  io.data(done, `${done.email} can sign in again.`)
}
