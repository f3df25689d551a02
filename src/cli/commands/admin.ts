// Commands for the operator. They act on the database.
import { RESTORABLE_DAYS } from '../../lib/credentials/archive.ts'
import { command, inGroup } from '../command.ts'
import { dayOption, forceOption, labelOption, workspaceOption, yesOption } from './options.ts'

const confirmation = (reason: string) =>
  `Asks for confirmation if ${reason}; without a terminal or with --json, pass --yes instead.`

const edgeUrlSummary = 'public URL of the edge, where tunnel clients connect'

export const adminCommands = inGroup('Admin', [
  command({
    name: 'admin workspace create',
    summary: 'create a workspace',
    arguments: ['slug'],
    options: {
      name: { value: '<name>', summary: 'display name (default: the slug)' },
      provisioned: { summary: 'also provision it, so that edges accept its tunnels' },
    },
    run: async (input, io) => (await import('../admin/workspaces.ts')).create(input, io),
  }),
  command({
    name: 'admin workspace list',
    summary: 'list workspaces',
    run: async (_input, io) => (await import('../admin/workspaces.ts')).list(io),
  }),
  command({
    name: 'admin workspace provision',
    summary: 'provision a workspace',
    details: 'Edges accept tunnels of provisioned workspaces only.',
    arguments: ['slug'],
    run: async ({ slug }, io) => (await import('../admin/workspaces.ts')).provision(slug, io),
  }),
  command({
    name: 'admin workspace archive',
    summary: 'archive a workspace and stop its API keys',
    details:
      'Takes effect on every node before the command exits. You can restore the workspace with ' +
      `all its data for ${RESTORABLE_DAYS} days. Asks for confirmation; scripts need --yes.`,
    arguments: ['slug'],
    options: { yes: yesOption },
    run: async (input, io) => (await import('../admin/workspaces.ts')).archive(input, io),
  }),
  command({
    name: 'admin workspace restore',
    summary: `restore an archived workspace, within ${RESTORABLE_DAYS} days`,
    arguments: ['slug'],
    run: async ({ slug }, io) => (await import('../admin/workspaces.ts')).restore(slug, io),
  }),
  command({
    name: 'admin workspace set-group',
    summary: 'set the edge group of a workspace',
    details:
      'Fails while the workspace has open tunnels. Edges of the other group may cache the API keys for ' +
      'up to a minute, but cannot open tunnels or report usage of the workspace any longer.',
    arguments: ['slug', 'group'],
    run: async (input, io) => (await import('../admin/workspaces.ts')).setGroup(input, io),
  }),
  command({
    name: 'admin workspace quota',
    summary: 'show or set the quotas of a workspace',
    details:
      'Without flags, shows each quota and its usage. Months are calendar months (UTC). An amount ' +
      'is a whole number, optionally with K, M, G, T (powers of 1,000) or Ki, Mi, Gi, Ti (powers ' +
      'of 1,024). `none` means no limit, and `default` the limit in the configuration. Edges ' +
      'enforce a change within 10 seconds. The audit log records it.',
    arguments: ['slug'],
    options: {
      bytes: { value: '<amount>', summary: 'bytes per month, in both directions together' },
      requests: { value: '<amount>', summary: 'requests per month' },
      tunnels: { value: '<amount>', summary: 'open tunnels at a time' },
      keys: { value: '<amount>', summary: 'active API keys' },
    },
    run: async (input, io) => (await import('../admin/quotas.ts')).quota(input, io),
  }),
  command({
    name: 'admin key create',
    summary: 'create an API key for a workspace',
    details: 'Prints only the key, to standard output. You will not see it again.',
    options: {
      workspace: { ...workspaceOption, required: true },
      label: labelOption,
      expires: {
        value: '<time>',
        summary: 'expiry: 90d, 12h, a UTC day or a UTC time (default: never, or the maximum of the policy)',
      },
      force: forceOption,
    },
    run: async (input, io) => (await import('../admin/keys.ts')).create(input, io),
  }),
  command({
    name: 'admin key list',
    summary: 'list API keys of one or all workspaces',
    options: { workspace: { ...workspaceOption, summary: 'only keys of this workspace' } },
    run: async ({ workspace }, io) => (await import('../admin/keys.ts')).list(workspace, io),
  }),
  command({
    name: 'admin key rotate',
    summary: 'replace an API key with a new one',
    details:
      'Creates a key with the same label and lifetime, up to the maximum of the workspace policy. ' +
      'The old key works until the overlap is over. Prints only the new key, to standard output. ' +
      'You will not see it again.',
    arguments: ['id'],
    options: {
      overlap: { value: '<time>', summary: 'how long both keys work: none, 1h, 24h or 7d (default: 24h)' },
      force: forceOption,
    },
    run: async (input, io) => (await import('../admin/keys.ts')).rotate(input, io),
  }),
  command({
    name: 'admin key find',
    summary: 'look up an API key by its secret',
    details:
      'Reads a complete key or edge credential from standard input, never from a flag. Prints its ' +
      'ID, workspace, label, state, last use and, if it was rotated, its successor. Exits with 0 ' +
      'if the key exists in any state, with 1 if it is unknown, and with 2 if its prefix, length ' +
      'or checksum is wrong.',
    run: async (_input, io) => (await import('../admin/key-find.ts')).find(io),
  }),
  command({
    name: 'admin key revoke',
    summary: 'revoke an API key',
    details:
      'Takes effect on every node before the command exits. You cannot undo it. ' +
      confirmation('it is the last active key of its workspace'),
    arguments: ['id'],
    options: { yes: yesOption },
    run: async (input, io) => (await import('../admin/keys.ts')).revoke(input, io),
  }),
  command({
    name: 'admin edge create',
    summary: 'create a credential for an edge',
    details:
      'Prints only the credential, to standard output. You will not see it again. With --url, ' +
      '`adit tunnel` finds the edge by itself.',
    arguments: ['name'],
    options: {
      url: { value: '<url>', summary: edgeUrlSummary },
      group: {
        value: '<name>',
        summary: 'the group of the edge, which cannot be changed (default: default)',
      },
    },
    run: async (input, io) => (await import('../admin/edges.ts')).create(input, io),
  }),
  command({
    name: 'admin edge set-url',
    summary: 'set the public URL of an edge',
    details:
      'Tunnel clients of all workspaces send their API keys there, so only the operator sets it, ' +
      'and never the edge. Without a URL, or if edges with different ones do not forward to each other, ' +
      'clients connect to the tunnel domain of their workspace.\n\n' +
      '  adit admin edge set-url edge_… https://edge.example.com',
    arguments: ['id'],
    optionalArgument: 'url',
    options: { remove: { summary: 'remove the URL' } },
    run: async (input, io) => (await import('../admin/edges.ts')).setUrl(input, io),
  }),
  command({
    name: 'admin edge list',
    summary: 'list edges with version, load and last report',
    details:
      'TUNNELS and STREAMS are from the last report. An edge is `connected` if it reported in the ' +
      'last 30 seconds.',
    run: async (_input, io) => (await import('../admin/edges.ts')).list(io),
  }),
  command({
    name: 'admin edge revoke',
    summary: 'revoke the credential of an edge',
    details:
      `You cannot undo a revocation. ${confirmation('it is the last active edge')} If the credential ` +
      'was stolen, use --reset-usage, which also deletes the usage that the edge reported in the ' +
      'last 35 days, for all workspaces. The command shows the amount and asks first. Workspaces ' +
      'that reached a quota because of this usage work again within seconds. You can run the ' +
      'command again for a revoked edge.',
    arguments: ['id'],
    options: { yes: yesOption, 'reset-usage': { summary: 'delete the usage that the edge has reported' } },
    run: async ({ id, yes, 'reset-usage': resetsUsage }, io) =>
      (await import('../admin/edges.ts')).revoke({ id, yes, resetsUsage }, io),
  }),
  command({
    name: 'admin edge-group create',
    summary: 'create a group of edges',
    details:
      'Edges of a group trust each other with the traffic of the workspaces of the group. An edge ' +
      'cannot verify keys or open tunnels of workspaces of other groups. Everything is in the group ' +
      '`default` at first.\n\n' +
      '  adit admin edge-group create eu\n' +
      '  adit admin edge create fra-1 --group eu\n' +
      '  adit admin workspace set-group acme eu',
    arguments: ['name'],
    run: async ({ name }, io) => (await import('../admin/edge-groups.ts')).create(name, io),
  }),
  command({
    name: 'admin edge-group list',
    summary: 'list groups of edges',
    run: async (_input, io) => (await import('../admin/edge-groups.ts')).list(io),
  }),
  command({
    name: 'admin tunnels',
    summary: 'list open tunnels of all workspaces',
    details:
      'One row for each connected tunnel client, as edges reported it in the last few seconds. ' +
      'Tunnels of edges that are not connected are missing.',
    run: async (_input, io) => (await import('../admin/tunnels.ts')).list(io),
  }),
  command({
    name: 'admin port list',
    summary: 'list the ports of TCP tunnels',
    details:
      'STATE is `open`, `reserved` (a reserved name keeps its port) or `unused`. An unused port ' +
      'is free again when it expires, ADIT_TCP_PORT_RETENTION_DAYS after its last use.',
    run: async (_input, io) => (await import('../admin/ports.ts')).list(io),
  }),
  command({
    name: 'admin port release',
    summary: 'release the port of a TCP tunnel',
    details:
      'Another workspace may get the port, and programs that still connect to it then reach that ' +
      'workspace. Fails while a tunnel uses the port.',
    arguments: ['port'],
    run: async ({ port }, io) => (await import('../admin/ports.ts')).release(port, io),
  }),
  command({
    name: 'admin user invite',
    summary: 'create an invitation link for a user',
    details:
      'Prints only the link to standard output. The user opens it to choose a name and a password; it ' +
      'works once and expires after 24 hours. The link starts with ADIT_BASE_URL: set it to the URL ' +
      'of the server.',
    arguments: ['email'],
    options: {
      workspace: { ...workspaceOption, required: true },
      role: { value: '<role>', summary: 'owner, admin or member', required: true },
    },
    run: async (input, io) => (await import('../admin/users.ts')).invite(input, io),
  }),
  command({
    name: 'admin user list',
    summary: 'list users',
    run: async (_input, io) => (await import('../admin/users.ts')).list(io),
  }),
  command({
    name: 'admin user reset',
    summary: 'create a link to reset a user’s password',
    details: 'Prints only the link to standard output. It works once and expires after 24 hours.',
    arguments: ['email'],
    options: { 'two-factor': { summary: 'also turn off two-factor authentication' } },
    run: async (input, io) => (await import('../admin/users.ts')).reset(input, io),
  }),
  command({
    name: 'admin user revoke',
    summary: 'disable a user and end their sessions',
    details: confirmation('the user is the only owner of a workspace'),
    arguments: ['email'],
    options: { yes: yesOption },
    run: async (input, io) => (await import('../admin/users.ts')).revoke(input, io),
  }),
  command({
    name: 'admin user restore',
    summary: 'enable a disabled user',
    arguments: ['email'],
    run: async ({ email }, io) => (await import('../admin/users.ts')).restore(email, io),
  }),
  command({
    name: 'admin usage show',
    summary: 'show usage per day, or per edge for one day',
    details:
      'Without --day: totals of the days that edges can still report. With --day: the counters of each ' +
      'edge and epoch (one run of an edge), the 1,000 largest first.',
    arguments: ['workspace'],
    options: { day: dayOption },
    run: async (input, io) => (await import('../admin/usage.ts')).show(input, io),
  }),
  command({
    name: 'admin usage reset',
    summary: 'delete the usage of one day, from all edges or one',
    details:
      'For an edge that reported wrong usage. Revoke the edge first (`adit admin edge revoke`): edges ' +
      'report cumulative totals, so one that still runs sends its total of that day again. --edge keeps ' +
      'the usage that other edges reported. The reset is recorded in the audit log.',
    arguments: ['workspace'],
    options: {
      day: { ...dayOption, required: true },
      edge: { value: '<id>', summary: 'only what this edge reported' },
    },
    run: async (input, io) => (await import('../admin/usage.ts')).reset(input, io),
  }),
  command({
    name: 'admin audit export',
    summary: 'export the audit log of all workspaces as NDJSON',
    details:
      'Prints one JSON object per line, ordered by `cursor`. --since continues after the last ' +
      'entry you have: every entry is exported once, even if it was committed late. The audit log ' +
      'records each export with new entries. See docs/operations/audit.md to run it on a schedule.',
    options: {
      since: { value: '<cursor>', summary: 'only entries after this one (a cursor, not a date)' },
      output: {
        value: '<file>',
        summary: 'append to this file instead, and continue after its last entry',
      },
      'cursor-file': {
        value: '<file>',
        summary: 'read the cursor from this file, and store the last one in it',
      },
      'skip-deleted': {
        summary: 'continue even if retention deleted entries after the cursor',
      },
    },
    run: async (input, io) => (await import('../admin/audit.ts')).exportLog(input, io),
  }),
  command({
    name: 'admin migrate',
    summary: 'create the database, or migrate its schema',
    details: '`adit serve` does this at every start; use it to prepare a database without starting a server.',
    run: async (_input, io) => (await import('../admin/database/migrate.ts')).migrate(io),
  }),
  command({
    name: 'admin backup',
    summary: 'copy the SQLite database to a file',
    details:
      'Works while a server uses the database. The copy has everything that was committed when the ' +
      'command began. Never overwrites files. The session secret next to the database is not ' +
      'included; keep a copy of it elsewhere. See docs/operations/backup.md for how to restore.\n\n' +
      'With --keep, <path> is a folder: the file gets the time as its name, and older backups of this ' +
      'database in the folder are deleted. Use it for scheduled backups; the server reports the time of ' +
      'the last one as a metric.\n\n' +
      '  adit admin backup --keep 7 /backups',
    arguments: ['path'],
    options: { keep: { value: '<count>', summary: 'write to a folder, and keep the newest backups' } },
    run: async (input, io) => (await import('../admin/database/backup.ts')).backup(input, io),
  }),
  command({
    name: 'admin backup verify',
    summary: 'verify a backup of SQLite',
    details:
      'Reads the whole file. Checks that it is not damaged, that this version can use it, and that the ' +
      'usage of each day is the sum of what edges have reported. Changes nothing, and needs no server.',
    arguments: ['file'],
    run: async ({ file }, io) => (await import('../admin/database/backup.ts')).verify(file, io),
  }),
  command({
    name: 'admin revoke-again',
    summary: 'revoke what is revoked in another database',
    details:
      'Use it after a restore. <database> is the database from before the restore, which is only read: ' +
      'the path of an SQLite file, or the URL of a PostgreSQL database. API keys and edges that are ' +
      'revoked there, and users that are disabled there, are revoked and disabled here. This ' +
      'takes effect on every node before the command exits. You can run it again. See docs/operations/backup.md.\n\n' +
      '  adit admin revoke-again old/adit.db',
    arguments: ['database'],
    run: async ({ database }, io) =>
      (await import('../admin/database/revoke-again.ts')).revokeAgain(database, io),
  }),
  command({
    name: 'admin retention',
    summary: 'delete expired data now, or show it',
    details:
      'Running servers do this every 5 minutes. Deletes expired sessions, verifications, links ' +
      'and idempotent responses, used codes, change log entries, tunnels of lost edges, tunnel ' +
      'names not used for a day, TCP ports not used for ADIT_TCP_PORT_RETENTION_DAYS, usage ' +
      'counters of days that edges can no longer report, and audit log entries older than ' +
      'ADIT_AUDIT_RETENTION_DAYS. Never deletes daily usage totals. See ' +
      'docs/operations/retention.md.',
    options: { 'dry-run': { summary: 'only show what would be deleted' } },
    run: async (input, io) => (await import('../admin/database/retention.ts')).retention(input, io),
  }),
  command({
    name: 'admin distribute',
    summary: 'distribute usage tables over a Citus cluster',
    details:
      'Needs PostgreSQL with Citus. Shards the usage tables by workspace; all other tables stay on the ' +
      'coordinator. Nodes may serve meanwhile. Run it again after an upgrade, which may add tables, or ' +
      'after an interruption. See docs/operations/citus.md.',
    run: async (_input, io) => (await import('../admin/database/distribute.ts')).distribute(io),
  }),
  command({
    name: 'admin nodes',
    summary: 'list running nodes and whether they are up to date',
    details:
      'HEARTBEAT: last heartbeat (one every 5 seconds), by the clock of the node. CHANGES: whether ' +
      'the node is up to date with the change log. LEASE: whether it may still use its cache.\n' +
      'A killed or hung node is listed until the next revocation, which waits 2 seconds for it and ' +
      'removes it.',
    run: async (_input, io) => (await import('../admin/database/nodes.ts')).list(io),
  }),
  command({
    name: 'admin doctor',
    summary: 'check configuration, database and machine',
    details:
      'Checks the configuration; the version, settings and schema of the database; the clock, nodes, ' +
      'disk space, files with secrets, DNS of the tunnel domain, the mail server and the identity ' +
      'provider. Prints what to do about each finding. Changes nothing, sends no email, and works while ' +
      'the server is down. Run it as the user of the server, with its environment and in its directory. ' +
      'The exit code is 1 if there are problems, and 0 if there are none or only warnings. See ' +
      'docs/operations/doctor.md.',
    run: async (_input, io) => (await import('../admin/database/doctor.ts')).doctor(io),
  }),
  command({
    name: 'admin demo',
    summary: 'fill a workspace with a year of sample usage',
    details: 'For trying things out. It cannot be undone; running it again changes only the current day.',
    options: { workspace: { ...workspaceOption, summary: 'workspace (default: "default")' } },
    run: async ({ workspace }, io) =>
      (await import('../admin/database/demo.ts')).demo(workspace ?? 'default', io),
  }),
])
