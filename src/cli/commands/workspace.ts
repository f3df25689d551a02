// Commands for the members of a workspace. They call the API.
import { USAGE_DAYS } from '../../contract/limits.ts'
import { command, inGroup } from '../command.ts'
import { API_ACCESS, apiOptions, labelOption, yesOption } from './options.ts'

const ID_OR_NAME = '<tunnel> is the id of the tunnel, or its name if no other open tunnel has that name.'

export const workspaceCommands = inGroup('Workspace', [
  command({
    name: 'login',
    summary: 'sign in to a server with a browser or an API key',
    details:
      'Asks for the server, then signs you in with your browser: check that the page shows the ' +
      'code printed here, choose a workspace and approve. This creates an API key for this ' +
      'machine. Or paste an API key instead. The server and the key are saved as the current ' +
      'profile, which only you can read. Signing in again does not revoke the earlier key.\n' +
      'Without a terminal, and with --json, the key is read from standard input:\n' +
      '  adit login https://adit.example.com < key.txt',
    optionalArgument: 'server',
    options: {
      url: { value: '<url>', summary: 'the same as <server>: a URL, host or host:port' },
      profile: { value: '<name>', summary: 'profile to save (default: the current one, or "default")' },
    },
    run: async (input, io) => (await import('../session/login.ts')).login(input, io),
  }),
  command({
    name: 'logout',
    summary: 'remove a profile and its API key from this machine',
    options: { profile: { value: '<name>', summary: 'profile to remove (default: the current one)' } },
    run: async (input, io) => (await import('../session/login.ts')).logout(input, io),
  }),
  command({
    name: 'profiles',
    summary: 'list profiles; * marks the current one',
    run: async (_input, io) => (await import('../session/login.ts')).list(io),
  }),
  command({
    name: 'profiles use',
    summary: 'switch to another profile',
    arguments: ['name'],
    run: async ({ name }, io) => (await import('../session/login.ts')).use(name, io),
  }),
  command({
    name: 'workspace',
    summary: 'show the workspace of your API key',
    details: API_ACCESS,
    options: apiOptions,
    run: async (input, io) => (await import('../workspace/show.ts')).show(input, io),
  }),
  command({
    name: 'keys list',
    summary: 'list API keys',
    details: API_ACCESS,
    options: apiOptions,
    run: async (input, io) => (await import('../workspace/keys.ts')).list(input, io),
  }),
  command({
    name: 'keys create',
    summary: 'create an API key',
    details:
      'Prints only the key, to standard output:\n' +
      '  KEY=$(adit keys create --label ci)\n' +
      'You will not see it again.\n\n' +
      API_ACCESS,
    options: { label: labelOption, ...apiOptions },
    run: async (input, io) => (await import('../workspace/keys.ts')).create(input, io),
  }),
  command({
    name: 'keys revoke',
    summary: 'revoke an API key',
    details:
      'Takes effect immediately. You cannot undo it. Asks for confirmation, and warns if it is ' +
      'the key that this command uses. Without a terminal, and with --json, --yes is required.\n\n' +
      API_ACCESS,
    arguments: ['id'],
    options: { yes: yesOption, ...apiOptions },
    run: async (input, io) => (await import('../workspace/keys.ts')).revoke(input, io),
  }),
  command({
    name: 'usage',
    summary: 'show traffic and tunnels of the last days',
    details:
      'Shows totals, then a bar for the traffic of each day (UTC), including today so far. ' +
      'Traffic counts bytes in both directions. Peak tunnels is how many were open at the same ' +
      'time; a tunnel event is a tunnel that was opened, closed or rejected.\n\n' +
      API_ACCESS,
    options: {
      days: {
        value: '<number>',
        summary: `how many days, 1 to ${USAGE_DAYS.max} (default: ${USAGE_DAYS.default})`,
      },
      ...apiOptions,
    },
    run: async (input, io) => (await import('../workspace/usage.ts')).show(input, io),
  }),
  command({
    name: 'tunnels list',
    summary: 'list open tunnels',
    details: API_ACCESS,
    options: { name: { value: '<name>', summary: 'only tunnels with this name' }, ...apiOptions },
    run: async (input, io) => (await import('../workspace/tunnels.ts')).list(input, io),
  }),
  command({
    name: 'tunnels show',
    summary: 'show an open tunnel',
    details: `${ID_OR_NAME}\n\n${API_ACCESS}`,
    arguments: ['tunnel'],
    options: apiOptions,
    run: async (input, io) => (await import('../workspace/tunnels.ts')).show(input, io),
  }),
  command({
    name: 'tunnels close',
    summary: 'close an open tunnel',
    details:
      `${ID_OR_NAME}\n` +
      'When the command exits, no edge carries the tunnel: requests in progress are aborted, and its client ' +
      'exits and shows which API key closed it. Anyone with an API key of the workspace can open it again; to ' +
      'prevent that, revoke the key. Asks for confirmation. Without a terminal, and with --json, --yes is ' +
      'required.\n\n' +
      API_ACCESS,
    arguments: ['tunnel'],
    options: { yes: yesOption, ...apiOptions },
    run: async (input, io) => (await import('../workspace/tunnels.ts')).close(input, io),
  }),
  command({
    name: 'names list',
    summary: 'list tunnel names',
    details: `Lists names that are reserved or were used in the last day.\n\n${API_ACCESS}`,
    options: apiOptions,
    run: async (input, io) => (await import('../workspace/names.ts')).list(input, io),
  }),
  command({
    name: 'edges list',
    summary: 'list the edges of your workspace',
    details: API_ACCESS,
    options: apiOptions,
    run: async (input, io) => (await import('../workspace/edges.ts')).list(input, io),
  }),
  command({
    name: 'mcp',
    summary: 'serve the workspace to an AI agent (MCP over stdio)',
    details:
      'With --allow-port, the agent can also open tunnels to these ports of this machine, and sees, waits for ' +
      'and replays the requests that they record, as well as those of your `adit tunnel --inspect` to these ' +
      'ports. Its tunnels are closed when this command ends. Requests come from strangers, and are marked as ' +
      'untrusted data for the agent. Values that authenticate, such as cookies, are masked.\n\n' +
      API_ACCESS,
    options: {
      'allow-port': {
        value: '<port>',
        summary: 'let the agent publish and inspect this local port (default: none)',
        repeatable: true,
      },
      'mask-header': {
        value: '<name>',
        summary: 'mask the values of this header too, in tunnels that the agent opens',
        repeatable: true,
      },
      'show-secrets': { summary: 'show masked values to the agent' },
      ...apiOptions,
    },
    run: async (input, io) => (await import('../mcp.ts')).mcp(input, io),
  }),
])
