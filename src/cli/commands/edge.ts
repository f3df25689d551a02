// Commands that run an edge, and manage the keys of one without a control plane.
import { edgeSettings } from '../../server/config/edge.ts'
import { TOKENS_FILE } from '../../server/config/environment.ts'
import { settings } from '../../server/config/server.ts'
import { command, inGroup } from '../command.ts'
import { labelOption } from './options.ts'

const tokensFileOption = { value: '<path>', summary: `tokens file (default: ./${TOKENS_FILE})` } as const

export const edgeCommands = inGroup('Tunnels', [
  command({
    name: 'edge',
    summary: 'run an edge, the public side of tunnels',
    details:
      'Verifies API keys with the control plane at ADIT_URL and reports usage to it. ' +
      'ADIT_EDGE_KEY is the credential of this edge; create one on the server with:\n' +
      '  adit admin edge create edge-1 --url <public URL of the edge>\n' +
      'With --tokens-file, it verifies keys against a file and needs no control plane.',
    options: {
      'tokens-file': { value: '<path>', summary: 'verify keys against this file, without a control plane' },
    },
    environment: {
      ADIT_URL: { summary: 'URL of the control plane', fallback: '' },
      ADIT_EDGE_KEY: { summary: 'credential of this edge', fallback: '' },
      ...edgeSettings,
      ADIT_TUNNEL_DOMAIN: {
        ...settings.ADIT_TUNNEL_DOMAIN,
        summary: 'domain of its tunnels; used with --tokens-file only',
      },
      ADIT_METRICS_PORT: settings.ADIT_METRICS_PORT,
      ADIT_METRICS_HOST: settings.ADIT_METRICS_HOST,
      ADIT_LOG_LEVEL: settings.ADIT_LOG_LEVEL,
    },
    run: async (input, io) => (await import('../edge/run.ts')).edge(input, io),
  }),
  command({
    name: 'tokens-file add',
    summary: 'create a key for an edge without a control plane',
    details:
      'Prints only the key, to standard output. You will not see it again: the file stores its ' +
      'SHA-256. A running edge reloads the file within a second.',
    arguments: ['workspace'],
    options: { label: labelOption, file: tokensFileOption },
    run: async ({ file = TOKENS_FILE, ...input }, io) =>
      (await import('../tunnels/tokens-file.ts')).add({ ...input, file }, io),
  }),
  command({
    name: 'tokens-file list',
    summary: 'list the keys in a tokens file',
    options: { file: tokensFileOption },
    run: async ({ file = TOKENS_FILE }, io) => (await import('../tunnels/tokens-file.ts')).list(file, io),
  }),
  command({
    name: 'tokens-file remove',
    summary: 'remove a key from a tokens file',
    details: 'A running edge rejects the key, and closes the tunnels it opened, within a second.',
    arguments: ['id'],
    options: { file: tokensFileOption },
    run: async ({ id, file = TOKENS_FILE }, io) =>
      (await import('../tunnels/tokens-file.ts')).remove(id, file, io),
  }),
])
