// An edge with tunnels that need a password, and requests that guess it.

import type { Test } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
const access = { basicAuth: { user: 'ann', password: 'correct horse' } }

export async function startPasswordEdge(t: Test) {
  const { edge, keys } = await startStandaloneEdge(t, ['acme', 'beta'])
  const [acme = '', beta = ''] = keys
  let guesses = 0
  const open = async (name: string, key = acme) => {
    const tunnel = await openRawTunnel(edge, key, { name, access })
    tunnel.respond(OK)
    return tunnel
  }
  const attempt = (host: string, password: string, client?: string) =>
    fetchHost(edge, host, {
      headers: {
        authorization: `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`,
        ...(client !== undefined && { 'x-forwarded-for': client }),
      },
    })
  const guess = (host: string, client?: string) => attempt(host, `wrong ${guesses++} password`, client)
  return { edge, beta, open, attempt, guess }
}
