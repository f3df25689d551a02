// All commands. What they do is loaded when they are called, so that help comes at once.
import { settings } from '../config.ts'
import { command } from './command.ts'
import { list } from './help.ts'

const workspaceOption = { value: '<slug>', summary: 'the workspace' } as const

const tokensFileOption = {
  value: '<path>',
  summary: 'the tokens file; ./tokens.json where not given',
} as const
const TOKENS_FILE = 'tokens.json'

const settingsList = Object.entries(settings).map(([name, { summary, fallback }]): [string, string] => [
  name,
  fallback ? `${summary} (${fallback})` : summary,
])

export const commands = [
  command(
    {
      name: 'serve',
      summary: 'run the control plane',
      details: ['It is configured by environment variables:', ...list(settingsList)].join('\n'),
    },
    async (_input, io) => (await import('./serve.ts')).serve(io),
  ),
  command(
    {
      name: 'admin workspace create',
      summary: 'create a workspace',
      arguments: ['slug'],
      options: {
        name: { value: '<name>', summary: 'display name; the slug where not given' },
        provisioned: { summary: 'mark it as provisioned at once' },
      },
    },
    async (input, io) => (await import('./admin/workspaces.ts')).create(input, io),
  ),
  command({ name: 'admin workspace list', summary: 'list all workspaces' }, async (_input, io) =>
    (await import('./admin/workspaces.ts')).list(io),
  ),
  command(
    {
      name: 'admin workspace provision',
      summary: 'mark a workspace as provisioned: edges carry its tunnels',
      arguments: ['slug'],
    },
    async ({ slug }, io) => (await import('./admin/workspaces.ts')).provision(slug, io),
  ),
  command(
    {
      name: 'admin key create',
      summary: 'mint an API key for a workspace',
      details: 'The raw key alone goes to standard output, and cannot be shown again.',
      options: {
        workspace: { ...workspaceOption, required: true },
        label: { value: '<text>', summary: 'what the key is for, at most 80 characters' },
      },
    },
    async (input, io) => (await import('./admin/keys.ts')).create(input, io),
  ),
  command(
    {
      name: 'admin key list',
      summary: 'list the API keys of a workspace, or of all',
      options: { workspace: workspaceOption },
    },
    async ({ workspace }, io) => (await import('./admin/keys.ts')).list(workspace, io),
  ),
  command(
    { name: 'admin key revoke', summary: 'revoke an API key for good', arguments: ['id'] },
    async ({ id }, io) => (await import('./admin/keys.ts')).revoke(id, io),
  ),
  command(
    {
      name: 'admin edge create',
      summary: 'mint a credential for an edge',
      details: 'The raw credential alone goes to standard output, and cannot be shown again.',
      arguments: ['name'],
    },
    async ({ name }, io) => (await import('./admin/edges.ts')).create(name, io),
  ),
  command({ name: 'admin edge list', summary: 'list all edges' }, async (_input, io) =>
    (await import('./admin/edges.ts')).list(io),
  ),
  command(
    { name: 'admin edge revoke', summary: 'revoke an edge’s credential for good', arguments: ['id'] },
    async ({ id }, io) => (await import('./admin/edges.ts')).revoke(id, io),
  ),
  command(
    {
      name: 'admin user create',
      summary: 'make a link by which somebody joins a workspace',
      details:
        'The link alone goes to standard output. Whoever opens it chooses a name and a password; it works once and for 24\n' +
        'hours. It leads to ADIT_BASE_URL, or to where the server listens where that is not set.',
      arguments: ['email'],
      options: {
        workspace: { ...workspaceOption, required: true },
        role: { value: '<role>', summary: 'owner, admin or member', required: true },
      },
    },
    async (input, io) => (await import('./admin/users.ts')).create(input, io),
  ),
  command({ name: 'admin user list', summary: 'list all people' }, async (_input, io) =>
    (await import('./admin/users.ts')).list(io),
  ),
  command(
    {
      name: 'admin user reset',
      summary: 'make a link by which somebody sets another password',
      details: 'The link alone goes to standard output; it works once and for 24 hours.',
      arguments: ['email'],
    },
    async ({ email }, io) => (await import('./admin/users.ts')).reset(email, io),
  ),
  command(
    {
      name: 'admin user revoke',
      summary: 'sign somebody out everywhere and let them in no more',
      arguments: ['email'],
    },
    async ({ email }, io) => (await import('./admin/users.ts')).revoke(email, io),
  ),
  command(
    { name: 'admin user restore', summary: 'let somebody in again who was revoked', arguments: ['email'] },
    async ({ email }, io) => (await import('./admin/users.ts')).restore(email, io),
  ),
  command(
    {
      name: 'admin demo',
      summary: 'fill a workspace with a year of invented usage, to have something to look at',
      details:
        'Filling it again changes nothing but today. Meant for trying things out: there is no way to undo it.',
      options: { workspace: { value: '<slug>', summary: 'the workspace; "default" where not given' } },
    },
    async ({ workspace }, io) => (await import('./admin/demo.ts')).demo(workspace ?? 'default', io),
  ),
  command(
    {
      name: 'tokens-file add',
      summary: 'mint a key for a self-hosted edge, which has no control plane',
      details:
        'The raw key alone goes to standard output, and cannot be shown again; the file holds its SHA-256.\n' +
        'An edge that uses the file takes the change up within a second.',
      arguments: ['workspace'],
      options: {
        label: { value: '<text>', summary: 'what the key is for, at most 80 characters' },
        file: tokensFileOption,
      },
    },
    async ({ file = TOKENS_FILE, ...given }, io) =>
      (await import('./tokens-file.ts')).add({ ...given, file }, io),
  ),
  command(
    {
      name: 'tokens-file list',
      summary: 'list the keys of a self-hosted edge',
      options: { file: tokensFileOption },
    },
    async ({ file = TOKENS_FILE }, io) => (await import('./tokens-file.ts')).list(file, io),
  ),
  command(
    {
      name: 'tokens-file remove',
      summary: 'remove a key of a self-hosted edge',
      details: 'An edge that uses the file refuses the key, and closes what it has opened, within a second.',
      arguments: ['id'],
      options: { file: tokensFileOption },
    },
    async ({ id, file = TOKENS_FILE }, io) => (await import('./tokens-file.ts')).remove(id, file, io),
  ),
]
