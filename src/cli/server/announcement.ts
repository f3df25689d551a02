// What `adit serve` prints when it listens: its URLs and the next steps; on an empty SQLite database also a
// first API key.
import { apis } from '../../contract/apis.ts'
import { clientCommands, LOCAL_PORT } from '../../lib/client-commands.ts'
import { defaultPath } from '../../server/config/data-folder.ts'
import { commandName } from '../../server/config/environment.ts'
import { type Config, version } from '../../server/config/server.ts'
import { linkUrl } from '../../server/domain/accounts/links.ts'
import { describeFirstUsers } from '../../server/domain/accounts/users.ts'
import type { Services } from '../../server/domain/context.ts'
import { type FirstRun, isEmpty, prepareFirstRun } from '../../server/domain/setup/first-run.ts'
import { listAll } from '../../server/domain/workspaces/manage.ts'
import type { Io } from '../io.ts'
import { bold, joinLines, type Text } from '../style.ts'

/** Determines the instructions to print. */
type Access =
  | { kind: 'first run'; first: FirstRun }
  | { kind: 'empty' }
  | { kind: 'joined' | 'invited' | 'none'; workspace: string }

async function findAccess(services: Services): Promise<Access> {
  // Nodes share a PostgreSQL database: there the operator creates the first workspace.
  if (services.store.engine === 'postgres' && (await isEmpty(services))) return { kind: 'empty' }
  const first = await prepareFirstRun(services)
  if (first) return { kind: 'first run', first }
  const kind = await describeFirstUsers(services)
  for await (const [workspace] of listAll(services)) if (workspace) return { kind, workspace: workspace.slug }
  return { kind: 'empty' }
}

interface Urls {
  url: string
  /** Undefined if metrics are not enabled. */
  metricsUrl: string | undefined
  /** Undefined if no edge runs with this server. */
  edgeUrl: string | undefined
}

/** Creates the first API key, if there is none yet. */
export async function announce(
  io: Io,
  config: Config,
  services: Services,
  { url, metricsUrl, edgeUrl }: Urls,
): Promise<void> {
  const access = await findAccess(services)
  const facts = {
    url,
    api: url + apis.publicA.prefix,
    docs: `${url}/docs`,
    ...(edgeUrl && { edge: edgeUrl }),
    ...(metricsUrl && { metrics: metricsUrl }),
    variant: config.variant,
    pid: process.pid,
  }
  const lines: Text[] = [
    '',
    [bold('Adit'), ` ${version} listening on ${url}`],
    '',
    `  Dashboard      ${url}`,
    `  API            ${facts.api}`,
    `  Documentation  ${facts.docs}`,
    ...(edgeUrl ? [`  Edge           ${edgeUrl}`] : []),
    ...(metricsUrl ? [`  Metrics        ${metricsUrl}`] : []),
    ...nextSteps(config, url, access),
    ...(edgeUrl ? shareAnApp(url) : []),
    '',
  ]
  const first = access.kind === 'first run' && {
    workspace: access.first.workspace.slug,
    token: access.first.key.token,
    setupLink: linkUrl(url, access.first.link.secret),
  }
  io.data({ ...facts, ...first }, joinLines(lines))
}

function shareAnApp(url: string): string[] {
  const { install, login, tunnel } = clientCommands(url)
  const lead = `To share an app that listens on port ${LOCAL_PORT}, in another terminal:`
  return ['', lead, '', `  ${install}`, `  ${login}`, `  ${tunnel}`]
}

function nextSteps(config: Config, url: string, access: Access): string[] {
  const adit = commandName()
  const createKey = (slug: string) => `  ${adit} admin key create --workspace ${slug}`
  const createOwner = (slug: string) =>
    `  ${adit} admin user invite you@example.com --workspace ${slug} --role owner`
  switch (access.kind) {
    case 'joined':
      return ['', 'To create an API key:', '', createKey(access.workspace), ...databaseHint(config)]
    case 'invited':
    case 'none':
      return [
        '',
        access.kind === 'invited'
          ? 'Nobody has accepted an invitation yet. To create another link for an owner, and an API key:'
          : 'There are no users yet. To create a link for the first owner, and an API key:',
        '',
        createOwner(access.workspace),
        createKey(access.workspace),
        ...databaseHint(config),
      ]
    case 'empty':
      return [
        '',
        'The database is empty. To create a workspace, an API key and a link for its owner:',
        '',
        `  ${adit} admin workspace create default --provisioned`,
        createKey('default'),
        createOwner('default'),
        ...databaseHint(config),
      ]
    case 'first run': {
      const { workspace, key, link } = access.first
      return [
        `  API key        ${key.token}`,
        '',
        `The key belongs to the new workspace "${workspace.slug}". It is not shown again. Try it:`,
        '',
        `  curl -H "Authorization: Bearer ${key.token}" ${url}${apis.publicA.prefix}/workspace`,
        '',
        'To sign in to the dashboard, create the owner account (the link works once, for 24 hours):',
        '',
        `  ${linkUrl(url, link.secret)}`,
      ]
    }
  }
}

/** Admin commands need the same database, which another shell does not know unless it is the default. */
function databaseHint({ database }: Config): string[] {
  const isDefault = database.engine === 'sqlite' && database.path === defaultPath('adit.db')
  return isDefault ? [] : ['', 'Run them with the same ADIT_DATABASE_URL as this server.']
}
