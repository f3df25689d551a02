// All commands. What they do is loaded when they are called, so that help comes at once.
import { edgeSettings, type Setting, settings } from '../config.ts'
import { type Command, command } from './command.ts'
import { UsageError } from './errors.ts'
import { list } from './help.ts'

/** Of every command that talks to the API. */
const apiOptions = {
  url: { value: '<address>', summary: 'the server; else ADIT_URL, else the profile’s' },
  profile: { value: '<name>', summary: 'the profile to use; else the current one' },
} as const

const workspaceOption = { value: '<slug>', summary: 'the workspace' } as const

const tokensFileOption = {
  value: '<path>',
  summary: 'the tokens file; ./tokens.json where not given',
} as const
const TOKENS_FILE = 'tokens.json'

const listOf = (settings: Record<string, Setting<unknown>>) =>
  list(
    Object.entries(settings).map(([name, { summary, fallback }]) => [
      name,
      fallback ? `${summary} (${fallback})` : summary,
    ]),
  )

const PRECEDENCE =
  'The server and the key are taken from ADIT_URL and ADIT_API_KEY, or from the profile that "adit login" made;\n' +
  'a flag counts before both.'

export const commands: readonly Command[] = [
  command(
    {
      name: 'login',
      summary: 'sign in to a server with an API key, and remember both',
      details:
        'Asks for the address and the key. Where nobody can be asked, the key is read from standard input:\n' +
        '  adit login --url https://adit.example.com < key\n' +
        'It is kept in a file that only you can read, under the folder for your configuration.',
      options: {
        url: { value: '<address>', summary: 'the server; asked for where not given' },
        profile: {
          value: '<name>',
          summary: 'what to remember it as; else the current profile, else "default"',
        },
      },
    },
    async (input, io) => (await import('./login.ts')).login(input, io),
  ),
  command(
    {
      name: 'logout',
      summary: 'forget a profile and its key',
      options: { profile: { value: '<name>', summary: 'which one; else the current one' } },
    },
    async (input, io) => (await import('./login.ts')).logout(input, io),
  ),
  command({ name: 'profiles', summary: 'list the profiles; * marks the current one' }, async (_input, io) =>
    (await import('./login.ts')).list(io),
  ),
  command(
    { name: 'profiles use', summary: 'choose the profile that commands use', arguments: ['name'] },
    async ({ name }, io) => (await import('./login.ts')).use(name, io),
  ),
  command(
    {
      name: 'workspace',
      summary: 'show the workspace of your key',
      details: PRECEDENCE,
      options: apiOptions,
    },
    async (input, io) => (await import('./workspace.ts')).show(input, io),
  ),
  command(
    { name: 'keys list', summary: 'list the workspace’s API keys', details: PRECEDENCE, options: apiOptions },
    async (input, io) => (await import('./keys.ts')).list(input, io),
  ),
  command(
    {
      name: 'keys create',
      summary: 'mint an API key',
      details: `The raw key alone goes to standard output, and cannot be shown again: KEY=$(adit keys create --label ci)\n${PRECEDENCE}`,
      options: {
        label: { value: '<text>', summary: 'what the key is for, at most 80 characters' },
        ...apiOptions,
      },
    },
    async (input, io) => (await import('./keys.ts')).create(input, io),
  ),
  command(
    {
      name: 'keys revoke',
      summary: 'revoke an API key, for good and at once',
      details: `Asks first; where nobody can be asked, --yes is needed.\n${PRECEDENCE}`,
      arguments: ['id'],
      options: { yes: { summary: 'do not ask' }, ...apiOptions },
    },
    async (input, io) => (await import('./keys.ts')).revoke(input, io),
  ),
  command(
    {
      name: 'usage',
      summary: 'show what went through the workspace’s tunnels, by day',
      details: PRECEDENCE,
      options: { days: { value: '<number>', summary: '1 to 365; else 30' }, ...apiOptions },
    },
    async (input, io) => (await import('./usage.ts')).show(input, io),
  ),
  command(
    {
      name: 'tunnel',
      summary: 'make a local server reachable through an edge',
      details:
        'Prints the public address, then the requests that come, until it is stopped. It comes back by itself when the\n' +
        'edge or the network was away. With --json each line tells of an event: open, request or lost.\n' +
        'The edge is the one that --edge or ADIT_EDGE_URL names, else the one at the base of the workspace’s tunnels; for\n' +
        `tunnels under localhost that is http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}.\n${PRECEDENCE}`,
      arguments: ['port'],
      options: {
        name: { value: '<name>', summary: 'the first part of its host name; any where not given' },
        edge: { value: '<address>', summary: 'the edge; else ADIT_EDGE_URL' },
        ...apiOptions,
      },
    },
    async (input, io) => (await import('./tunnel.ts')).tunnel(input, io),
  ),
  command(
    {
      name: 'mcp',
      summary: 'serve the workspace to an agent, by MCP over standard input and output',
      details: PRECEDENCE,
      options: apiOptions,
    },
    async (input, io) => {
      const [{ findAccess }, { mcp }] = await Promise.all([import('./api.ts'), import('./mcp.ts')])
      await mcp(findAccess(input), io)
    },
  ),
  command(
    {
      name: 'completion',
      summary: 'print completion for a shell: bash, zsh or fish',
      details: 'Load it with: source <(adit completion bash)',
      arguments: ['shell'],
    },
    async ({ shell }, io) => {
      const { completionFor, shells } = await import('./completion.ts')
      const known = shells.find((one) => one === shell)
      if (!known) throw new UsageError(`"${shell}" is none of the shells ${shells.join(', ')}.`)
      const script = completionFor[known](commands)
      io.data({ shell: known, script }, script)
    },
  ),
  command(
    {
      name: 'serve',
      summary: 'run the control plane',
      details: ['It is configured by environment variables:', ...listOf(settings)].join('\n'),
    },
    async (_input, io) => (await import('./serve.ts')).serve(io),
  ),
  command(
    {
      name: 'edge',
      summary: 'run a tunnel edge, which carries traffic to whoever opens tunnels',
      details: [
        'It takes the keys of the control plane at ADIT_URL, where ADIT_EDGE_KEY is its credential ("adit admin edge',
        'create <name>" makes one), and reports there what tunnels use. With --tokens-file it needs no control plane.',
        'Further settings are environment variables:',
        ...listOf({
          ...edgeSettings,
          ADIT_TUNNEL_DOMAIN: {
            ...settings.ADIT_TUNNEL_DOMAIN,
            summary: 'with --tokens-file: domain of its tunnels',
          },
          ADIT_LOG_LEVEL: settings.ADIT_LOG_LEVEL,
        }),
      ].join('\n'),
      options: {
        'tokens-file': { value: '<path>', summary: 'take the keys in this file, and ask no control plane' },
      },
    },
    async (input, io) => (await import('./edge.ts')).edge(input, io),
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
      options: { 'second-factor': { summary: 'remove the second factor too, for somebody who lost it' } },
    },
    async (input, io) => (await import('./admin/users.ts')).reset(input, io),
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
      name: 'admin usage show',
      summary: 'show a workspace’s daily totals, or the counters of one day by edge and epoch',
      details:
        'Without --day: the totals of the days that edges can still report for. With --day: what each edge and epoch (a run\n' +
        'of an edge) has reported, the largest 1,000 first.',
      arguments: ['workspace'],
      options: { day: { value: '<day>', summary: 'a UTC day such as 2026-11-15' } },
    },
    async (input, io) => (await import('./admin/usage.ts')).show(input, io),
  ),
  command(
    {
      name: 'admin usage reset',
      summary: 'remove the usage of a day, of all edges or of one that reported nonsense',
      details:
        'Edges report running totals. An edge that still runs sends its total for that day again with its next report, and\n' +
        'that is counted anew; what its earlier runs counted is gone. So name the faulty edge with --edge, which keeps the\n' +
        'usage of all others, and stop it or revoke its credential first ("adit admin edge revoke"). It is recorded in\n' +
        'the audit log.',
      arguments: ['workspace'],
      options: {
        day: { value: '<day>', summary: 'a UTC day such as 2026-11-15', required: true },
        edge: { value: '<id>', summary: 'only what this edge has reported' },
      },
    },
    async (input, io) => (await import('./admin/usage.ts')).reset(input, io),
  ),
  command(
    {
      name: 'admin backup',
      summary: 'copy the SQLite database into a file, also while a server uses it',
      details:
        'The file holds everything that was committed when the command began, and nothing is overwritten. It does not hold\n' +
        'the secret that lies beside the database: keep a copy of that elsewhere. docs/operations/backup.md explains restoring.',
      arguments: ['file'],
    },
    async ({ file }, io) => (await import('./admin/backup.ts')).backup(file, io),
  ),
  command(
    {
      name: 'admin distribute',
      summary: 'on a PostgreSQL with Citus: spread usage over its machines, by workspace',
      details:
        'All other tables become reference tables, whole on every machine. Running it again changes nothing; run it after an\n' +
        'upgrade, which may have added a table. While the rows of a table move, writing to it waits. See docs/operations/citus.md.',
    },
    async (_input, io) => (await import('./admin/distribute.ts')).distribute(io),
  ),
  command(
    {
      name: 'admin nodes',
      summary: 'list the running nodes, their leases and their positions in the change log',
      details:
        'LAST HEARTBEAT is at most 5 seconds old, by the clock of the node. CHANGE LOG shows whether the node is up to\n' +
        'date. LEASE shows whether it may still answer from its cache, judging by its last heartbeat. A node that was\n' +
        'killed or hangs is listed until a revocation has waited for it, once and for 2 seconds; if it recovers, it is\n' +
        'listed again.',
    },
    async (_input, io) => (await import('./admin/nodes.ts')).list(io),
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
