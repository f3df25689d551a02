// Commands for the members of a workspace. They call the API.
import { type Command, command } from '../command.ts'
import { API_ACCESS, apiOptions, labelOption, yesOption } from './options.ts'

const group = 'Workspace'

export const workspaceCommands: readonly Command[] = [
  command(
    {
      name: 'login',
      group,
      summary: 'sign in to a server with a browser or an API key',
      details:
        'Asks for the server. Then press Enter to sign in with your browser: a page shows the code that is ' +
        'printed here, you choose the workspace and approve, and an API key for this machine is created. Or ' +
        'paste an API key. Server and key are saved as a profile that only you can read, which becomes the ' +
        'current one. A new sign-in does not revoke the key of an earlier one.\n' +
        'Without a terminal, and with --json, the key is read from standard input:\n' +
        '  adit login --url https://adit.example.com < key.txt',
      options: {
        url: { value: '<url>', summary: 'server: a URL, host or host:port' },
        profile: { value: '<name>', summary: 'profile to save (default: the current one, or "default")' },
      },
    },
    async (input, io) => (await import('../session/login.ts')).login(input, io),
  ),
  command(
    {
      name: 'logout',
      group,
      summary: 'remove a profile and its API key from this machine',
      options: { profile: { value: '<name>', summary: 'profile to remove (default: the current one)' } },
    },
    async (input, io) => (await import('../session/login.ts')).logout(input, io),
  ),
  command(
    { name: 'profiles', group, summary: 'list profiles; * marks the current one' },
    async (_input, io) => (await import('../session/login.ts')).list(io),
  ),
  command(
    { name: 'profiles use', group, summary: 'switch to another profile', arguments: ['name'] },
    async ({ name }, io) => (await import('../session/login.ts')).use(name, io),
  ),
  command(
    {
      name: 'workspace',
      group,
      summary: 'show the workspace of your API key',
      details: API_ACCESS,
      options: apiOptions,
    },
    async (input, io) => (await import('../workspace/show.ts')).show(input, io),
  ),
  command(
    { name: 'keys list', group, summary: 'list API keys', details: API_ACCESS, options: apiOptions },
    async (input, io) => (await import('../workspace/keys.ts')).list(input, io),
  ),
  command(
    {
      name: 'keys create',
      group,
      summary: 'create an API key',
      details:
        'Prints only the key to standard output, so that this works:\n' +
        '  KEY=$(adit keys create --label ci)\n' +
        `It is not shown again.\n\n${API_ACCESS}`,
      options: { label: labelOption, ...apiOptions },
    },
    async (input, io) => (await import('../workspace/keys.ts')).create(input, io),
  ),
  command(
    {
      name: 'keys revoke',
      group,
      summary: 'revoke an API key',
      details:
        'Takes effect immediately and cannot be undone. Asks for confirmation, and warns if it is the key ' +
        `that this command uses. Without a terminal, and with --json, --yes is required.\n\n${API_ACCESS}`,
      arguments: ['id'],
      options: { yes: yesOption, ...apiOptions },
    },
    async (input, io) => (await import('../workspace/keys.ts')).revoke(input, io),
  ),
  command(
    {
      name: 'usage',
      group,
      summary: 'show the traffic of the workspace’s tunnels by day',
      details: API_ACCESS,
      options: { days: { value: '<number>', summary: '1 to 365 (default: 30)' }, ...apiOptions },
    },
    async (input, io) => (await import('../workspace/usage.ts')).show(input, io),
  ),
  command(
    {
      name: 'mcp',
      group,
      summary: 'serve the workspace to an AI agent (MCP over stdio)',
      details: API_ACCESS,
      options: apiOptions,
    },
    async (input, io) => {
      const [{ findAccess }, { mcp }] = await Promise.all([import('../api.ts'), import('../mcp.ts')])
      await mcp(findAccess(input), io)
    },
  ),
]
