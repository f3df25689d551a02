// Commands for the requests that tunnels with --inspect have recorded.
import { command, inGroup } from '../command.ts'

const filters = {
  name: { value: '<name>', summary: 'of the tunnel with this name' },
  method: { value: '<method>', summary: 'with this method' },
  status: { value: '<status>', summary: 'with this status, e.g. 404, 5xx, 400-499, or "none" without one' },
  path: { value: '<text>', summary: 'with this text in path or query' },
  since: { value: '<time>', summary: 'started since then, e.g. 30s, 10m, 2h, or a time' },
  search: { value: '<text>', summary: 'with this text in path, headers, bodies or messages' },
} as const

const reveal = { summary: 'show masked values, such as cookies and authorization' } as const

const ABOUT =
  'Tunnels on this machine that were opened with --inspect record their last requests in memory, until they ' +
  'are closed. Only your user has access.'

export const requestCommands = inGroup('Tunnels', [
  command({
    name: 'requests list',
    summary: 'list recorded requests, newest first',
    details: ABOUT,
    options: { ...filters, limit: { value: '<n>', summary: 'at most so many (default: 50)' } },
    run: async (input, io) => (await import('../requests/list.ts')).list(input, io),
  }),
  command({
    name: 'requests link',
    summary: 'print a link to the page with the recorded requests',
    details: `The link works once, in a browser on this machine. ${ABOUT}`,
    run: async (_input, io) => (await import('../requests/link.ts')).link(io),
  }),
  command({
    name: 'requests show',
    summary: 'show a recorded request and its response',
    details: `Without an id, the latest. ${ABOUT}`,
    optionalArgument: 'id',
    options: { reveal, as: { value: '<curl|fetch>', summary: 'print the request as a command or as code' } },
    run: async (input, io) => (await import('../requests/show.ts')).show(input, io),
  }),
  command({
    name: 'requests replay',
    summary: 'send a recorded request to the local server again',
    details:
      'Without an id, the latest. It is sent as it was recorded, with masked values, unless flags change it. ' +
      `It goes to the local server of its tunnel only. ${ABOUT}`,
    optionalArgument: 'id',
    options: {
      method: { value: '<method>', summary: 'with another method' },
      path: { value: '<path>', summary: 'with another path and query' },
      header: { value: '<header>', summary: 'replace or add a header, "Name: value"', repeatable: true },
      'remove-header': { value: '<name>', summary: 'without this header', repeatable: true },
      body: { value: '<text>', summary: 'with another body' },
      'body-file': { value: '<file>', summary: 'with the content of this file as body' },
      reveal,
    },
    run: async (input, io) => (await import('../requests/replay.ts')).replay(input, io),
  }),
  command({
    name: 'requests export',
    summary: 'print recorded requests as HAR',
    details: `For the developer tools of browsers and other programs. ${ABOUT}`,
    options: { ...filters, reveal },
    run: async (input, io) => (await import('../requests/export.ts')).exportHar(input, io),
  }),
  command({
    name: 'requests verify',
    summary: 'check the signature of a recorded webhook',
    details:
      'The scheme is stripe, github, slack or standard-webhooks. Asks for the secret, or reads it from standard ' +
      `input. Without an id, checks the latest request. ${ABOUT}`,
    arguments: ['scheme'],
    optionalArgument: 'id',
    run: async (input, io) => (await import('../requests/verify.ts')).verify(input, io),
  }),
])
