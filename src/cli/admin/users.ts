import { type Role, roles } from '../../contract/operation.ts'
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { readConfig } from '../../server/config/server.ts'
import { findWorkspacesOfLastOwner } from '../../server/domain/accounts/last-access.ts'
import { type CreatedLink, linkUrl } from '../../server/domain/accounts/links.ts'
import {
  createResetLink,
  getUserByEmail,
  inviteByOperator,
  listAllUsers,
  setDisabled,
} from '../../server/domain/accounts/users.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { dim, green } from '../style.ts'
import { confirm, withServices } from './with-services.ts'

export async function invite(
  { email, workspace, role }: { email: string; workspace: string; role: string },
  io: Io,
): Promise<void> {
  if (!(roles as readonly string[]).includes(role))
    throw new UsageError(`Invalid --role "${role}" (expected ${roles.join(', ')}).`)
  const invitation = { email, workspace, role: role as Role }
  const link = await withServices((services, actor) => inviteByOperator(services, actor, invitation))
  io.info(
    `Created a link for ${link.email} to join workspace "${workspace}" as ${role}. ` +
      'It works once and expires in 24 hours:',
  )
  printLink(link, { workspace, role }, io)
}

export async function reset(input: { email: string; 'two-factor': boolean }, io: Io): Promise<void> {
  const link = await withServices(async (services, actor) =>
    createResetLink(services, actor, await getUserByEmail(services, input.email), {
      disablesTwoFactor: input['two-factor'],
    }),
  )
  io.info(`Created a link for ${link.email} to reset the password. It works once and expires in 24 hours:`)
  printLink(link, {}, io)
}

/** Without ADIT_BASE_URL the start of the link is a guess: another process is the server. */
function printLink({ email, secret, expiresAt }: CreatedLink, more: object, io: Io): void {
  const { baseUrl, host, port } = readConfig()
  const guess = `http://${host}:${port}`
  const link = linkUrl(baseUrl ?? guess, secret)
  io.data({ email, ...more, link, expiresAt }, link)
  if (!baseUrl)
    io.info(
      `ADIT_BASE_URL is not set, so the link starts with ${guess}. ` +
        'If users reach your server at another URL, replace that part, and set ADIT_BASE_URL.',
    )
  else if (isLoopbackHost(new URL(baseUrl).hostname))
    io.info(
      `The link works on this machine only, because ADIT_BASE_URL is ${baseUrl}. ` +
        'Set it to the URL at which others reach your server, and create the link again.',
    )
}

export async function list(io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAllUsers(services), {
      columns: {
        EMAIL: (user) => user.email,
        NAME: (user) => user.name,
        WORKSPACES: ({ workspaces }) =>
          workspaces.map(({ slug, role }) => `${slug} (${role})`).join(', ') || '(none)',
        CREATED: (user) => io.time(user.createdAt),
        STATE: (user) => (user.disabledAt ? dim(`disabled ${io.time(user.disabledAt)}`) : green('active')),
      },
      empty: 'No users.',
      shrink: ['WORKSPACES', 'NAME', 'STATE', 'EMAIL'],
    }),
  )
}

export async function revoke({ email, yes }: { email: string; yes: boolean }, io: Io): Promise<void> {
  const user = await withServices(async (services, actor) => {
    const workspaces = await findWorkspacesOfLastOwner(services, email)
    if (workspaces.length > 0)
      await confirm(io, `${email} is the only owner of workspace ${workspaces.join(', ')}.`, yes)
    return setDisabled(services, actor, email, true)
  })
  io.data(user, `Disabled ${user.email} and ended their sessions.`)
}

export async function restore(email: string, io: Io): Promise<void> {
  const user = await withServices((services, actor) => setDisabled(services, actor, email, false))
  io.data(user, `Enabled ${user.email}.`)
}
